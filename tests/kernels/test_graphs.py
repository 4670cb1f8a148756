"""Kernels on vertices: their formulas, for small and large graphs in all accepted forms."""

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import expm_multiply
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import okforest
from okforest import OKExtraTrees, OKTree
from okforest.kernels import (
    RBF,
    CommuteTime,
    Diffusion,
    Normalized,
    Precomputed,
    RandomWalk,
    RegularizedLaplacian,
    graphs,
)
from okforest.metrics import make_kernel_scorer
from reference import graphs as reference

KERNELS = {
    "Diffusion": (Diffusion(beta=0.7), lambda A: reference.diffusion(A, 0.7)),
    "Diffusion, long": (Diffusion(beta=20.0), lambda A: reference.diffusion(A, 20.0)),
    "RegularizedLaplacian": (
        RegularizedLaplacian(beta=1.5),
        lambda A: reference.regularized_laplacian(A, 1.5),
    ),
    "CommuteTime": (CommuteTime(), reference.commute_time),
    "RandomWalk": (RandomWalk(steps=3, a=2.5), lambda A: reference.random_walk(A, 3, 2.5)),
    "RandomWalk, least": (RandomWalk(steps=2), lambda A: reference.random_walk(A, 2, 2.0)),
}
every_kernel = pytest.mark.parametrize(("kernel", "formula"), KERNELS.values(), ids=KERNELS)


@pytest.fixture(params=["small", "large", "largest"], autouse=True)
def size(request, monkeypatch):
    """Run a test with the code for small graphs, for large ones, and for those never kept."""
    if request.param != "small":
        monkeypatch.setattr(graphs, "DENSE", 0)
        monkeypatch.setattr(graphs, "BLOCK", 4)
    if request.param == "largest":
        monkeypatch.setattr(graphs, "KEPT_BYTES", 0)
    return request.param


def make_graph(n, n_links, seed, isolated=0):
    """Return a random weighted graph with several components; the last vertices are isolated."""
    rng = np.random.default_rng(seed)
    A = np.zeros((n, n))
    i, j = rng.integers(0, n - isolated, size=(2, n_links))
    A[i, j] = rng.uniform(0.2, 3.0, size=n_links)
    np.fill_diagonal(A, 0.0)
    return np.maximum(A, A.T)


GRAPH = make_graph(14, 12, seed=3, isolated=2)
EVERY = np.arange(14)


@every_kernel
@pytest.mark.parametrize("normalize", [False, True])
@given(n=st.integers(2, 13), n_links=st.integers(0, 30), seed=st.integers(0, 10**6))
def test_formula(kernel, formula, normalize, n, n_links, seed):
    """Gram, cross-Gram, pairs and diagonal follow the formula, and Gram matrices are PSD."""
    A = make_graph(n, n_links, seed)
    kernel = clone(kernel).set_params(graph=A, normalize=normalize)
    y = kernel.check(np.random.default_rng(seed).integers(0, n, size=n + 3))
    kernel = kernel.resolve(y)
    expected = formula(A)
    expected = (reference.normalized(expected) if normalize else expected)[np.ix_(y, y)]
    tolerance = 1e-9 * max(1.0, np.abs(expected).max())
    K = kernel(y)
    np.testing.assert_allclose(K, expected, atol=tolerance)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -tolerance
    half = len(y) // 2
    np.testing.assert_allclose(kernel(y[:2], y[1:]), expected[:2, 1:], atol=tolerance)
    np.testing.assert_allclose(kernel(y[1:], y[:2]), expected[1:, :2], atol=tolerance)
    np.testing.assert_allclose(kernel.diag(y), np.diag(expected), atol=tolerance)
    np.testing.assert_allclose(
        kernel.pairs(y[:half], y[-half:]), np.diag(expected[:half, -half:]), atol=tolerance
    )


@every_kernel
def test_forms_of_a_graph(kernel, formula):
    """Dense, sparse and networkx graphs give the same kernel, with and without loops."""
    with_loops = GRAPH + np.diag(np.arange(14.0))
    named = nx.from_numpy_array(GRAPH)
    forms = [
        GRAPH.tolist(),
        with_loops,
        sp.csr_matrix(GRAPH),
        sp.coo_array(with_loops),
        sp.csc_array(GRAPH),
        named,
        nx.from_numpy_array(with_loops),
    ]
    for form in forms:
        np.testing.assert_allclose(
            clone(kernel).set_params(graph=form)(EVERY), formula(GRAPH), atol=1e-10
        )


