"""Weights of rows in scores, which depend on ratios of weights only."""

from typing import Any

import numpy as np

from okforest._compat import check_sample_weight
from okforest._typing import Floats, Outputs


def check_score_weight(sample_weight: Any, outputs: Outputs) -> Floats:
    """Return a non-negative weight for each output, 1 by default, the largest between 1/2 and 1.

    Sums of weighted losses then neither overflow nor vanish. The weights are divided by a power of
    two, which does not round them.
    """
    weight = check_sample_weight(sample_weight, outputs, ensure_non_negative=True)
    _, exponent = np.frexp(weight.max(initial=0.0))
    scaled: Floats = np.ldexp(weight, -exponent)
    return scaled
