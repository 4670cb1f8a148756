"""Rankings, strings, curves, distributions, tuples and graphs through models, saving and scores."""

import networkx as nx
import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import okforest
from okforest import OKBoost, OKExtraTrees, OKNeighbors, OKRandomForest, OKRidge, OKTree
from okforest.decode import EulerianPath, Parts
from okforest.kernels import (
    Curves,
    EditDistance,
    FromCallable,
    GapWeighted,
    GlobalAlignment,
    Kendall,
    Mallows,
    Mismatch,
    Normalized,
    Spearman,
    Spectrum,
    Tuples,
    Wasserstein,
)
from okforest.metrics import kendall_tau, kendall_tau_scorer, spearman_rho_scorer

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
RANKS = np.argsort(np.argsort(-X[:, :3], axis=1), axis=1) + 1
ORDERS = [tuple(np.array(["a", "b", "c"])[np.argsort(row)].tolist()) for row in RANKS]
TEXTS = [">".join(order) for order in ORDERS]
WORDS = ["".join("ab"[int(v > 0)] for v in row) + "c" for row in X]
CURVES = np.sin(np.linspace(0, 3, 12) * (1 + X[:, :1] ** 2)) + X[:, 1:2]
SAMPLES = [rng.normal(x, 1.0, size=rng.integers(5, 9)) for x in X[:, 0]]
TUPLES = list(zip(X[:, 0].tolist(), WORDS, TEXTS, strict=True))
MIXED = Tuples(["linear", "dirac", Kendall()])

CASES = {
    "ranks": (Kendall(), RANKS),
    "orders": (Spearman(), ORDERS),
    "text": (Kendall(), TEXTS),
    "nearest ranking": (Mallows(), TEXTS),
    "spectrum": (Spectrum(2, boundaries=True), WORDS),
    "normalised spectrum": (Normalized(Spectrum(2)), WORDS),
    "mismatch": (Mismatch(2, 1), WORDS),
    "gaps": (GapWeighted(2), WORDS),
    "edit distance": (EditDistance(), WORDS),
    "curves": (Curves(slope=0.1), CURVES),
    "alignment": (GlobalAlignment(1.0), [curve[: 4 + i % 3] for i, curve in enumerate(CURVES)]),
    "samples": (Wasserstein(8), SAMPLES),
    "tuples": (MIXED, TUPLES),
}


@pytest.mark.parametrize(("kernel", "y"), CASES.values(), ids=CASES)
def test_models_fit_predict_score_and_are_saved(tmp_path, kernel, y):
    """Outputs come back in their own type, also from a loaded model."""
    for model in (
        OKRandomForest(10, kernel=kernel, random_state=0),
        OKBoost(10, kernel=kernel, random_state=0),
        OKNeighbors(3, kernel=kernel),
    ):
        model.fit(X, y)
        found = model.predict(X[:5])
        assert len(found) == 5
        if isinstance(y, list) and isinstance(y[0], str | tuple):
            assert type(found[0]) is type(y[0])
        assert np.isfinite(model.score(X, y))
        assert len(model.predict_top(X[:2], 2)[0]) == 2
        okforest.save(model, tmp_path / "model.okforest")
        loaded = okforest.load(tmp_path / "model.okforest")
        assert repr(loaded.predict(X[:5])) == repr(found)


def test_rankings_are_learnt():
    """All forms of rankings, with both scorers; partial rankings and ties as well."""
    model = OKRandomForest(30, random_state=0)
    for kernel in (Kendall(), Spearman(), Mallows(0.5)):
        for y in (RANKS, ORDERS, TEXTS):
            model.set_params(kernel=kernel)
            assert cross_val_score(model, X, y, scoring=kendall_tau_scorer, cv=3).mean() > 0.4
            assert cross_val_score(model, X, y, scoring=spearman_rho_scorer, cv=3).mean() > 0.4
    partial = RANKS.astype(float)
    partial[np.arange(60), rng.integers(0, 3, 60)] = np.nan
    found = model.set_params(kernel=Kendall()).fit(X, partial).predict(X)
    assert found.shape == (60, 3)
    assert not np.isnan(found).any()  # predictions are complete
    assert kendall_tau(RANKS, found) > 0.6
    tied = ["a=b>c" if i % 3 == 0 else text for i, text in enumerate(TEXTS)]
    assert set(model.fit(X, tied).predict(X)) <= set(TEXTS)