@pytest.mark.parametrize("normalize", [False, True])
def test_columns_are_computed_once(size, normalize):
    """A fit and predictions share the columns of a kernel; files leave them out."""
    computed = []

    class Counted(Diffusion):
        def _product(self, B):
            computed.append(B.shape[1])
            return super()._product(B)

    kernel = Counted(GRAPH, normalize=normalize)
    part = kernel(EVERY[:5], EVERY)
    K = kernel.resolve(EVERY)(EVERY)
    other = clone(kernel)
    np.testing.assert_array_equal(other(EVERY[3:], EVERY[:9]), kernel(EVERY[3:], EVERY[:9]))
    np.testing.assert_allclose(part, K[:5], rtol=1e-12)
    np.testing.assert_array_equal(other.diag(EVERY), kernel.diag(EVERY))
    assert sum(computed) == {"small": 0, "large": 14}.get(size, sum(computed))
    kernel.set_params(beta=2.0)
    np.testing.assert_allclose(kernel(EVERY), Diffusion(GRAPH, 2.0, normalize=normalize)(EVERY))
    assert "_columns_of" not in kernel.__getstate__()


@every_kernel
@given(seed=st.integers(0, 10**6))
def test_order_of_vertices_does_not_matter(kernel, formula, seed):
    """Renumbering the vertices does not change the kernel."""
    order = np.random.default_rng(seed).permutation(14)
    kernel = clone(kernel).set_params(graph=GRAPH)
    other = clone(kernel).set_params(graph=GRAPH[np.ix_(order, order)])
    np.testing.assert_allclose(other(EVERY), kernel(order), atol=1e-10)


@every_kernel
def test_components_are_apart(kernel, formula):
    """Kernels are exactly 0 between components, and follow the formula for isolated vertices."""
    kernel = clone(kernel).set_params(graph=GRAPH)
    label = sp.csgraph.connected_components(sp.csr_array(GRAPH))[1]
    K = kernel(EVERY)
    assert len(set(label)) > 3
    assert not K[label[:, None] != label[None, :]].any()
    assert K[13, 13] == pytest.approx(formula(GRAPH)[13, 13])


@pytest.mark.parametrize("normalize", [False, True])
def test_isolated_vertices_alone(normalize):
    """A graph without links gives a multiple of the identity, or 0 for the commute time."""
    empty, y = np.zeros((3, 3)), np.arange(3)
    for kernel in (Diffusion(empty), RegularizedLaplacian(empty), RandomWalk(empty, 2, 3.0)):
        K = kernel.set_params(normalize=normalize)(y)
        np.testing.assert_allclose(K, K[0, 0] * np.eye(3))
        assert K[0, 0] == pytest.approx(1.0 if normalize or kernel.get_params().get("beta") else 9)
    np.testing.assert_array_equal(CommuteTime(empty, normalize=normalize)(y), np.zeros((3, 3)))


def test_normalisation_is_the_general_one():
    """normalize=True equals Normalized(kernel)."""
    for kernel, _ in KERNELS.values():
        kernel = clone(kernel).set_params(graph=GRAPH)
        np.testing.assert_allclose(
            clone(kernel).set_params(normalize=True)(EVERY), Normalized(kernel)(EVERY), atol=1e-10
        )


@every_kernel
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 9, 14, 40])
def test_rank(kernel, formula, normalize, rank, size):
    """A rank keeps the largest eigenvalues, and residual_share reports what is left out."""
    n = 60 if size != "small" else 14
    A = make_graph(n, 2 * n, seed=0, isolated=2)
    kernel = clone(kernel).set_params(graph=A, normalize=normalize, rank=rank)
    y = np.arange(n)
    values, vectors = np.linalg.eigh(formula(A))
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    features = kernel.features(y)
    assert features.shape == (n, kernel.feature_dim(y)) == (n, min(rank, n))
    np.testing.assert_allclose(kernel(y), features @ features.T, atol=1e-12)
    if not normalize:
        # Any of several equal eigenvalues may be kept, so compare values, not vectors.
        found = np.linalg.eigvalsh(features.T @ features)[::-1]
        np.testing.assert_allclose(found, values, atol=1e-9)
        residual = formula(A) - features @ features.T
        assert np.linalg.eigvalsh(residual).min() > -1e-9
    else:
        assert set(kernel.diag(y).round(9)) <= {0.0, 1.0}
    share = 1 - values.sum() / np.trace(formula(A))
    assert kernel.residual_share() == pytest.approx(share, abs=0.1 if size != "small" else 1e-9)
    assert clone(kernel).set_params(rank=None).residual_share() == 0.0


