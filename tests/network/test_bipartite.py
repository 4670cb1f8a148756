"""Bipartite networks: scores against their formula, new rows and columns, evaluation."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import okforest
from okforest import OKExtraTrees, OKNeighbors, OKRidge
from okforest.kernels import RBF
from okforest.network import BipartiteCompletion, cross_validate_bipartite


def make_sides(seed=0, n=50, m=40):
    """Return the features of two sides, linked where their first features are close."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.random((n, 3)), rng.random((m, 2))
    links = np.abs(rows[:, :1] - columns[:, 0]) < 0.12
    return rows, columns, (links & (rng.random(links.shape) < 0.9)).astype(int)


def small_model(**parameters):
    forest = OKExtraTrees(10, min_samples_split=5, random_state=0)
    return BipartiteCompletion(forest, **parameters)


@pytest.mark.parametrize("smoothing", [0.0, 0.3, 1.0])
def test_scores_equal_the_formula(smoothing):
    """Weights times links times weights, for all four kinds of pairs."""
    rows, columns, Y = make_sides()
    model = small_model(smoothing=smoothing).fit(rows[:40], columns[:30], Y[:40, :30])
    W = model.row_model_.predict_weights(rows).toarray()
    V = model.column_model_.predict_weights(columns).toarray()
    W[:40] = smoothing * W[:40] + (1 - smoothing) * np.eye(40)
    V[:30] = smoothing * V[:30] + (1 - smoothing) * np.eye(30)
    expected = np.einsum("ik,kl,jl->ij", W, Y[:40, :30], V)
    new_rows, new_columns = rows[40:], columns[30:]
    np.testing.assert_allclose(model.predict_links(), expected[:40, :30], atol=1e-12)
    np.testing.assert_allclose(model.predict_links(new_rows), expected[40:, :30], atol=1e-12)
    np.testing.assert_allclose(
        model.predict_links(X_columns=new_columns), expected[:40, 30:], atol=1e-12
    )
    np.testing.assert_allclose(
        model.predict_links(new_rows, new_columns), expected[40:, 30:], atol=1e-12
    )


def test_without_smoothing_it_equals_a_multi_output_forest():
    """For new rows and known columns, a forest with a linear kernel predicts the same profile."""
    rows, columns, Y = make_sides()
    model = small_model(smoothing=0.0).fit(rows[:40], columns, Y[:40])
    forest = OKExtraTrees(10, min_samples_split=5, random_state=0).fit(rows[:40], Y[:40])
    np.testing.assert_allclose(model.predict_links(rows[40:]), forest.predict(rows[40:]))


@pytest.mark.parametrize("setting", ["new rows", "new columns", "both new"])
@pytest.mark.parametrize("seed", range(3))
def test_links_are_found(setting, seed):
    rows, columns, Y = make_sides(seed)
    scores = cross_validate_bipartite(small_model(), rows, columns, Y, setting, cv=4)
    assert np.nanmean(scores.auc) > 0.7
    assert len(scores.auc) == (16 if setting == "both new" else 4)
    assert scores.n_pairs.sum() == 50 * 40


def test_folds_by_hand():
    """Scores are the same as by a loop; similarities with objects held out are removed."""
    rows, columns, Y = make_sides()
    S, T = (np.exp(-((X[:, None] - X) ** 2).sum(axis=2)) for X in (rows, columns))
    result = cross_validate_bipartite(small_model(), S, T, Y, cv=5, similarities=True)
    for f, (old, new) in enumerate(KFold(5, shuffle=True, random_state=0).split(S)):
        model = small_model().fit(S[np.ix_(old, old)], T, Y[old])
        scores = model.predict_links(S[np.ix_(new, old)])
        assert result.auc[f] == roc_auc_score(Y[new].ravel(), scores.ravel())


@pytest.mark.parametrize(
    "estimator",
    [OKNeighbors(5), OKRidge(0.1), make_pipeline(StandardScaler(), OKRidge(0.1))],
    ids=str,
)
def test_models_and_kernels(estimator):
    """Any model, a different one for columns, a kernel on profiles, sparse links."""
    rows, columns, Y = make_sides()
    model = BipartiteCompletion(estimator, OKExtraTrees(5), profile_kernel=RBF(1.0))
    model.fit(rows[:40], columns, sp.csr_array(Y[:40]))
    scores = model.predict_links(rows[40:])
    assert roc_auc_score(Y[40:].ravel(), scores.ravel()) > 0.7
    assert isinstance(model.column_model_, OKExtraTrees)
    assert model.column_model_.kernel_.sigma == 1.0


def test_two_kernels():
    """Kernels can be precomputed on both sides."""
    rows, columns, Y = make_sides()
    K, L = (np.exp(-10 * ((X[:, None] - X) ** 2).sum(axis=2)) for X in (rows, columns))
    model = BipartiteCompletion(OKRidge(0.1, input_kernel="precomputed"))
    model.fit(K[:40, :40], L, Y[:40])
    assert roc_auc_score(Y[40:].ravel(), model.predict_links(K[40:, :40]).ravel()) > 0.8


def test_ranked_links():
    rows, columns, Y = make_sides()
    names = np.array([f"drug{i}" for i in range(50)]), np.array([f"t{i}" for i in range(40)])
    model = small_model().fit(rows[:45], columns, Y[:45], names[0][:45], names[1])
    table = model.rank_links(rows[45:], row_names=names[0][45:], k=10_000)
    scores = model.predict_links(rows[45:])
    assert len(table) == 5 * 40
    assert (np.diff(table["score"]) <= 0).all()
    first = table[0]
    i, j = names[0].tolist().index(first["source"]) - 45, names[1].tolist().index(first["target"])
    assert first["score"] == scores[i, j] == scores.max()
    assert set(table["kind"]) == {"known-new"}
    known = model.rank_links(k=10_000)
    assert len(known) == (Y[:45] == 0).sum()
    assert set(model.rank_links(rows[45:], columns, k=3)["kind"]) == {"new-new"}
    with pytest.raises(ValueError, match=r"among the new ones \(45\): 'drug0'"):
        model.rank_links(rows[:45], row_names=names[0][:45])