def test_strings_are_reconstructed():
    """Words that were not in training can be predicted from their k-mers."""
    train = [i for i, word in enumerate(WORDS) if word != "abbac"]
    ridge = OKRidge(1e-6, kernel=Spectrum(2, boundaries=True), decoder=EulerianPath())
    ridge.fit(X[train], [WORDS[i] for i in train])
    found = ridge.predict(X[train])
    assert np.mean([a == WORDS[i] for a, i in zip(found, train, strict=True)]) > 0.9


def test_distributions():
    """The mean of quantile functions follows the mean of the samples."""
    model = OKRidge("loo", kernel=Wasserstein(16)).fit(X, SAMPLES)
    found = model.predict([[2.0, 0, 0, 0], [-2.0, 0, 0, 0]])
    assert (np.diff(found, axis=1) >= 0).all()
    assert found[0].mean() > found[1].mean() + 2


def test_parts_of_tuples():
    """Every part is predicted as if alone, from the same weights."""
    model = OKExtraTrees(20, kernel=MIXED, random_state=0).fit(X, TUPLES)
    W = model.predict_weights(X[:5])
    numbers, words, texts = zip(*model.predict(X[:5]), strict=True)
    np.testing.assert_allclose(numbers, W @ X[:, 0])
    assert set(words) <= set(WORDS)
    assert set(texts) <= set(TEXTS)
    model.set_params(decoder=Parts(["training_set", "auto", "borda"]))
    assert {number for number, _, _ in model.predict(X[:5])} <= set(X[:, 0])


def labelled_graph(i):
    """Return a ring or a star, with letters at its vertices."""
    graph = nx.cycle_graph(5 + i % 3) if X[i, 0] > 0 else nx.star_graph(4 + i % 3)
    nx.set_node_attributes(graph, {v: "CNO"[v % 3] for v in graph}, "letter")
    return graph


def test_graphs_by_a_function():
    """The recipe of the guide: shared Weisfeiler–Lehman hashes of subgraphs."""
    from collections import Counter

    def subgraphs(graph):
        hashes = nx.weisfeiler_lehman_subgraph_hashes(graph, iterations=2, node_attr="letter")
        return Counter(h for values in hashes.values() for h in values)

    def similarity(a, b):
        first, second = subgraphs(a), subgraphs(b)
        return sum(n * second[h] for h, n in first.items())

    graphs = [labelled_graph(i) for i in range(len(X))]
    kernel = Normalized(FromCallable(similarity, elementwise=True))
    model = OKTree(kernel=kernel, max_depth=2).fit(X[:30], graphs[:30])
    found = model.predict(X[30:40])
    rings = [nx.number_of_edges(graph) == len(graph) for graph in found]
    assert rings == (X[30:40, 0] > 0).tolist()


def test_grakel():
    """A kernel of GraKeL on graphs, as a function of two lists."""
    grakel = pytest.importorskip("grakel", reason="GraKeL is not installed")
    graphs = [
        grakel.Graph(
            {v: list(neighbors) for v, neighbors in graph.adjacency()},
            node_labels=dict(graph.nodes(data="letter")),
        )
        for graph in map(labelled_graph, range(20))
    ]

    def similarity(a, b):
        return grakel.WeisfeilerLehman(n_iter=2).fit(list(b)).transform(list(a))

    kernel = Normalized(FromCallable(similarity))
    model = OKTree(kernel=kernel, max_depth=2).fit(X[:20], graphs)
    rows = [next(i for i in range(20) if graphs[i] is found) for found in model.predict(X[:20])]
    assert (X[rows, 0] > 0).tolist() == (X[:20, 0] > 0).tolist()


def test_rdkit():
    """Molecules as text, compared by the Tanimoto similarity of their fingerprints."""
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2)

    def fingerprints(molecules):
        return [generator.GetFingerprint(Chem.MolFromSmiles(text)) for text in molecules]

    def tanimoto(a, b):
        second = fingerprints(b)
        return np.array([DataStructs.BulkTanimotoSimilarity(f, second) for f in fingerprints(a)])

    smiles = ["CCO", "CCN", "CCC", "c1ccccc1", "c1ccccc1O", "c1ccncc1"]
    inputs = np.arange(6.0).reshape(-1, 1)
    model = OKTree(kernel=FromCallable(tanimoto), max_depth=1).fit(inputs, smiles)
    chain, ring = model.predict([[0.0], [5.0]])
    assert chain in smiles[:3]
    assert ring in smiles[3:]
