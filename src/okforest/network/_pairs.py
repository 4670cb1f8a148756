"""The kinds of pairs of vertices: both, one or none of the two are in the training graph."""

from typing import Literal

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.intp]
PairKind = Literal["known-known", "known-new", "new-new", "with-new"]

KNOWN_KNOWN: PairKind = "known-known"
KNOWN_NEW: PairKind = "known-new"
NEW_NEW: PairKind = "new-new"
WITH_NEW: PairKind = "with-new"  # the union of the two kinds above
PAIR_KINDS = (KNOWN_NEW, NEW_NEW, WITH_NEW, KNOWN_KNOWN)

TITLES: dict[PairKind, str] = {
    KNOWN_NEW: "known–new pairs",
    NEW_NEW: "new–new pairs",
    WITH_NEW: "all pairs with a new vertex",
    KNOWN_KNOWN: "known–known pairs",
}
