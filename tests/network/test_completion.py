"""Network completion: scores, their kinds, tables, and what a fit must not look at."""

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import okforest
from okforest import OKExtraTrees, OKNeighbors, OKRidge, OKTree
from okforest.kernels import Diffusion, RegularizedLaplacian
from okforest.network import NetworkCompletion
from okforest.network import _pairs as pairs_module
from reference.network import diffusion, link_scores, make_network

SEEN = np.arange(45)
UNSEEN = np.arange(45, 60)


def small_model(**parameters):
    return NetworkCompletion(OKExtraTrees(10, min_samples_split=5, random_state=0), **parameters)


def fit_seen(network, **parameters):
    graph = network.graph[SEEN][:, SEEN]
    return small_model(**parameters).fit(network.X[SEEN], graph, network.names[SEEN])


@pytest.mark.parametrize("scheme", ["convolve", "average"])
@pytest.mark.parametrize("seen", ["predicted", "known", "mean"])
@pytest.mark.parametrize("normalize", [0, 0.5, 1])
def test_scores_are_those_of_the_reference(network, scheme, seen, normalize):
    """All kinds of pairs, against weights and kernel put together one pair at a time."""
    kernel = Diffusion(beta=0.7, normalized=True)
    model = fit_seen(network, vertex_kernel=kernel, scheme=scheme, seen=seen, normalize=normalize)
    K = diffusion(network.graph[SEEN][:, SEEN].toarray(), 0.7, normalized=True)

    def places(X):
        if scheme == "convolve":
            return [model.model_.predict_weights(X).toarray()]
        return [W.tocsr().toarray() for W in model.model_._weights_by_tree(X)]

    unseen, at_seen = places(network.X[UNSEEN]), places(network.X[SEEN])
    if seen != "predicted":
        share = 1.0 if seen == "known" else 0.5
        at_seen = [share * np.eye(len(SEEN)) + (1 - share) * W for W in at_seen]
    X = network.X[UNSEEN]
    for scores, a, b in (
        (model.predict_links(X), unseen, at_seen),
        (model.predict_links(X, X), unseen, unseen),
        (model.predict_links(), at_seen, at_seen),
    ):
        np.testing.assert_allclose(scores, link_scores(a, b, K, normalize), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_links_are_found(seed):
    """Of both kinds of pairs with unseen vertices, and missing ones among the seen."""
    network = make_network(90, seed=seed)
    seen, unseen = np.arange(70), np.arange(70, 90)
    truth = network.graph.toarray() > 0
    hidden = np.triu(np.random.default_rng(seed).random((70, 70)) < 0.2, k=1)
    hidden = (hidden | hidden.T) & truth[:70, :70]
    training = (truth[:70, :70] & ~hidden).astype(float)
    model = NetworkCompletion(OKExtraTrees(50, random_state=0)).fit(network.X[seen], training)
    X = network.X[unseen]
    upper = np.triu_indices(20, k=1)
    assert roc_auc_score(truth[70:, :70].ravel(), model.predict_links(X).ravel()) > 0.8
    assert roc_auc_score(truth[70:, 70:][upper], model.predict_links(X, X)[upper]) > 0.75
    candidates = np.triu(training == 0, k=1)
    assert roc_auc_score(hidden[candidates], model.predict_links()[candidates]) > 0.75


def test_links_of_unseen_vertices_play_no_part(network):
    """A graph that differs in links of unseen vertices alone gives the same scores."""
    other = network.graph.toarray()
    other[45:, :] = other[:, 45:] = 0.0
    other[45:, :] = 1.0
    other[:, 45:] = 1.0
    np.fill_diagonal(other, 0.0)
    other = sp.csr_array(other)
    first = fit_seen(network)
    network.graph = other
    second = fit_seen(network)
    X = network.X[UNSEEN]
    np.testing.assert_array_equal(first.predict_links(X), second.predict_links(X))
    np.testing.assert_array_equal(first.predict_links(X, X), second.predict_links(X, X))
    assert first.model_.kernel_.graph.shape == (45, 45)


def test_forms_of_a_graph_are_the_same(network):
    """Sparse, dense, networkx in another order, edge lists of names and of positions."""
    X, names = network.X, network.names
    expected = small_model().fit(X, network.graph).predict_links()
    edges = [(names[i], names[j]) for i, j in np.argwhere(np.triu(network.graph.toarray()))]
    in_networkx = nx.Graph()
    in_networkx.add_nodes_from(names[::-1].tolist())
    in_networkx.add_edges_from(edges)
    positions = np.argwhere(np.triu(network.graph.toarray()))
    for graph, given in (
        (network.graph.toarray(), None),
        (network.graph.toarray().tolist(), names),
        (in_networkx, names),
        (edges, names),
        (pd.DataFrame(edges), names),
        (np.array(edges), names),
        (positions, None),
    ):
        model = small_model().fit(X, graph, given)
        np.testing.assert_array_equal(model.predict_links(), expected)
    frame = pd.DataFrame(X, index=names)
    frame.columns = [f"f{i}" for i in range(X.shape[1])]
    model = small_model().fit(frame, edges)
    np.testing.assert_array_equal(model.predict_links(), expected)
    assert model.names_.tolist() == names.tolist()
    in_order = nx.from_scipy_sparse_array(network.graph)
    shuffled = nx.Graph()
    shuffled.add_nodes_from(np.random.default_rng(0).permutation(len(X)).tolist())
    shuffled.add_edges_from(in_order.edges)
    text_in_order = nx.relabel_nodes(in_order, dict(enumerate(names.tolist())))
    for graph in (in_order, shuffled, text_in_order):
        np.testing.assert_array_equal(small_model().fit(X, graph).predict_links(), expected)


def test_labels_of_an_adjacency_frame(network):
    """They are names, in any order; those that are none are refused, positions are not."""
    X, names = network.X, network.names
    expected = small_model().fit(X, network.graph).predict_links()
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(60), rng.permutation(60)
    A = pd.DataFrame(network.graph.toarray(), index=names, columns=names)
    features = pd.DataFrame(X, index=names, columns=list("abcde"))
    for given, graph, known in (
        (X, A.iloc[rows, columns], names),
        (features, A.iloc[rows, columns], None),
        (features, pd.DataFrame(network.graph.toarray()), None),
        (X, pd.DataFrame(network.graph.toarray()).iloc[rows, columns], None),
        (X, A, None),
    ):
        np.testing.assert_array_equal(
            small_model().fit(given, graph, known).predict_links(), expected
        )
    with pytest.raises(ValueError, match=r"1 labels have no features \('x'\).*names no.*'v00'"):
        small_model().fit(features, A.rename(index={"v00": "x"}))
    with pytest.raises(ValueError, match=r"the columns of the links' frame"):
        small_model().fit(X, A.rename(columns={"v00": "v01"}), names)


def test_ranked_links(network, monkeypatch):
    """The best pairs by their scores, each once, known links left out; blocks change nothing."""
    model = fit_seen(network)
    X, names = network.X[UNSEEN], network.names[UNSEEN]
    table = model.rank_links(X, names, top=10_000)
    assert len(table) == 15 * 45 + 15 * 14 // 2
    assert (np.diff(table["score"]) <= 0).all()
    across = table[table["kind"] == "seen-unseen"]
    position = {name: i for i, name in enumerate(network.names.tolist())}
    i = [position[name] - 45 for name in across["source"]]
    j = [position[name] for name in across["target"]]
    np.testing.assert_array_equal(across["score"], model.predict_links(X)[i, j])
    within = table[table["kind"] == "unseen-unseen"]
    assert (within["source"] < within["target"]).all()
    assert model.rank_links(X, names, top=7).tolist() == table[:7].tolist()

    seen = model.rank_links(top=10_000)
    n_links = model.adjacency_.nnz // 2
    assert len(seen) == 45 * 44 // 2 - n_links
    assert set(seen["kind"]) == {"seen-seen"}
    linked = {(a, b) for a, b in zip(*network.graph.nonzero(), strict=True)}
    assert not any((position[a], position[b]) in linked for a, b, *_ in seen.tolist())

    monkeypatch.setattr(pairs_module, "BLOCK_PAIRS", 100)
    in_blocks = model.rank_links(X, names, top=20)
    np.testing.assert_allclose(in_blocks["score"], table["score"][:20], rtol=1e-12)
    assert pd.DataFrame(table).columns.tolist() == ["source", "target", "score", "kind"]


def test_ranked_links_name_rows_by_the_frame(network):
    """Names come from the index of a frame; numbers and text stay what they are."""
    model = fit_seen(network)
    frame = pd.DataFrame(network.X[UNSEEN], index=network.names[UNSEEN])
    table = model.rank_links(frame.set_axis([f"f{i}" for i in range(5)], axis=1).to_numpy(), top=3)
    assert all(isinstance(name, int) for name in table["source"].tolist())
    assert all(name in network.names for name in table["target"][table["kind"] == "seen-unseen"])


@pytest.mark.parametrize(
    "estimator",
    [
        OKTree(max_leaf_nodes=5, random_state=0),
        OKNeighbors(5),
        OKRidge(0.1),
        make_pipeline(StandardScaler(), OKRidge(0.1)),
        make_pipeline(StandardScaler(), OKExtraTrees(5, random_state=0)),
    ],
    ids=str,
)
def test_any_model_will_do(network, estimator):
    """Models other than forests, and pipelines."""
    model = NetworkCompletion(estimator, RegularizedLaplacian(beta=2.0))
    model.fit(network.X[SEEN], network.graph[SEEN][:, SEEN])
    scores = model.predict_links(network.X[UNSEEN])
    truth = network.graph[UNSEEN][:, SEEN].toarray() > 0
    assert roc_auc_score(truth.ravel(), scores.ravel()) > 0.7
    assert estimator.get_params().get("kernel", "linear") == "linear"  # the user's is untouched


def test_missing_values_and_large_kernels(network):
    """NaN goes through; a kernel of low rank gives trees features instead of a Gram matrix."""
    X = network.X.copy()
    X[::7, 0] = np.nan
    model = small_model(vertex_kernel=Diffusion(rank=20)).fit(X, network.graph)
    assert model.model_.embedding_ == "features"
    assert np.isfinite(model.predict_links(X)).all()


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_are_calibrated(seed):
    """They grow with scores, and sum to about the number of links, of both kinds."""
    network = make_network(120, seed=seed)
    seen, unseen = np.arange(90), np.arange(90, 120)
    model = small_model(calibrate=True, cv=3)
    model.fit(network.X[seen], network.graph[seen][:, seen])
    X = network.X[unseen]
    truth = network.graph.toarray() > 0
    for scores, probabilities, linked in (
        (model.predict_links(X), model.predict_proba(X), truth[90:, :90]),
        (model.predict_links(X, X), model.predict_proba(X, X), truth[90:, 90:]),
    ):
        assert probabilities.min() >= 0
        assert probabilities.max() <= 1
        order = np.argsort(scores, axis=None)
        assert (np.diff(probabilities.ravel()[order]) >= 0).all()
        assert 0.6 < probabilities.sum() / linked.sum() < 1.6


def test_life_of_a_model(network, tmp_path):
    """Cloned, pickled, saved: it is the same."""
    model = fit_seen(network, calibrate=True, cv=2)
    X = network.X[UNSEEN]
    again = clone(model).fit(network.X[SEEN], network.graph[SEEN][:, SEEN], network.names[SEEN])
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    for other in (again, pickle.loads(pickle.dumps(model)), loaded):
        np.testing.assert_array_equal(other.predict_links(X), model.predict_links(X))
        np.testing.assert_array_equal(other.predict_proba(X, X), model.predict_proba(X, X))
        assert other.rank_links(top=5).tolist() == model.rank_links(top=5).tolist()
    searched = clone(model).set_params(estimator__n_estimators=3)
    assert searched.estimator.n_estimators == 3


@pytest.mark.parametrize("seed", range(3))
def test_vertices_without_data_are_not_the_most_alike(seed):
    """Links of vertices of whom nothing is known rank below those that features foretell."""
    network = make_network(90, seed=seed)
    X = network.X.copy()
    X[::4] = np.nan  # of every group
    seen, new = np.arange(60), np.arange(60, 90)
    empty = new % 4 == 0
    model = NetworkCompletion(OKExtraTrees(30, min_samples_split=5, random_state=0))
    model.fit(X[seen], network.graph[seen][:, seen])
    scores = model.predict_links(X[new], X[new])
    nothing = scores[np.ix_(empty, empty)].max()
    alike = network.group[new][:, None] == network.group[new]
    known = np.outer(~empty, ~empty) & alike
    assert nothing < np.quantile(scores[known], 0.25)
    cosines = clone(model).set_params(normalize=1).fit(X[seen], network.graph[seen][:, seen])
    assert cosines.predict_links(X[new][empty], X[new][empty]).min() > 0.999


def bad_graphs():
    names = ["a", "b", "c"]
    return {
        "unknown": ([("a", "b"), ("a", "x"), ("y", "z")], names, r"without a row.*\(3\): 'x'"),
        "weighted edges": ([("a", "b", 1.0)], names, "a list of pairs"),
        "not square": (np.zeros((3, 4)), None, "pass a square adjacency matrix"),
        "loop": ([("a", "b"), ("c", "c")], names, "links 'c' with itself"),
        "duplicate": ([("a", "b"), ("b", "a")], names, "'b' – 'a' twice"),
        "shape": (np.zeros((4, 4)), None, "4 vertices, and X has 3 rows"),
        "empty": (np.zeros((3, 3)), None, "no links"),
        "no edges": ([], None, "no links"),
        "asymmetric": (np.triu(np.ones((3, 3)), 1), None, "asymmetric"),
        "networkx": (nx.path_graph(4), None, r"1 vertices have no row \(3\)"),
        "other integers": (nx.Graph([(1, 2), (2, 3)]), None, r"no vertices \(0\).*Pass names="),
        "other names": (nx.path_graph(3), names, r"3 rows are no vertices \('a', 'b', 'c'\)"),
        "names twice": ([("a", "b")], ["a", "b", "b"], "each vertex needs"),
        "directed": (nx.DiGraph([("a", "b")]), names, "directed"),
    }


@pytest.mark.parametrize("case", bad_graphs())
def test_bad_graphs(case):
    graph, names, message = bad_graphs()[case]
    with pytest.raises(ValueError, match=message):
        NetworkCompletion().fit(np.zeros((3, 2)), graph, names)


def test_bad_parameters(network):
    X, graph = network.X, network.graph
    with pytest.raises(TypeError, match="estimator is a StandardScaler; use a model of okforest"):
        NetworkCompletion(StandardScaler()).fit(X, graph)
    with pytest.raises(ValueError, match="scheme='average' is for trees, not OKRidge"):
        NetworkCompletion(OKRidge(), scheme="average").fit(X, graph)
    with pytest.raises(TypeError, match="vertex_kernel is 'rbf'; use a kernel on vertices"):
        NetworkCompletion(vertex_kernel="rbf").fit(X, graph)
    with pytest.raises(ValueError, match="vertex_kernel has a graph already"):
        NetworkCompletion(vertex_kernel=Diffusion(graph)).fit(X, graph)
    with pytest.raises(ValueError, match="'seen' parameter"):
        NetworkCompletion(seen="no").fit(X, graph)
    with pytest.raises(ValueError, match="'normalize' parameter"):
        NetworkCompletion(normalize=2.0).fit(X, graph)
    model = fit_seen(network)
    with pytest.raises(ValueError, match="predict_proba needs calibrate=True"):
        model.predict_proba(X)
    calibrated = NetworkCompletion(OKTree(random_state=0), calibrate=True, cv=2).fit(X, graph)
    with pytest.raises(ValueError, match="X_new is None; pass features of unseen vertices"):
        calibrated.predict_proba(None)
    with pytest.raises(ValueError, match="top=0; use a positive integer"):
        model.rank_links(top=0)