def test_large_graph():
    """On graphs too large to be decomposed, entries equal SciPy's exponential."""
    n = 5000
    G = nx.barabasi_albert_graph(n, 2, seed=0)
    A = sp.csr_array(nx.to_scipy_sparse_array(G, dtype=float))
    L = sp.csr_array(sp.diags_array(A.sum(axis=0)) - A)
    unit = np.zeros((n, 2))
    unit[[7, 4000], [0, 1]] = 1.0
    expected = expm_multiply(-0.5 * L, unit)
    y = np.array([7, 4000, 8])
    np.testing.assert_allclose(Diffusion(A, 0.5)(y, y[:2]), expected[y], atol=1e-12)
    K = CommuteTime(A)(np.arange(n), y[:2])
    np.testing.assert_allclose(L @ K, unit - 1 / n, atol=1e-9)
    np.testing.assert_allclose(K.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("beta", [1e-3, 0.5, 30.0, 1e3])
def test_hubs(beta):
    """A vertex with many links, or a long time, does not reduce the precision."""
    star = nx.to_numpy_array(nx.star_graph(100))
    K = Diffusion(star, beta)(np.arange(101))
    np.testing.assert_allclose(K, reference.diffusion(star, beta), atol=1e-12)


def test_too_long_a_time(size):
    """A beta whose series is too long is refused."""
    kernel = Diffusion(GRAPH, beta=1e9)
    if size != "small":
        with pytest.raises(
            ValueError, match=r"beta=1e\+09 times the largest degree, .* smaller beta"
        ):
            kernel(EVERY)
    else:
        assert np.isfinite(kernel(EVERY)).all()


def test_global_random_numbers_are_left_alone():
    """Kernels do not use NumPy's global random state, and results are reproducible."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    A = make_graph(60, 120, seed=1)
    for kernel, _ in KERNELS.values():
        first = clone(kernel).set_params(graph=A, rank=5)
        second = clone(kernel).set_params(graph=A.copy(), rank=5)
        np.testing.assert_array_equal(first(np.arange(60)), second(np.arange(60)))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_names():
    """Outputs are names if vertices have names, from networkx or passed as names."""
    G = nx.Graph()
    G.add_edge("b", "a", weight=2.0)
    G.add_edge("b", ("t", 1))
    G.add_node(7)
    A = np.array([[0.0, 2.0, 1.0, 0], [2, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    K = Diffusion(A)(np.arange(4))
    y = ["a", 7, ("t", 1), "b"]
    kernel = Diffusion(G)
    np.testing.assert_allclose(kernel(kernel.check(y)), K[np.ix_([1, 3, 2, 0], [1, 3, 2, 0])])
    assert kernel.check(y).tolist() == y
    named = Diffusion(sp.csr_array(A), names=["n1", "n2", "n3", "n4"])
    assert named.check(["n4", "n1"]).dtype.kind == "U"
    np.testing.assert_allclose(named(named.check(["n4", "n1"])), K[np.ix_([3, 0], [3, 0])])
    renamed = Diffusion(G, names=[10, 20, 30, 40])
    np.testing.assert_allclose(renamed(renamed.check([20, 10])), K[np.ix_([1, 0], [1, 0])])


def test_commute_times():
    """Distances of the commute time kernel equal the commute times of random walks."""
    A = make_graph(8, 40, seed=0)
    degrees, n = A.sum(axis=0), 8
    P = A / degrees[:, None]
    hitting = np.zeros((n, n))
    for goal in range(n):  # h = 1 + P h, but 0 at the goal
        rest = np.delete(np.arange(n), goal)
        steps = np.linalg.solve(np.eye(n - 1) - P[np.ix_(rest, rest)], np.ones(n - 1))
        hitting[rest, goal] = steps
    K = CommuteTime(A)(np.arange(n))
    squares = np.diag(K)[:, None] + np.diag(K) - 2 * K
    np.testing.assert_allclose(degrees.sum() * squares, hitting + hitting.T, rtol=1e-8)


def test_diagonals_are_computed_once(size, monkeypatch):
    """The norms of vertices, one column each on large graphs, are kept; columns if they fit."""
    kernel = RegularizedLaplacian(GRAPH, normalize=True)
    kernel(EVERY)
    columns = []
    product = RegularizedLaplacian._product
    monkeypatch.setattr(
        RegularizedLaplacian, "_product", lambda self, B: columns.append(B) or product(self, B)
    )
    clone(kernel)(EVERY, EVERY[:3])
    assert sum(B.shape[1] for B in columns) == (3 if size == "largest" else 0)


def test_parallel_edges_add_up():
    """The weights of parallel edges are added."""
    G = nx.MultiGraph([(0, 1, {"weight": 2.0}), (1, 0), (1, 2)])
    A = np.array([[0.0, 3, 0], [3, 0, 1], [0, 1, 0]])
    np.testing.assert_allclose(Diffusion(G)(np.arange(3)), Diffusion(A)(np.arange(3)))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (None, r"Diffusion\(\) has no graph; pass one as Diffusion\(graph\), or .*set_params"),
        (GRAPH[:3], r"shape \(3, 14\); pass a square adjacency matrix"),
        (np.zeros((0, 0)), r"shape \(0, 0\)"),
        (3.0, r"shape \(\)"),
        (np.where(GRAPH > 0, -1.0, 0.0), "a weight of -1; weights of links must not be negative"),
        (np.triu(GRAPH), r"asymmetric: entries \(\d+, \d+\) .*np.maximum\(A, A.T\)"),
        (sp.csr_array(np.triu(GRAPH)), "asymmetric"),
        (np.where(GRAPH > 0, np.nan, 0.0), "NaN or infinite weights; use 0 for no link"),
        (GRAPH.astype(str), "of type <U.*must hold numbers"),
        (nx.DiGraph([(0, 1)]), r"directed; pass graph.to_undirected\(\)"),
    ],
)
def test_bad_graphs(graph, message):
    """Anything but an undirected graph is refused with an explanation."""
    with pytest.raises(ValueError, match=message):
        Diffusion(graph).check([0, 1])
    with pytest.raises(ValueError, match=message):
        Diffusion(graph)(np.array([0, 1]))


@pytest.mark.parametrize(
    ("names", "y", "message"),
    [
        (None, [0.0, 1.0], r"type float64; .* 1-d array of positions of vertices, 0…13"),
        (None, [0, 14], "y holds 14, which is not a vertex of the graph"),
        (None, [-1], "y holds -1"),
        (None, np.array([[0, 1]]), r"shape \(1, 2\)"),
        (list("abcdefghijklmn"), ["a", "z"], "y holds 'z', .* it must hold names of vertices"),
        (list("abcdefghijklmn"), [0, 1], "y holds 0"),
        (list("abc"), ["a"], r"names has shape \(3,\), but the graph has 14 vertices"),
        (list("aacdefghijklmn"), ["a"], "14 entries but only 13 distinct ones"),
        ([[i] for i in range(14)], ["a"], "hashable"),
    ],
)
def test_bad_vertices(names, y, message):
    """Unknown vertices and invalid names are refused with an explanation."""
    with pytest.raises(ValueError, match=message):
        Diffusion(GRAPH, names=names).check(y)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Diffusion(GRAPH, beta=0.0), "'beta' parameter of Diffusion must be a float .* Got 0.0"),
        (
            RegularizedLaplacian(GRAPH, beta="1"),
            "'beta' parameter of Regularized.* Got '1'",
        ),
        (RandomWalk(GRAPH, steps=0), "'steps' parameter of RandomWalk must be an int .* Got 0"),
        (
            RandomWalk(GRAPH, a=1.5),
            r"'a' parameter .* in the range \[2.* Got 1.5",
        ),
        (
            CommuteTime(GRAPH, rank=0),
            "'rank' parameter of CommuteTime .* or None. Got 0",
        ),
    ],
)
def test_bad_parameters(kernel, message):
    """Invalid parameters are found when outputs are checked, or when the kernel is called."""
    with pytest.raises(ValueError, match=message):
        kernel.check(EVERY)
    with pytest.raises(ValueError, match=message):
        kernel(EVERY)


@every_kernel
def test_parameters_can_change(kernel, formula):
    """Cached results of previous parameters, or of another graph, are not used."""
    kernel = clone(kernel).set_params(graph=np.ones((14, 14)), normalize=True)
    kernel(EVERY)
    kernel.set_params(graph=GRAPH)
    np.testing.assert_allclose(kernel(EVERY), reference.normalized(formula(GRAPH)), atol=1e-10)
    kernel.set_params(normalize=False)
    np.testing.assert_allclose(kernel(EVERY), formula(GRAPH), atol=1e-10)
    kernel.set_params(rank=2)
    assert np.linalg.matrix_rank(kernel(EVERY)) <= 2
    kernel.set_params(rank=None, names=list("abcdefghijklmn"))
    np.testing.assert_allclose(
        kernel(np.array(["c", "b"])), formula(GRAPH)[np.ix_([2, 1], [2, 1])], atol=1e-10
    )


@every_kernel
def test_copies(kernel, formula):
    """Clones share the graph and cached results; pickles contain the graph only."""
    kernel = clone(kernel).set_params(graph=sp.csr_array(GRAPH))
    size = len(pickle.dumps(kernel))
    K = kernel(EVERY)
    for other in (clone(kernel), pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        np.testing.assert_array_equal(other(EVERY), K)
    assert clone(kernel).graph is kernel.graph
    assert len(pickle.dumps(kernel)) == size


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("kind", ["sparse", "networkx"])
def test_models(named, rank, kind, tmp_path, size):
    """Models are fitted to vertices, predict vertices, and can be saved and loaded."""
    rng = np.random.default_rng(0)
    A = make_graph(40, 90, seed=0)
    names = np.array([f"v{i}" for i in range(40)])
    if kind == "networkx":
        G = nx.from_numpy_array(A)
        graph = nx.relabel_nodes(G, dict(enumerate(names.tolist()))) if named else G
    else:
        graph = sp.csr_array(A)
    kernel = Diffusion(graph, 0.5, rank=rank, names=names if named and kind == "sparse" else None)
    X = A @ rng.normal(size=(40, 3))
    y = names if named else np.arange(40)
    model = OKExtraTrees(5, kernel=kernel, random_state=0).fit(X[:30], y[:30])
    same = OKExtraTrees(
        5, kernel=Precomputed(Diffusion(A, 0.5, rank=rank)(np.arange(40))), random_state=0
    ).fit(X[:30], np.arange(30))
    np.testing.assert_allclose(model.predict_kernel(X[30:]), same.predict_kernel(X[30:]), atol=1e-9)
    assert model.score(X[30:], y[30:]) == pytest.approx(same.score(X[30:], np.arange(30, 40)))
    assert set(model.predict(X)) <= set(y[:30])
    path = tmp_path / "model.okforest"
    if kind == "networkx":
        with pytest.raises(TypeError, match=r"kernel.graph is a networkx.*model.compact\(\)"):
            okforest.save(model, path)
        model = model.compact()
    okforest.save(model, path)
    for mmap in (False, True):
        loaded = okforest.load(path, mmap=mmap)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert loaded.score(X[30:], y[30:]) == model.score(X[30:], y[30:])


def test_searches():
    """Cross-validation and searches over beta work, with vertices as y."""
    A = make_graph(40, 90, seed=0)
    X, y = A[:, :10], np.arange(40)
    tree = OKTree(kernel=Diffusion(A), random_state=0)
    assert len(cross_val_score(tree, X, y, cv=4)) == 4
    scoring = make_kernel_scorer(Diffusion(A))
    search = GridSearchCV(tree, {"kernel__beta": [0.1, 1.0]}, scoring=scoring, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_.beta == search.best_params_["kernel__beta"]


def test_as_a_part():
    """Kernels on vertices can be parts of other kernels."""
    kernel = RBF(1.0, base=Diffusion(GRAPH)) + 2.0 * CommuteTime(GRAPH)
    y = kernel.check(EVERY)
    K = reference.diffusion(GRAPH, 1.0)
    squares = np.diag(K)[:, None] + np.diag(K) - 2 * K
    np.testing.assert_allclose(
        kernel.resolve(y)(y), np.exp(-squares / 2) + 2 * reference.commute_time(GRAPH), atol=1e-10
    )
