"""Small trees to read: a fixed one, and one that knows of categories and missing values."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

from okforest import OKTree

matplotlib.use("Agg")


@pytest.fixture
def tree():
    """Return a tree of three leaves: size ≤ 2.5, else age ≤ 0.5 or not."""
    X = np.array([[1, 0], [2, 1], [3, 0], [4, 0], [3, 1], [4, 1]], float)
    return OKTree(random_state=0).fit(X, [0.0, 0.0, 6.0, 6.0, 9.0, 9.0])


@pytest.fixture
def mixed_tree():
    """Return a tree that tests a category, a missing value, and the category again."""
    model = OKTree().fit(np.eye(4, 2), [0.0, 1.0, 2.0, 3.0])
    subsets = {0: np.array([0, 2]), 4: np.array([0])}
    grown = SimpleNamespace(
        feature=np.array([0, -1, 1, -1, 0, -1, -1]),
        left=np.array([1, -1, 3, -1, 5, -1, -1]),
        threshold=np.array([0.0, 0.0, np.inf, 0.0, 0.0, 0.0, 0.0]),
        missing_left=np.array([False, False, False, False, True, False, False]),
        left_categories=subsets.get,
        weight=np.array([4.0, 1, 3, 1, 2, 1, 1]),
        variance=np.array([5.0, 0, 2, 0, 0.5, 0, 0]),
        begin=np.array([0, 0, 1, 1, 2, 2, 3]),
        end=np.array([4, 1, 4, 2, 4, 3, 4]),
        members=np.arange(4),
        row_weight=np.ones(4),
    )
    model.trees_ = [grown]
    model.categories_ = [np.array(["red", "green", "blue"]), None]
    return model