@pytest.mark.parametrize("side", ["row", "column"])
def test_ranked_links_of_each_vertex(side):
    """Every row, or every column, has its own best links."""
    rows, columns, Y = make_sides()
    names = np.array([f"drug{i}" for i in range(50)]), np.array([f"t{i}" for i in range(40)])
    model = small_model().fit(rows[:45], columns, Y[:45], names[0][:45], names[1])
    known = np.where(Y[:45] > 0, -np.inf, model.predict_links())
    for links, scores, sources in (
        (model.rank_links(k=3, per_vertex=side), known, names[0][:45]),
        (
            model.rank_links(rows[45:], row_names=names[0][45:], k=3, per_vertex=side),
            model.predict_links(rows[45:]),
            names[0][45:],
        ),
    ):
        fields, labels = ["source", "target"], [sources, names[1]]
        if side == "column":
            scores, fields, labels = scores.T, fields[::-1], labels[::-1]
        best = np.argsort(-scores, axis=1, kind="stable")[:, :3]
        assert links[fields[0]].tolist() == np.repeat(labels[0], 3).tolist()
        expected = np.take_along_axis(scores, best, axis=1).ravel()
        np.testing.assert_allclose(links["score"], expected, rtol=1e-12)
        at = [
            [label.tolist().index(name) for name in links[field]]
            for label, field in zip(labels, fields, strict=True)
        ]
        np.testing.assert_allclose(scores[tuple(at)], expected, rtol=1e-12)


def test_labels_of_links():
    """The labels of a data frame are the names of rows and columns, in any order."""
    rows, columns, Y = make_sides()
    frames = [
        pd.DataFrame(X, index=[f"{side}{i}" for i in range(len(X))]).add_prefix("f")
        for side, X in zip("rc", (rows, columns), strict=True)
    ]
    labels = [frame.index for frame in frames]
    rng = np.random.default_rng(0)
    links = pd.DataFrame(Y, *labels).iloc[rng.permutation(50), rng.permutation(40)]
    expected = small_model().fit(rows, columns, Y)
    for model in (
        small_model().fit(*frames, links),
        small_model().fit(rows, columns, links, *labels),
    ):
        np.testing.assert_array_equal(model.predict_links(), expected.predict_links())
    first, second = (
        cross_validate_bipartite(small_model(), *arguments, cv=3)
        for arguments in ((rows, columns, Y), (*frames, links))
    )
    np.testing.assert_array_equal(first.auc, second.auc)
    with pytest.raises(ValueError, match=r"the columns of the data frame of links .*: 'x'"):
        small_model().fit(*frames, links.rename(columns={"c0": "x"}))


def test_copies_predict_the_same(tmp_path):
    rows, columns, Y = make_sides()
    model = small_model().fit(rows[:40], columns, Y[:40])
    again = clone(model).fit(rows[:40], columns, Y[:40])
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    for other in (again, loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_links(rows), model.predict_links(rows))


def test_errors():
    rows, columns, Y = make_sides()
    with pytest.raises(ValueError, match=r"links has shape \(40, 50\).*must have shape \(50, 40\)"):
        small_model().fit(rows, columns, Y.T)
    with pytest.raises(ValueError, match="values other than 0 and 1"):
        small_model().fit(rows, columns, 2 * Y)
    with pytest.raises(ValueError, match="links has no 1; pass at least one link"):
        small_model().fit(rows, columns, 0 * Y)
    with pytest.raises(ValueError, match=r"links is an array of shape .* pass a matrix of 0 and 1"):
        small_model().fit(rows, columns, [("a", "b")])
    with pytest.raises(ValueError, match="links is None; pass a matrix of 0 and 1, with a row for"):
        small_model().fit(rows, columns, None)
    with pytest.raises(ValueError, match=r"X_rows has shape \(50, .\); similarities .* square"):
        cross_validate_bipartite(small_model(), rows, columns, Y, similarities=True)
    with pytest.raises(ValueError, match="setting='new'; use 'new rows'"):
        cross_validate_bipartite(small_model(), rows, columns, Y, "new")
    few = 0 * Y
    few[0, 0] = 1
    with pytest.raises(
        ValueError, match=r"in fold \d the 25 known rows and 40 .* no links .* more folds"
    ):
        cross_validate_bipartite(small_model(), rows, columns, few, cv=2)
    with pytest.raises(ValueError, match="links has no 1; pass at least one link"):
        cross_validate_bipartite(small_model(), rows, columns, 0 * Y, cv=2)
    with pytest.raises(TypeError, match="use a model of okforest"):
        BipartiteCompletion(StandardScaler()).fit(rows, columns, Y)
    with pytest.raises(TypeError, match="X_columns is None; pass features as an array"):
        small_model().fit(rows, None, Y)
    with pytest.raises(TypeError, match=r"model is OKNeighbors\(\); pass a BipartiteCompletion"):
        cross_validate_bipartite(OKNeighbors(), rows, columns, Y)
    with pytest.raises(ValueError, match=r"'per_vertex' parameter of rank_links .* 'rows'"):
        small_model().fit(rows, columns, Y).rank_links(per_vertex="rows")
