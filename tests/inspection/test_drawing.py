"""Drawn trees and importances."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from okforest import OKBagging, OKExtraTrees, OKTotallyRandomTrees, OKTree
from okforest.inspection import plot_importances, plot_tree
from okforest.inspection._layout import lay_out
from okforest.inspection._reading import Reading

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]
MODEL = OKTree(kernel="rbf", min_samples_leaf=4, random_state=0).fit(X, Y)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def boxes(ax):
    """Return the texts in boxes: those of nodes, not the answers on edges."""
    return [text for text in ax.texts if text.get_text() not in ("yes", "no")]


def frames(ax):
    """Return the frames of the boxes, in pixels."""
    ax.figure.canvas.draw()
    return [box.get_bbox_patch().get_window_extent() for box in boxes(ax)]


def test_layout():
    """Ends are evenly spread, parents are centred over their children, depths are rows."""
    stops = list(Reading(MODEL, 0).walk())
    places = lay_out(stops)
    ends = [places[stop.node][0] for stop in stops if stop.is_end]
    assert ends == list(range(len(ends)))
    for stop in stops:
        assert places[stop.node][1] == stop.depth
        if not stop.is_end:
            left = MODEL.trees_.left[stop.node]
            assert places[stop.node][0] == (places[left][0] + places[left + 1][0]) / 2


@pytest.mark.parametrize("model", [MODEL, OKExtraTrees(3, min_samples_leaf=6).fit(X, Y)])
def test_one_box_for_each_node(model):
    """A box for each node, an edge to each but the root, and no two boxes overlap."""
    tree = len(model.trees_) - 1
    ax = plot_tree(model, tree)
    n_nodes = len(model.trees_[tree].feature)
    assert len(boxes(ax)) == n_nodes
    assert len(ax.lines) == n_nodes - 1
    shown = frames(ax)
    assert not any(a.overlaps(b) for i, a in enumerate(shown) for b in shown[:i])


def test_words_in_boxes(tree):
    """Splits say their test, leaves their samples, variance and output."""
    ax = plot_tree(tree, feature_names=["size", "a rather long name with $"])
    assert [box.get_text() for box in boxes(ax)] == [
        "size ≤\xa02.5",
        "leaf 1\nn = 2\nvariance 0\noutput 0",
        "a rather long name\nwith $ ≤\xa00.5",
        "leaf 3\nn = 2\nvariance 0\noutput 6",
        "leaf 4\nn = 2\nvariance 0\noutput 9",
    ]


def test_given_axes_and_depth():
    """Drawn where asked, no deeper than asked; small axes get a small font."""
    _, axes = plt.subplots(1, 2, figsize=(6, 3))
    ax = plot_tree(MODEL, ax=axes[1], max_depth=1)
    assert ax is axes[1]
    assert len(boxes(ax)) == 3
    shown = frames(ax)
    assert not any(a.overlaps(b) for i, a in enumerate(shown) for b in shown[:i])


def test_outputs_drawn():
    """Each leaf's prototype is drawn in axes of its own, which cover no box."""
    outputs = []

    def draw(ax, output):
        outputs.append(output)
        ax.imshow(output[None])

    ax = plot_tree(MODEL, draw_output=draw)
    leaves = np.flatnonzero(MODEL.trees_.left < 0)
    assert len(ax.child_axes) == len(outputs) == len(leaves)
    assert all((output == Y).all(axis=1).any() for output in outputs)
    assert not any("output" in box.get_text() for box in boxes(ax))
    for inset in ax.child_axes:
        assert not any(inset.get_window_extent().overlaps(frame) for frame in frames(ax))


def test_trees_without_outputs_and_single_leaves():
    """Both are drawn."""
    model = OKTotallyRandomTrees(1, max_depth=2, random_state=0).fit(X)
    assert len(boxes(plot_tree(model))) == len(model.trees_.feature)
    assert len(boxes(plot_tree(OKTree().fit(np.ones((3, 1)), [1.0, 2.0, 3.0])))) == 1


def test_importances_sorted():
    """One bar for each feature, or for the top ones, largest on top; no spread for one tree."""
    ax = plot_importances(MODEL, feature_names=list("abcd"))
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, np.sort(MODEL.feature_importances_)[::-1])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["abcd"[i] for i in np.argsort(-MODEL.feature_importances_)]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert not ax.collections
    assert len(plot_importances(MODEL, top=2).patches) == 2


def test_spread_over_trees():
    """Forests show the standard deviation of their trees' importances, ending at zero."""
    model = OKBagging(10, max_depth=2, random_state=0).fit(X, Y)
    _, given = plt.subplots()
    ax = plot_importances(model, ax=given)
    assert ax is given
    order = np.argsort(-model.feature_importances_, kind="stable")
    trees = [model.trees_[t].variance_reduction(4) for t in range(10)]
    spread = np.std([tree / tree.sum() for tree in trees], axis=0)[order]
    lines = np.array(ax.collections[0].get_segments())[:, :, 0]
    centre = model.feature_importances_[order]
    np.testing.assert_allclose(lines[:, 0], np.maximum(centre - spread, 0.0))
    np.testing.assert_allclose(lines[:, 1], centre + spread)


def test_groups():
    """Importances of a group, by names or positions, are summed."""
    ax = plot_importances(MODEL, feature_names=list("abcd"), groups={"both": ["a", 1]})
    widths = {
        label.get_text(): bar.get_width()
        for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)
    }
    assert set(widths) == {"both", "c", "d"}
    assert widths["both"] == pytest.approx(MODEL.feature_importances_[:2].sum())


@pytest.mark.parametrize("plot", [plot_tree, plot_importances])
def test_matplotlib_is_named_if_missing(monkeypatch, plot):
    """Without matplotlib, the error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib.*pip install okforest\[plot\]"):
        plot(MODEL)
