"""Balls around vertices of graphs: their features, forms of graphs, and the way back."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from okforest.segments import Neighborhoods, SegmentClassifier
from reference.segments import spread


def graph_of(seed, n=12, p=0.2):
    return nx.gnp_random_graph(n, p, seed=seed)


def ball(graph, vertex, radius):
    return sorted(nx.single_source_shortest_path_length(graph, vertex, cutoff=radius))


@given(st.integers(0, 1000), st.sampled_from([1, 3]))
def test_features_equal_the_oracle(seed, radius):
    """Numbers of vertices and edges, and means over the vertices, of every ball."""
    graph = graph_of(seed)
    x = np.random.default_rng(seed).normal(size=(12, 2))
    segmenter = Neighborhoods(5, radius=radius)
    segments = segmenter.cut(segmenter.check([(nx.to_numpy_array(graph), x)]), seed)
    table = np.column_stack([[graph.degree(v) for v in range(12)], x])
    for k, (vertex,) in enumerate(segments.places):
        expected = list(table[vertex])
        for r in range(1, radius + 1):
            inside = ball(graph, vertex, r)
            expected += [len(inside), graph.subgraph(inside).number_of_edges()]
            expected += list(table[inside].mean(axis=0))
        np.testing.assert_allclose(segments.values[k], expected, rtol=1e-5)


@given(st.integers(0, 1000))
def test_spreading_equals_the_oracle(seed):
    """A vertex gets the mean of the balls that cover it."""
    graph = graph_of(seed)
    segmenter = Neighborhoods(4, radius=2)
    (item,) = segmenter.check([graph])
    places = segmenter.cut([item], seed).places
    values = np.random.default_rng(seed).random((4, 1))
    covered = [np.isin(np.arange(12), ball(graph, v, 2)) for (v,) in places]
    means = segmenter.spread(item, places, values)[:, 0]
    np.testing.assert_allclose(means, spread((12,), covered, values[:, 0]))


def test_forms_of_graphs():
    """Adjacency matrices, pairs with features and networkx graphs are the same graph."""
    graph = graph_of(0)
    nx.set_node_attributes(graph, {v: float(v) for v in graph}, "x")
    adjacency, x = nx.to_numpy_array(graph), np.arange(12.0)
    upper = sp.csr_array(np.triu(adjacency) + 3 * np.eye(12))  # half of the edges, with loops
    segmenter = Neighborhoods(6, attributes=["x"])
    expected = segmenter.cut(segmenter.check([graph]), 1).values
    for item in ((adjacency, x), (upper, x[:, None]), (sp.csr_matrix(adjacency), x)):
        np.testing.assert_array_equal(segmenter.cut(segmenter.check([item]), 1).values, expected)


def test_classification():
    """Ring lattices and random graphs of the same size are told apart, by structure alone."""
    graphs = [nx.watts_strogatz_graph(30, 4, p, seed=i) for i in range(20) for p in (0.05, 1.0)]
    labels = np.arange(40) % 2
    model = SegmentClassifier(Neighborhoods(10), random_state=0).fit(graphs[:30], labels[:30])
    assert model.score(graphs[30:], labels[30:]) == 1.0
    assert model.evidence(graphs[30]).map.shape == (30,)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([np.zeros((3, 2))], "graph 0 has an adjacency matrix of shape"),
        ([np.zeros((0, 0))], "graph 0 has no vertices"),
        ([(np.eye(3), np.zeros((2, 1)))], "graph 0 has 3 vertices and features of shape"),
        ([(np.eye(3), [1.0, np.nan, 0.0])], "graph 0 has NaN or infinite features"),
        ([np.eye(3), (np.eye(3), np.zeros(3))], "graph 1 has 1 features per vertex and others"),
    ],
)
def test_bad_graphs(X, message):
    """Errors name the graph and what is wrong."""
    with pytest.raises(ValueError, match=message):
        Neighborhoods().check(X)


def test_missing_attributes():
    """A vertex without an attribute is refused."""
    with pytest.raises(ValueError, match="a vertex without the attribute 'x'"):
        Neighborhoods(attributes=["x"]).check([graph_of(0)])
