"""Plotted importances."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from okforest import OKBagging, OKExtraTrees, OKTree
from okforest.engine import Trees
from okforest.inspection import plot_importances

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]
MODEL = OKTree(kernel="rbf", min_samples_leaf=4, random_state=0).fit(X, Y)


def test_importances_sorted():
    """One bar per feature, the largest at the top; a single tree has no error bars."""
    ax = plot_importances(MODEL, feature_names=list("abcd"))
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, np.sort(MODEL.feature_importances_)[::-1])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["abcd"[i] for i in np.argsort(-MODEL.feature_importances_)]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert not ax.collections
    assert len(plot_importances(MODEL, k=2).patches) == 2


def test_spread_over_trees():
    """Forests show the standard deviation over trees, cut off at zero."""
    model = OKBagging(10, max_depth=2, random_state=0).fit(X, Y)
    _, axes = plt.subplots()
    ax = plot_importances(model, ax=axes)
    assert ax is axes
    order = np.argsort(-model.feature_importances_, kind="stable")
    trees = [model.trees_[t].variance_reduction(4) for t in range(10)]
    spread = np.std([tree / tree.sum() for tree in trees], axis=0)[order]
    lines = np.array(ax.collections[0].get_segments())[:, :, 0]
    centre = model.feature_importances_[order]
    np.testing.assert_allclose(lines[:, 0], np.maximum(centre - spread, 0.0))
    np.testing.assert_allclose(lines[:, 1], centre + spread)


def test_groups():
    """The importances of the features in a group are summed."""
    ax = plot_importances(MODEL, feature_names=list("abcd"), groups={"both": ["a", 1]})
    widths = {
        label.get_text(): bar.get_width()
        for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)
    }
    assert set(widths) == {"both", "c", "d"}
    assert widths["both"] == pytest.approx(MODEL.feature_importances_[:2].sum())


@pytest.fixture
def rounding_forest():
    """Return a forest of two trees in which the last split, on feature 1, gains -1e-9.

    The first tree has a real split on feature 0; in the second all variance is rounding error.
    """
    model = OKExtraTrees(2, random_state=0).fit(np.eye(3, 2), np.arange(3.0))
    variance = [[4.0, 1.0, 1.0, 0.5, 0.5 + 1e-9], [4e-9, 0.0, 2e-9, 1e-9, 2e-9]]
    model.trees_ = Trees(
        node_offsets=np.array([0, 5, 10]),
        member_offsets=np.array([0, 3, 6]),
        subset_offsets=np.zeros(3, dtype=np.int64),
        feature=np.tile(np.array([0, -1, 1, -1, -1], dtype=np.int32), 2),
        left=np.tile(np.array([1, -1, 3, -1, -1], dtype=np.int32), 2),
        threshold=np.tile([0.5, 0.0, 0.5, 0.0, 0.0], 2),
        missing_left=np.zeros(10, dtype=bool),
        subset=np.full(10, -1, dtype=np.int32),
        subset_words=np.empty(0, dtype=np.uint64),
        weight=np.tile([3.0, 1.0, 2.0, 1.0, 1.0], 2),
        variance=np.ravel(variance),
        begin=np.tile(np.array([0, 0, 1, 1, 2], dtype=np.int32), 2),
        end=np.tile(np.array([3, 1, 3, 2, 3], dtype=np.int32), 2),
        members=np.tile(np.arange(3, dtype=np.int32), 2),
        times=np.empty(0, dtype=np.int32),
        row_weight=np.ones(3),
        n_categories=np.zeros(2, dtype=np.int32),
    )
    return model


def test_negative_gains_are_clipped(rounding_forest):
    """A split that gains less than nothing, by rounding, has importance 0 and no spread."""
    gains = [rounding_forest.trees_[t].variance_reduction(2)[1] for t in range(2)]
    np.testing.assert_allclose(gains, -1e-9, rtol=1e-6)
    np.testing.assert_array_equal(rounding_forest.feature_importances_, [1.0, 0.0])
    lines = np.array(plot_importances(rounding_forest).collections[0].get_segments())[:, :, 0]
    np.testing.assert_array_equal(lines, [[1.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (
            {"g": ["x9"]},
            ValueError,
            "group 'g' has 'x9', which is not a feature; use names .* 0 to 3",
        ),
        ({"g": [4]}, ValueError, "group 'g' has 4, which is not a feature"),
        (
            {"g": [0, "a"]},
            ValueError,
            "feature 'a' is in groups 2 times; list it once, in one group",
        ),
        (
            {"g": ["c"]},
            ValueError,
            r"group 'g' has 'c', the name of features \[2, 3\]; use their pos",
        ),
        ({"g": "a"}, TypeError, "group 'g' is 'a'; expected a list of names or positions"),
        ({"g": 0}, TypeError, "group 'g' is 0; expected a list of names or positions"),
        (
            ["a", "b"],
            TypeError,
            "groups is of type list; expected a dict from group names to lists",
        ),
    ],
)
def test_bad_groups(groups, error, message):
    """Groups list features, each once."""
    with pytest.raises(error, match=message):
        plot_importances(MODEL, feature_names=["a", "b", "c", "c"], groups=groups)


def test_matplotlib_is_missing(monkeypatch):
    """The error names the extra to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib.*pip install 'okforest\[plot\]'"):
        plot_importances(MODEL)
