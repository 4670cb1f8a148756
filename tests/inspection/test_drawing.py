"""Plotted trees."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from okforest import OKExtraTrees, OKTotallyRandomTrees, OKTree
from okforest.inspection import plot_tree
from okforest.inspection.drawing import node_positions
from okforest.inspection.tree_view import TreeView

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]
MODEL = OKTree(kernel="rbf", min_samples_leaf=4, random_state=0).fit(X, Y)


def boxes(ax):
    """Return the texts in boxes of nodes, not the answers on edges."""
    return [text for text in ax.texts if text.get_text() not in ("yes", "no")]


def frames(ax):
    """Return the frames of the boxes, in pixels."""
    ax.figure.canvas.draw()
    return [box.get_bbox_patch().get_window_extent() for box in boxes(ax)]


def test_layout():
    """Ends are evenly spaced, parents are centred above their children, depths are rows."""
    nodes = list(TreeView(MODEL, 0).walk())
    positions = node_positions(nodes)
    ends = [positions[node.number][0] for node in nodes if node.is_end]
    assert ends == list(range(len(ends)))
    for node in nodes:
        assert positions[node.number][1] == node.depth
        if not node.is_end:
            left = MODEL.trees_.left[node.number]
            assert positions[node.number][0] == (positions[left][0] + positions[left + 1][0]) / 2


@pytest.mark.parametrize("model", [MODEL, OKExtraTrees(3, min_samples_leaf=6).fit(X, Y)])
def test_one_box_for_each_node(model):
    """Each node has a box, each but the root has an edge, and no two boxes overlap."""
    tree = len(model.trees_) - 1
    ax = plot_tree(model, tree)
    n_nodes = len(model.trees_[tree].feature)
    assert len(boxes(ax)) == n_nodes
    assert len(ax.lines) == n_nodes - 1
    shown = frames(ax)
    assert not any(a.overlaps(b) for i, a in enumerate(shown) for b in shown[:i])


def test_text_in_boxes(tree):
    """Splits show their condition, leaves their samples, variance and output."""
    ax = plot_tree(tree, feature_names=["size", "a rather long name with $"])
    assert [box.get_text() for box in boxes(ax)] == [
        "size ≤\xa02.5",
        "leaf 1\nn = 2\nvariance 0\noutput 0",
        "a rather long name\nwith $ ≤\xa00.5",
        "leaf 3\nn = 2\nvariance 0\noutput 6",
        "leaf 4\nn = 2\nvariance 0\noutput 9",
    ]


def test_given_axes_and_depth():
    """Given axes and a maximum depth are respected; small axes get a small font."""
    _, axes = plt.subplots(1, 2, figsize=(6, 3))
    ax = plot_tree(MODEL, ax=axes[1], max_depth=1)
    assert ax is axes[1]
    assert len(boxes(ax)) == 3
    shown = frames(ax)
    assert not any(a.overlaps(b) for i, a in enumerate(shown) for b in shown[:i])


def test_outputs_drawn():
    """Each leaf's prototype is drawn on its own axes, which do not overlap any box."""
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
    """Both can be plotted."""
    model = OKTotallyRandomTrees(1, max_depth=2, random_state=0).fit(X)
    assert len(boxes(plot_tree(model))) == len(model.trees_.feature)
    assert len(boxes(plot_tree(OKTree().fit(np.ones((3, 1)), [1.0, 2.0, 3.0])))) == 1


def test_draw_output_must_be_callable():
    """The error shows the signature."""
    with pytest.raises(
        TypeError, match=r"draw_output is of type str; expected a function draw_out"
    ):
        plot_tree(MODEL, draw_output="image")


def test_matplotlib_is_missing(monkeypatch):
    """The error names the extra to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib.*pip install 'okforest\[plot\]'"):
        plot_tree(MODEL)
