"""Network completion: scores, ranked links, forms of a graph, and absence of leakage."""

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
from okforest.kernels import Diffusion, RegularizedLaplacian, laplacian
from okforest.network import InputSimilarity, NetworkCompletion
from reference.network import diffusion, link_scores, make_network

KNOWN = np.arange(45)
NEW = np.arange(45, 60)


def small_model(**parameters):
    return NetworkCompletion(OKExtraTrees(10, min_samples_split=5, random_state=0), **parameters)


def fit_known(network, **parameters):
    graph = network.graph[KNOWN][:, KNOWN]
    return small_model(**parameters).fit(network.X[KNOWN], graph, network.names[KNOWN])


@pytest.mark.parametrize("scheme", ["convolve", "average"])
@pytest.mark.parametrize("known", ["predicted", "links", "mean"])
@pytest.mark.parametrize("normalize", [0, 0.5, 1])
def test_scores_equal_the_reference(network, scheme, known, normalize):
    """All kinds of pairs, against a reference that computes one pair at a time."""
    kernel = Diffusion(beta=0.7, normalize=True)
    model = fit_known(
        network, vertex_kernel=kernel, scheme=scheme, known=known, normalize=normalize
    )
    K = diffusion(network.graph[KNOWN][:, KNOWN].toarray(), 0.7, normalized=True)

    def weights(X):
        if scheme == "convolve":
            return [model.model_.predict_weights(X).toarray()]
        return [W.tocsr().toarray() for W in model.model_.tree_weight_matrices(X)]

    new, at_known = weights(network.X[NEW]), weights(network.X[KNOWN])
    if known != "predicted":
        share = 1.0 if known == "links" else 0.5
        at_known = [share * np.eye(len(KNOWN)) + (1 - share) * W for W in at_known]
    X = network.X[NEW]
    for scores, a, b in (
        (model.predict_links(X), new, at_known),
        (model.predict_links(X, X), new, new),
        (model.predict_links(), at_known, at_known),
    ):
        np.testing.assert_allclose(scores, link_scores(a, b, K, normalize), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_links_are_found(seed):
    """Links of new vertices, and missing links between known ones, get high scores."""
    network = make_network(90, seed=seed)
    known, new = np.arange(70), np.arange(70, 90)
    truth = network.graph.toarray() > 0
    hidden = np.triu(np.random.default_rng(seed).random((70, 70)) < 0.2, k=1)
    hidden = (hidden | hidden.T) & truth[:70, :70]
    training = (truth[:70, :70] & ~hidden).astype(float)
    model = NetworkCompletion(OKExtraTrees(50, random_state=0)).fit(network.X[known], training)
    X = network.X[new]
    upper = np.triu_indices(20, k=1)
    assert roc_auc_score(truth[70:, :70].ravel(), model.predict_links(X).ravel()) > 0.8
    assert roc_auc_score(truth[70:, 70:][upper], model.predict_links(X, X)[upper]) > 0.75
    candidates = np.triu(training == 0, k=1)
    assert roc_auc_score(hidden[candidates], model.predict_links()[candidates]) > 0.75


def test_links_of_new_vertices_have_no_influence(network):
    """A graph that differs only in links of new vertices gives the same scores."""
    other = network.graph.toarray()
    other[45:, :] = other[:, 45:] = 0.0
    other[45:, :] = 1.0
    other[:, 45:] = 1.0
    np.fill_diagonal(other, 0.0)
    other = sp.csr_array(other)
    first = fit_known(network)
    network.graph = other
    second = fit_known(network)
    X = network.X[NEW]
    np.testing.assert_array_equal(first.predict_links(X), second.predict_links(X))
    np.testing.assert_array_equal(first.predict_links(X, X), second.predict_links(X, X))
    assert first.model_.kernel_.graph.shape == (45, 45)


def test_forms_of_a_graph_are_equivalent(network):
    """Sparse, dense, networkx in any order, edge lists of names and of positions."""
    X, names = network.X, network.names
    expected = small_model().fit(X, network.graph).predict_links()
    edges = [(names[i], names[j]) for i, j in np.argwhere(np.triu(network.graph.toarray()))]
    in_networkx = nx.Graph()
    in_networkx.add_nodes_from(names[::-1].tolist())
    in_networkx.add_edges_from(edges)
    positions = np.argwhere(np.triu(network.graph.toarray()))
    for graph, passed_names in (
        (network.graph.toarray(), None),
        (network.graph.toarray().tolist(), names),
        (in_networkx, names),
        (edges, names),
        (pd.DataFrame(edges), names),
        (np.array(edges), names),
        (positions, None),
    ):
        model = small_model().fit(X, graph, passed_names)
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
    """Labels are names in any order, or positions; unknown labels raise an error."""
    X, names = network.X, network.names
    expected = small_model().fit(X, network.graph).predict_links()
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(60), rng.permutation(60)
    A = pd.DataFrame(network.graph.toarray(), index=names, columns=names)
    features = pd.DataFrame(X, index=names, columns=list("abcde"))
    for inputs, graph, known in (
        (X, A.iloc[rows, columns], names),
        (features, A.iloc[rows, columns], None),
        (features, pd.DataFrame(network.graph.toarray()), None),
        (X, pd.DataFrame(network.graph.toarray()).iloc[rows, columns], None),
        (X, A, None),
    ):
        np.testing.assert_array_equal(
            small_model().fit(inputs, graph, known).predict_links(), expected
        )
    with pytest.raises(
        ValueError, match=r"without features \(1\): 'x'; .*without a label \(1\): 'v00'"
    ):
        small_model().fit(features, A.rename(index={"v00": "x"}))
    with pytest.raises(ValueError, match=r"the columns of the data frame of links"):
        small_model().fit(X, A.rename(columns={"v00": "v01"}), names)


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
def test_any_model_can_be_used(network, estimator):
    """Models other than forests, and pipelines."""
    model = NetworkCompletion(estimator, RegularizedLaplacian(beta=2.0))
    model.fit(network.X[KNOWN], network.graph[KNOWN][:, KNOWN])
    scores = model.predict_links(network.X[NEW])
    truth = network.graph[NEW][:, KNOWN].toarray() > 0
    assert roc_auc_score(truth.ravel(), scores.ravel()) > 0.7
    assert (
        estimator.get_params().get("kernel", "linear") == "linear"
    )  # the user's estimator is not modified


def test_missing_values_and_large_kernels(network):
    """NaN is accepted; with a low-rank kernel, trees use features instead of a Gram matrix."""
    X = network.X.copy()
    X[::7, 0] = np.nan
    model = small_model(vertex_kernel=Diffusion(rank=20)).fit(X, network.graph)
    assert model.model_.embedding_ == "features"
    assert np.isfinite(model.predict_links(X)).all()


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_are_calibrated(seed):
    """Probabilities increase with scores and sum to about the number of links, for both kinds."""
    network = make_network(120, seed=seed)
    known, new = np.arange(90), np.arange(90, 120)
    model = small_model(calibrate=True, cv=3)
    model.fit(network.X[known], network.graph[known][:, known])
    X = network.X[new]
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


def test_copies_predict_the_same(network, tmp_path):
    """A model that is cloned, pickled or saved makes the same predictions."""
    model = fit_known(network, calibrate=True, cv=2)
    X = network.X[NEW]
    again = clone(model).fit(network.X[KNOWN], network.graph[KNOWN][:, KNOWN], network.names[KNOWN])
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    for other in (again, pickle.loads(pickle.dumps(model)), loaded):
        np.testing.assert_array_equal(other.predict_links(X), model.predict_links(X))
        np.testing.assert_array_equal(other.predict_proba(X, X), model.predict_proba(X, X))
        assert other.rank_links(k=5).tolist() == model.rank_links(k=5).tolist()
    searched = clone(model).set_params(estimator__n_estimators=3)
    assert searched.estimator.n_estimators == 3


@pytest.mark.parametrize("seed", range(3))
def test_vertices_without_features_do_not_rank_first(seed):
    """Pairs of vertices without any features rank below pairs predicted by features."""
    network = make_network(90, seed=seed)
    X = network.X.copy()
    X[::4] = np.nan  # rows of every group
    known, new = np.arange(60), np.arange(60, 90)
    empty = new % 4 == 0
    model = NetworkCompletion(OKExtraTrees(30, min_samples_split=5, random_state=0))
    model.fit(X[known], network.graph[known][:, known])
    scores = model.predict_links(X[new], X[new])
    without_features = scores[np.ix_(empty, empty)].max()
    same_group = network.group[new][:, None] == network.group[new]
    described = np.outer(~empty, ~empty) & same_group
    assert without_features < np.quantile(scores[described], 0.25)
    cosines = clone(model).set_params(normalize=1).fit(X[known], network.graph[known][:, known])
    assert cosines.predict_links(X[new][empty], X[new][empty]).min() > 0.999


def bad_graphs():
    names = ["a", "b", "c"]
    return {
        "unknown": (
            [("a", "b"), ("a", "x"), ("y", "z")],
            names,
            r"names without features \(3\): 'x'",
        ),
        "weighted edges": ([("a", "b", 1.0)], names, "a list of pairs"),
        "table with weights": (
            pd.DataFrame([("a", "b", 1.0)], columns=["from", "to", "weight"]),
            names,
            r"3 columns \(from, to, weight\); pass the two .*links\[\['from', 'to'\]\]",
        ),
        "not square": (np.zeros((3, 4)), None, "pass a square adjacency matrix"),
        "loop": ([("a", "b"), ("c", "c")], names, "links 'c' with itself"),
        "duplicate": ([("a", "b"), ("b", "a")], names, "'b' – 'a' twice"),
        "shape": (np.zeros((4, 4)), None, "4 vertices, and X has 3 rows"),
        "empty": (np.zeros((3, 3)), None, "no links"),
        "no edges": ([], None, "no links"),
        "asymmetric": (np.triu(np.ones((3, 3)), 1), None, "asymmetric"),
        "networkx": (nx.path_graph(4), None, r"vertices without a row \(1\): 3"),
        "other integers": (
            nx.Graph([(1, 2), (2, 3)]),
            None,
            r"not in the graph \(1\): 0; .*Pass names=",
        ),
        "other names": (nx.path_graph(3), names, r"not in the graph \(3\): 'a', 'b', 'c'"),
        "names twice": ([("a", "b")], ["a", "b", "b"], "each vertex needs"),
        "directed": (nx.DiGraph([("a", "b")]), names, "directed"),
    }


@pytest.mark.parametrize("case", bad_graphs())
def test_bad_graphs(case):
    graph, names, message = bad_graphs()[case]
    with pytest.raises(ValueError, match=message):
        NetworkCompletion().fit(np.zeros((3, 2)), graph, names)


@pytest.mark.parametrize("graph", [None, 3, "links.csv", {"a": ["b"]}], ids=str)
def test_types_that_are_not_graphs(graph):
    kind = "None" if graph is None else f"of type {type(graph).__name__}"
    with pytest.raises(TypeError, match=f"graph is {kind}; pass an adjacency matrix, a networkx"):
        NetworkCompletion().fit(np.zeros((3, 2)), graph)


@pytest.mark.parametrize("model", [NetworkCompletion(), InputSimilarity()], ids=repr)
def test_a_missing_graph(model):
    """The error explains what to pass, and does not name the base class."""
    with pytest.raises(TypeError, match="graph is None; pass an adjacency matrix, a networkx"):
        model.fit(np.zeros((3, 2)))


@pytest.mark.parametrize("X", [None, 3, np.array(3.0)], ids=repr)
def test_types_that_are_not_features(X):
    with pytest.raises(
        TypeError, match=r"X is .*; pass features as an array, .* one row per vertex"
    ):
        NetworkCompletion().fit(X, [(0, 1)])


@pytest.mark.parametrize("inside", [False, True], ids=["tree", "pipeline"])
def test_one_tree_scores_the_same_by_both_schemes(network, inside):
    """The average over the trees is its own prediction, also at the end of a pipeline."""
    tree = OKTree(min_samples_split=5, random_state=0)
    estimator = make_pipeline(StandardScaler(), tree) if inside else tree
    known = network.X[KNOWN], network.graph[KNOWN][:, KNOWN]
    scores = [
        NetworkCompletion(estimator, scheme=scheme).fit(*known).predict_links(network.X[NEW])
        for scheme in ("convolve", "average")
    ]
    np.testing.assert_allclose(*scores, atol=1e-12)

    X, graph = network.X, network.graph
    with pytest.raises(
        TypeError, match=r"estimator is StandardScaler\(\); use a model of okforest"
    ):
        NetworkCompletion(StandardScaler()).fit(X, graph)
    with pytest.raises(TypeError, match="estimator is the class OKTree; use a model of okforest"):
        NetworkCompletion(OKTree).fit(X, graph)
    with pytest.raises(ValueError, match=r"scheme='average' requires trees, .* OKRidge"):
        NetworkCompletion(OKRidge(), scheme="average").fit(X, graph)
    with pytest.raises(TypeError, match="vertex_kernel is 'rbf'; use a kernel on vertices"):
        NetworkCompletion(vertex_kernel="rbf").fit(X, graph)
    with pytest.raises(
        ValueError, match="vertex_kernel already has a graph; pass the kernel without"
    ):
        NetworkCompletion(vertex_kernel=Diffusion(graph)).fit(X, graph)
    with pytest.raises(ValueError, match="'known' parameter"):
        NetworkCompletion(known="no").fit(X, graph)
    with pytest.raises(ValueError, match="'normalize' parameter"):
        NetworkCompletion(normalize=2.0).fit(X, graph)
    model = fit_known(network)
    with pytest.raises(ValueError, match="predict_proba requires calibrate=True"):
        model.predict_proba(X)
    calibrated = NetworkCompletion(OKTree(random_state=0), calibrate=True, cv=2).fit(X, graph)
    with pytest.raises(ValueError, match="X_new is None; pass the features of new vertices"):
        calibrated.predict_proba(None)
    for k in (0, True):
        with pytest.raises(ValueError, match=f"'k' parameter of rank_links .* Got {k}"):
            model.rank_links(k=k)


@pytest.mark.parametrize("kernel", [None, RegularizedLaplacian(beta=2.0)], ids=str)
def test_the_graph_is_read_once(network, kernel, monkeypatch):
    """The kernel takes the graph that ``fit`` has checked."""
    read = []
    check = laplacian._check_adjacency
    monkeypatch.setattr(
        laplacian, "_check_adjacency", lambda graph: read.append(graph) or check(graph)
    )
    small_model(vertex_kernel=kernel).fit(network.X, network.graph)
    assert len(read) == 1
