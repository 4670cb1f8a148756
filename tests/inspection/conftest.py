"""Small trees to inspect, one of them with categories and missing values."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from okforest import OKTree
from okforest.engine import Trees

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def tree():
    """Return a tree of three leaves: size ≤ 2.5; otherwise age ≤ 0.5 or age > 0.5."""
    X = np.array([[1, 0], [2, 1], [3, 0], [4, 0], [3, 1], [4, 1]], float)
    return OKTree(random_state=0).fit(X, [0.0, 0.0, 6.0, 6.0, 9.0, 9.0])


@pytest.fixture
def mixed_tree():
    """Return a tree that splits on a category, a missing value, and the category again."""
    model = OKTree().fit(np.eye(4, 2), [0.0, 1.0, 2.0, 3.0])
    model.trees_ = Trees(
        node_offsets=np.array([0, 7]),
        member_offsets=np.array([0, 4]),
        subset_offsets=np.array([0, 2]),
        feature=np.array([0, -1, 1, -1, 0, -1, -1], dtype=np.int32),
        left=np.array([1, -1, 3, -1, 5, -1, -1], dtype=np.int32),
        threshold=np.array([0.0, 0.0, np.inf, 0.0, 0.0, 0.0, 0.0]),
        missing_left=np.array([False, False, False, False, True, False, False]),
        subset=np.array([0, -1, -1, -1, 1, -1, -1], dtype=np.int32),
        subset_words=np.array([0b101, 0b001], dtype=np.uint64),
        weight=np.array([4.0, 1, 3, 1, 2, 1, 1]),
        variance=np.array([5.0, 0, 2, 0, 0.5, 0, 0]),
        begin=np.array([0, 0, 1, 1, 2, 2, 3], dtype=np.int32),
        end=np.array([4, 1, 4, 2, 4, 3, 4], dtype=np.int32),
        members=np.arange(4, dtype=np.int32),
        times=np.empty(0, dtype=np.int32),
        row_weight=np.ones(4),
        n_categories=np.array([3, 0], dtype=np.int32),
    )
    model.categories_ = [np.array(["red", "green", "blue"]), None]
    model.has_missing_ = np.array([True, True])
    return model
