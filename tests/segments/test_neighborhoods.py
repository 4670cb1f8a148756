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


@pytest.mark.parametrize("size", [9, None], ids=["equal sizes", "different sizes"])
@pytest.mark.parametrize("pair", [tuple, list])
def test_pairs_are_graphs_for_models(size, pair):
    """Pairs of a matrix and features are one graph each, not a table; features alone decide."""
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    graphs = []
    for i, label in enumerate(labels):
        n = size or 7 + i % 4
        adjacency = nx.to_numpy_array(graph_of(i, n, 0.4))
        graphs.append(pair((adjacency, rng.normal(3 * label, 1, (n, 2)))))
    model = SegmentClassifier(Neighborhoods(8), random_state=0).fit(graphs[:20], labels[:20])
    assert model.score(graphs[20:], labels[20:]) == 1.0
    assert model.segmenter_.n_vertex_features_ == 2
    assert model.evidence(graphs[20]).map.shape == (len(graphs[20][0]),)
    with pytest.raises(ValueError, match="0 features per vertex and the training graphs have 2"):
        model.predict([graphs[20][0]])


def test_features_may_be_square():
    """As many features as vertices: the second of a pair is not another graph."""
    adjacency = nx.to_numpy_array(graph_of(0, 6))
    segmenter = Neighborhoods()
    ((_, features),) = segmenter.check([(adjacency, np.eye(6))])
    np.testing.assert_array_equal(features, np.eye(6))
    ((_, sparse),) = segmenter.check([(adjacency, sp.csr_array(np.eye(6)))])
    np.testing.assert_array_equal(sparse, np.eye(6))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([np.zeros((3, 2))], "graph 0 has an adjacency matrix of shape"),
        ([np.zeros((0, 0))], "graph 0 has no vertices"),
        ([(np.eye(3), np.zeros((2, 1)))], "graph 0 has 3 vertices and features of shape"),
        ([(np.eye(3), [1.0, np.nan, 0.0])], "graph 0 has NaN or infinite features"),
        ([np.eye(3), (np.eye(3), np.zeros(3))], "graph 1 has 1 features per vertex and others"),
        ([[[0, 1], [1, np.nan]]], "graph 0 has NaN or infinite entries in its adjacency"),
        ([sp.csr_array([[0, np.inf], [1, 0]])], "graph 0 has NaN or infinite entries"),
        ([np.eye(3), [[0, -2], [-2, 0]]], "graph 1 has the negative entry -2 in its adjacency"),
        ([[[0, 1, 0], [0, 0, 0], [1, 0, 0]]], "an edge from vertex 0 to vertex 1 and none back"),
        ([[[0, 1], [1]]], "graph 0 is of type list, with rows of different shapes"),
        ([np.array([["a", "b"], ["b", "a"]])], "adjacency matrix of type <U1; expected numbers"),
        ([(np.eye(2), ["C", "N"])], "graph 0 has vertex features that are not numbers"),
        ([1, 2], r"graph 0 has an adjacency matrix of shape \(\)"),
        (np.eye(3), "X is a single graph, of type ndarray; pass a list"),
        (sp.csr_array(np.eye(3)), "X is a single graph, of type csr_array"),
        (nx.path_graph(3), "X is a single graph, of type Graph"),
        (None, "X is of type NoneType; expected a list of graphs"),
    ],
)
def test_bad_graphs(X, message):
    """Errors name the graph and what is wrong."""
    with pytest.raises(ValueError, match=message):
        Neighborhoods().check(X)


@pytest.mark.parametrize("triangle", [np.triu, np.tril])
def test_triangles_and_directions(triangle):
    """One triangle of a matrix stands for both; directions of networkx graphs are ignored."""
    graph = graph_of(3)
    segmenter = Neighborhoods(6)
    (expected,) = segmenter.check([graph])
    half = triangle(nx.to_numpy_array(graph))
    directed = nx.DiGraph()
    directed.add_nodes_from(graph)
    directed.add_edges_from(graph.edges)
    for item in (half, sp.csr_array(half), directed):
        (found,) = segmenter.check([item])
        np.testing.assert_array_equal(found.adjacency.toarray(), expected.adjacency.toarray())


def test_missing_attributes():
    """A vertex without an attribute is refused, and so is a name that is not in a list."""
    with pytest.raises(ValueError, match=r"attributes='x'; expected a list of names"):
        Neighborhoods(attributes="x").check([graph_of(0)])
    with pytest.raises(ValueError, match="a vertex without the attribute 'x'"):
        Neighborhoods(attributes=["x"]).check([graph_of(0)])
