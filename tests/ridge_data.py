"""Data of the tests of ridge regression: inputs, outputs, and weights of three kinds."""

import numpy as np
import pytest

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]] + 0.1 * rng.normal(size=(40, 2))
NEW = rng.normal(size=(15, 4))
COUNTS = np.tile([0, 1, 2, 1], 10)
WEIGHTS = {"equal": None, "counts": COUNTS, "fractions": rng.uniform(0.1, 3.0, size=40)}

intercepts = pytest.mark.parametrize("intercept", [False, True], ids=["without", "intercept"])
