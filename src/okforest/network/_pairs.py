"""The kinds of pairs of vertices: both, one or none of the two was seen in training."""

from typing import Literal

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.intp]
PairKind = Literal["seen-seen", "seen-unseen", "unseen-unseen", "with-unseen"]

SEEN_SEEN: PairKind = "seen-seen"
SEEN_UNSEEN: PairKind = "seen-unseen"
UNSEEN_UNSEEN: PairKind = "unseen-unseen"
WITH_UNSEEN: PairKind = "with-unseen"  # the union of the two kinds above
PAIR_KINDS = (SEEN_UNSEEN, UNSEEN_UNSEEN, WITH_UNSEEN, SEEN_SEEN)

TITLES: dict[PairKind, str] = {
    SEEN_UNSEEN: "seen–unseen pairs",
    UNSEEN_UNSEEN: "unseen–unseen pairs",
    WITH_UNSEEN: "all pairs with an unseen vertex",
    SEEN_SEEN: "seen–seen pairs",
}
