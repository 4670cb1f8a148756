"""Clusters of vertices: a partition by rules, counts of links, and their enrichment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.exceptions import NotFittedError

from okforest import OKExtraTrees, OKRandomForest, OKTree
from okforest.network import NetworkCompletion, vertex_clusters
from okforest.network.clusters import _hypergeometric_tail


def test_clusters_are_leaves(network):
    """The clusters partition the vertices by the rules that these satisfy."""
    tree = OKTree(max_leaf_nodes=5, random_state=0)
    model = NetworkCompletion(tree).fit(network.X, network.graph, network.names)
    found = vertex_clusters(model, feature_names=list("abcde"))
    leaves = model.model_.apply(network.X).ravel()
    for cluster in found.clusters:
        np.testing.assert_array_equal(cluster.rows, np.flatnonzero(leaves == cluster.rule.leaf))
        np.testing.assert_array_equal(cluster.members, network.names[cluster.rows])
        assert all(condition.name in "abcde" for condition in cluster.rule.conditions)
    assert sum(len(cluster.rows) for cluster in found.clusters) == 60


def test_counts(network):
    """Links and pairs are counted one by one for comparison; p-values equal SciPy's."""
    tree = OKTree(max_leaf_nodes=4, min_samples_leaf=5, random_state=0)
    model = NetworkCompletion(tree).fit(network.X, network.graph)
    found = vertex_clusters(model)
    A = network.graph.toarray() > 0
    n_links, n_pairs = A.sum() / 2, 60 * 59 / 2
    for i, first in enumerate(found.clusters):
        for j, second in enumerate(found.clusters):
            pairs = {(min(a, b), max(a, b)) for a in first.rows for b in second.rows if a != b}
            links = sum(A[a, b] for a, b in pairs)
            assert found.pairs[i, j] == len(pairs)
            assert found.links[i, j] == links
            assert found.enrichment[i, j] == pytest.approx(links / len(pairs) * n_pairs / n_links)
            table = [
                [links, len(pairs) - links],
                [n_links - links, n_pairs - len(pairs) - n_links + links],
            ]
            expected = stats.fisher_exact(table, alternative="greater").pvalue
            assert found.p_values[i, j] == pytest.approx(expected, rel=1e-6, abs=1e-12)
    corrected = found.p_values * 10 < 0.01
    assert found.enriched() == [(i, j) for i, j in np.argwhere(np.triu(corrected)).tolist()]
    assert {(i, i) for i in range(4)} & set(found.enriched())


@given(st.integers(1, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 10))
def test_p_values_are_hypergeometric(total, drawn, marked, found):
    drawn, marked = min(drawn, total), min(marked, total)
    found = min(found, drawn, marked)
    expected = stats.hypergeom.sf(found - 1, total, marked, drawn)
    assert _hypergeometric_tail(found, drawn, marked, total) == pytest.approx(expected, abs=1e-9)


def test_trees_of_forests_and_pipelines(network):
    """A tree of a forest can be used, unless it was grown from a bootstrap sample."""
    forest = OKExtraTrees(3, min_samples_leaf=10, random_state=0)
    model = NetworkCompletion(forest).fit(network.X, network.graph)
    sizes = [len(cluster.rows) for cluster in vertex_clusters(model, tree=2).clusters]
    assert sum(sizes) == 60
    assert min(sizes) >= 10
    bootstrapped = NetworkCompletion(OKRandomForest(2, random_state=0))
    bootstrapped.fit(network.X, network.graph)
    with pytest.raises(ValueError, match=r"tree 1 was grown from \d\d of 60 vertices.*an OKTree"):
        vertex_clusters(bootstrapped, tree=1)


def test_models_that_are_refused():
    with pytest.raises(NotFittedError, match="not fitted"):
        vertex_clusters(NetworkCompletion())
    with pytest.raises(TypeError, match=r"model is OKTree\(\); pass a fitted NetworkCompletion"):
        vertex_clusters(OKTree())
