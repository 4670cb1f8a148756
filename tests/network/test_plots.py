"""Plots show the values they are given."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from okforest import OKExtraTrees, OKTree
from okforest.network import (
    InputSimilarity,
    NetworkCompletion,
    compare_deletions,
    compare_groups,
    cross_validate_links,
    plot_clusters,
    plot_curves,
    plot_deletion,
    plot_groups,
    vertex_clusters,
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def small_model():
    return NetworkCompletion(OKExtraTrees(5, random_state=0))


@pytest.mark.parametrize("curve", ["roc", "pr"])
def test_curves(network, curve):
    results = {
        "trees": cross_validate_links(small_model(), network.X, network.graph, cv=3),
        "cosine": cross_validate_links(InputSimilarity(), network.X, network.graph, cv=3),
    }
    ax = plot_curves(results, curve, "known-new")
    scores = results["trees"].kinds["known-new"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), getattr(scores, curve).mean)
    area = scores.auc.mean() if curve == "roc" else scores.aupr.mean()
    assert ax.get_legend().get_texts()[0].get_text() == f"trees, {area:.3f}"
    assert ax.get_title() == "known–new pairs"
    axes = plt.subplots()[1]
    assert plot_curves(results, curve, ax=axes) is axes
    with pytest.raises(TypeError, match="is of type Evaluation; pass a dict of results"):
        plot_curves(results["trees"], curve)


def test_groups(network):
    groups = {"relevant": [0, 1, 2], "$a$ and $b": [3, 4]}
    results = compare_groups(small_model(), network.X, network.graph, groups, cv=3)
    ax = plot_groups(results)
    widths = {
        label.get_text(): bar.get_width()
        for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)
    }
    assert widths["relevant"] == results["relevant"].kinds["with-new"].auc.mean()
    assert next(iter(widths)) == r"\$a\$ and \$b"  # not mathematics


def test_deletion(network):
    results = compare_deletions(small_model(), network.X, network.graph, shares=(0.0, 0.5), cv=3)
    ax = plot_deletion(results, "aupr")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == "known–new pairs"
    assert labels[3] == "known–known pairs"
    assert ax.get_ylabel() == "AUPR"


def test_clusters(network):
    model = NetworkCompletion(OKTree(max_leaf_nodes=4, random_state=0))
    found = vertex_clusters(model.fit(network.X, network.graph))
    ax = plot_clusters(found)
    texts = [text.get_text().replace("\n", " ") for text in ax.texts]
    for cluster in found.clusters:
        assert str(len(cluster.members)) in texts
        assert str(cluster.rule) in texts
    assert len(ax.patches) == 4
    between = [pair for pair in found.enriched() if pair[0] != pair[1]]
    assert len(ax.lines) == len(between)


def test_empty_and_unknown_arguments(network):
    """Every plot names what it needs."""
    result = cross_validate_links(small_model(), network.X, network.graph, cv=2)
    for plot in (plot_curves, plot_groups, plot_deletion):
        with pytest.raises(ValueError, match="evaluations is empty; pass at least one result"):
            plot({})
    with pytest.raises(ValueError, match="evaluations is empty; pass at least one result"):
        plot_curves({}, "pr")
    with pytest.raises(ValueError, match="curve='lift'; use 'roc' or 'pr'"):
        plot_curves({"one": result}, "lift")
    for plot in (plot_groups, plot_deletion):
        with pytest.raises(ValueError, match="metric='f1'; use 'auc' or 'aupr'"):
            plot({"one": result}, "f1")
    for plot in (plot_curves, plot_groups):
        with pytest.raises(ValueError, match="kind='known-known'; this evaluation has the kinds"):
            plot({"one": result}, kind="known-known")
    with pytest.raises(TypeError, match="network is of type NoneType; pass the result of"):
        plot_clusters(None)
    assert not plt.get_fignums()
