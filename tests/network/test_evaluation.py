"""Cross-validation over vertices: leakage, kinds of pairs, significance, deletion, groups."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import KFold

from okforest import OKExtraTrees, OKRidge, OKTree
from okforest.network import (
    InputSimilarity,
    NetworkCompletion,
    PairClassifier,
    compare_deletions,
    compare_groups,
    compare_links,
    cross_validate_links,
    format_table,
    group_importances,
)
from okforest.network.evaluation import folds_of
from reference.network import make_network


def small_model(**parameters):
    return NetworkCompletion(OKExtraTrees(10, random_state=0), **parameters)


class Recorder(NetworkCompletion):
    """Records the data that its clones are fitted to."""

    fitted_to: ClassVar = []

    def fit(self, X, graph, names=None):
        Recorder.fitted_to.append((np.array(X), graph.toarray(), list(names)))
        return super().fit(X, graph, names)


def test_folds_by_hand(network):
    """The scores are the same as by a loop over folds and pairs."""
    result = cross_validate_links(small_model(), network.X, network.graph, cv=4, precision_at=(7,))
    A = network.graph.toarray() > 0
    splits = KFold(4, shuffle=True, random_state=0).split(network.X)
    for f, (known, new) in enumerate(splits):
        model = small_model().fit(network.X[known], network.graph[known][:, known])
        across = model.predict_links(network.X[new])
        within = model.predict_links(network.X[new], network.X[new])
        truth, scores = [], []
        for i, a in enumerate(new):
            for j, b in enumerate(known):
                truth.append(A[a, b])
                scores.append(across[i, j])
        kind = result.kinds["known-new"]
        assert kind.auc[f] == roc_auc_score(truth, scores)
        assert kind.aupr[f] == average_precision_score(truth, scores)
        assert (kind.n_links[f], kind.n_pairs[f]) == (sum(truth), len(truth))
        best = np.argsort(-np.array(scores), kind="stable")[:7]
        assert kind.precision[7][f] == pytest.approx(np.mean([truth[i] for i in best]))
        pairs = [(i, j) for i in range(len(new)) for j in range(i)]
        truth2 = [A[new[i], new[j]] for i, j in pairs]
        scores2 = [within[i, j] for i, j in pairs]
        assert result.kinds["new-new"].auc[f] == pytest.approx(roc_auc_score(truth2, scores2))
        together = roc_auc_score(truth + truth2, scores + scores2)
        assert result.kinds["with-new"].auc[f] == pytest.approx(together)
    assert list(result.kinds) == ["known-new", "new-new", "with-new"]


def test_links_of_new_vertices_do_not_leak(network):
    """The training data does not change with the links of the vertices held out."""
    Recorder.fitted_to = []
    cross_validate_links(Recorder(OKTree()), network.X, network.graph, network.names, cv=3)
    first = Recorder.fitted_to
    _, new = next(KFold(3, shuffle=True, random_state=0).split(network.X))
    changed = network.graph.toarray()
    changed[new] = 1 - changed[new]
    changed[:, new] = changed[new].T
    np.fill_diagonal(changed, 0)
    Recorder.fitted_to = []
    cross_validate_links(Recorder(OKTree()), network.X, changed, network.names, cv=3)
    for one, other in zip(first[0], Recorder.fitted_to[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(first[0][0]) == 40
    assert not set(network.names[new]) & set(first[0][2])
    assert (first[1][1] != Recorder.fitted_to[1][1]).any()  # other folds know them


def test_deleted_links(network):
    """Deleted links are not in training, and are the links to find between known vertices."""
    Recorder.fitted_to = []
    result = cross_validate_links(
        Recorder(OKExtraTrees(10, random_state=0)), network.X, network.graph, cv=3, deleted=0.5
    )
    scores = result.kinds["known-known"]
    splits = KFold(3, shuffle=True, random_state=0).split(network.X)
    for f, (known, _) in enumerate(splits):
        whole, trained = network.graph[known][:, known].toarray(), Recorder.fitted_to[f][1]
        assert (trained <= whole).all()
        n_links = whole.sum() / 2
        assert scores.n_links[f] == n_links - trained.sum() / 2 == round(0.5 * n_links)
        assert scores.n_pairs[f] == 40 * 39 / 2 - trained.sum() / 2
    assert scores.auc.mean() > 0.6


def test_fewer_links_are_harder():
    network = make_network(90)
    results = compare_deletions(
        small_model(), network.X, network.graph, shares=(0.0, 0.9), cv=3, precision_at=()
    )
    none, most = (results[share].kinds["with-new"].auc.mean() for share in (0.0, 0.9))
    assert most < none
    assert "known-known" not in results[0.0].kinds


def test_significance(network):
    """The corrected t-test, against SciPy's with the corrected variance."""
    options = {"cv": 5, "precision_at": ()}
    good = cross_validate_links(small_model(), network.X, network.graph, **options)
    bad = cross_validate_links(small_model(), network.X[:, 3:], network.graph, **options)
    result = compare_links(good, bad)
    differences = good.kinds["with-new"].auc - bad.kinds["with-new"].auc
    t, _ = stats.ttest_1samp(differences, 0.0)
    t /= np.sqrt(1 + 5 / 4)
    assert result.difference == pytest.approx(differences.mean())
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(t), 4))
    assert result.p_value < 0.05
    assert compare_links(good, good).p_value == 1.0
    assert compare_links(bad, good).p_value == pytest.approx(result.p_value)


def scores_by_definition(model, X, Z):
    """Return the kernel of features, or the probability that a classifier of pairs predicts."""
    if isinstance(model, InputSimilarity):
        return pairwise_kernels(X, Z, metric=model.metric)
    pairs = [np.hstack([np.abs(x - z), x * z]) for x in X for z in Z]
    return model.classifier_.predict_proba(pairs)[:, 1].reshape(len(X), len(Z))


@pytest.mark.parametrize(
    ("model", "least_auc"),
    [
        (InputSimilarity(), 0.65),
        (InputSimilarity("rbf"), 0.6),
        (PairClassifier(), 0.8),
        (PairClassifier(RandomForestClassifier(20, random_state=0)), 0.78),
    ],
    ids=str,
)
def test_baselines(network, model, least_auc):
    """Baselines are evaluated like any other model, and rank links by their definition."""
    result = cross_validate_links(model, network.X, network.graph, cv=3)
    scores = []
    for fold in folds_of(60, 3):
        known = network.graph[fold.known][:, fold.known]
        fitted = clone(model).fit(network.X[fold.known], known)
        new = scores_by_definition(fitted, network.X[fold.new], network.X[fold.known])
        truth = network.graph[fold.new][:, fold.known].toarray() > 0
        scores.append(roc_auc_score(truth.ravel(), new.ravel()))
    np.testing.assert_allclose(result.kinds["known-new"].auc, scores)
    assert result.kinds["with-new"].auc.mean() > least_auc
    table = model.fit(network.X, network.graph, network.names).rank_links(k=5)
    assert set(table["source"]) <= set(network.names)


@pytest.mark.parametrize(
    "model",
    [
        InputSimilarity("proximity"),
        PairClassifier(RandomForestRegressor()),
        PairClassifier(n_negatives=0),
    ],
    ids=str,
)
def test_parameters_of_baselines_are_checked(network, model):
    with pytest.raises(ValueError, match="must be"):
        model.fit(network.X, network.graph)


def test_baselines_by_hand(network):
    X, Z = network.X[:40], network.X[40:]
    graph = network.graph[:40][:, :40]
    cosine = InputSimilarity().fit(X, graph).predict_links(Z)
    expected = Z @ X.T / np.outer(np.linalg.norm(Z, axis=1), np.linalg.norm(X, axis=1))
    np.testing.assert_allclose(cosine, expected)
    pairs = PairClassifier().fit(X, graph)
    scores = pairs.predict_links(Z)
    features = np.r_[np.abs(Z[3] - X[5]), Z[3] * X[5]][None, :]
    assert scores[3, 5] == pytest.approx(pairs.classifier_.predict_proba(features)[0, 1])
    np.testing.assert_allclose(pairs.predict_links(Z, Z), pairs.predict_links(Z, Z).T)


def test_groups(network):
    """Columns by position and by name; the relevant ones are found."""
    columns = ["a", "b", "c", "d", "e"]
    frame = pd.DataFrame(network.X, columns=columns)
    options = {"cv": 3, "precision_at": ()}
    by_name = {"relevant": ["a", "b", "c"], "noise": ["d", "e"]}
    results = compare_groups(small_model(), frame, network.graph, by_name, **options)
    by_position = {"relevant": slice(0, 3), "noise": [3, 4]}
    same = compare_groups(small_model(), network.X, network.graph, by_position, **options)
    assert list(results) == ["relevant", "noise", "all"]
    for name, result in results.items():
        np.testing.assert_array_equal(
            result.kinds["with-new"].auc, same[name].kinds["with-new"].auc
        )
    aucs = {name: result.kinds["with-new"].auc.mean() for name, result in results.items()}
    assert aucs["relevant"] > aucs["noise"] + 0.1

    model = small_model().fit(frame, network.graph)
    shares = group_importances(model, by_name)
    assert list(shares) == ["relevant", "noise"]
    assert shares == group_importances(model, by_position)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["noise"] == pytest.approx(model.model_.feature_importances_[3:].sum())


def test_table(network):
    result = cross_validate_links(small_model(), network.X, network.graph, cv=2)
    lines = format_table({"one": result, "two": result}, "known-new").splitlines()
    assert lines[0].startswith("|  | AUC | AUPR | precision at 10 | precision at 100 |")
    assert lines[2].startswith(f"| one | {result.kinds['known-new'].auc.mean():.3f} (")
    assert len(lines) == 4


def test_names_with_markup_in_a_table(network):
    result = cross_validate_links(small_model(), network.X, network.graph, cv=2)
    row = format_table({"a|b <i>[c]": result}).splitlines()[2]
    assert row.startswith(r"| a\|b \<i\>\[c\] | 0.")


def test_one_vertex_per_fold(network):
    """There are no pairs of new vertices, and no scores for them."""
    n = 12
    X, graph = network.X[:n], network.graph[:n][:, :n]
    result = cross_validate_links(small_model(), X, graph, cv=n)
    assert set(result.kinds) == {"known-new", "with-new"}
    together = result.kinds["with-new"]
    np.testing.assert_array_equal(together.auc, result.kinds["known-new"].auc)
    np.testing.assert_array_equal(together.n_pairs, n - 1)


def test_folds_without_links(network):
    """The error names the fold, and suggests more folds."""
    X, n = network.X[:20], 20
    graph = np.zeros((n, n))
    graph[3, 7] = graph[7, 3] = 1.0
    splits = KFold(2, shuffle=True, random_state=0).split(X)
    bad = next(f for f, (known, _) in enumerate(splits, 1) if not {3, 7} <= set(known))
    message = f"in fold {bad} the 10 known vertices have no links .* use more folds"
    with pytest.raises(ValueError, match=rf"{message} \(cv\), so that more vertices are known\."):
        cross_validate_links(small_model(), X, graph, cv=2)
    with pytest.raises(ValueError, match=message):
        small_model(calibrate=True, cv=2).fit(X, graph)
    with pytest.raises(ValueError, match=r"in fold 1 .* or delete fewer links"):
        cross_validate_links(small_model(), network.X, network.graph, deleted=0.9999)
    with pytest.raises(ValueError, match="the graph has no links"):
        cross_validate_links(small_model(), X, 0 * graph, cv=2)


def test_progress_and_errors(network):
    done = []
    cross_validate_links(small_model(), network.X, network.graph, cv=3, callback=done.append)
    assert done == [1, 2, 3]
    with pytest.raises(ValueError, match=r"deleted=1\.0; use a share"):
        cross_validate_links(small_model(), network.X, network.graph, deleted=1.0)
    with pytest.raises(ValueError, match="the number of folds is 1; use at least 2"):
        cross_validate_links(small_model(), network.X, network.graph, cv=1)
    with pytest.raises(ValueError, match="60 vertices for 61 folds"):
        cross_validate_links(small_model(), network.X, network.graph, cv=61)
    few = cross_validate_links(small_model(), network.X, network.graph, cv=2)
    more = cross_validate_links(small_model(), network.X, network.graph, cv=3)
    with pytest.raises(ValueError, match="the first result has 2 folds and the second 3"):
        compare_links(few, more)
    with pytest.raises(TypeError, match=r"cv=KFold\(.*; use a number of folds, such as 10"):
        cross_validate_links(small_model(), network.X, network.graph, cv=KFold(3))
    with pytest.raises(ValueError, match="kind='new'; this evaluation has the kinds 'known-new', "):
        compare_links(few, few, kind="new")
    with pytest.raises(ValueError, match="kind='known-known'; this evaluation has"):
        format_table({"one": few}, kind="known-known")
    with pytest.raises(ValueError, match="evaluations is empty; pass at least one result by name"):
        format_table({})
    with pytest.raises(TypeError, match="the result is of type float; pass an Evaluation"):
        format_table({"one": 0.9})
    with pytest.raises(TypeError, match=r"model is OKTree\(\); pass a model of links"):
        cross_validate_links(OKTree(), network.X, network.graph)
    for shares in ((), 0.5):
        with pytest.raises(ValueError, match=r"shares=.*; pass a list of at least one share"):
            compare_deletions(small_model(), network.X, network.graph, shares=shares)
    with pytest.raises(ValueError, match="metric='f1'; use 'auc' or 'aupr'"):
        compare_links(few, few, metric="f1")
    ridge = NetworkCompletion(OKRidge()).fit(network.X, network.graph)
    with pytest.raises(TypeError, match="OKRidge has no feature importances"):
        group_importances(ridge, {"a": [0]})
    frame = pd.DataFrame(network.X, columns=list("abcde"))
    model = small_model().fit(frame, network.graph)
    with pytest.raises(ValueError, match="group 'x' has unknown features"):
        group_importances(model, {"x": ["z"]})
    with pytest.raises(ValueError, match="group 'x' has unknown features"):
        group_importances(model, {"x": [5]})
    for groups, error, message in (
        ({"all": [0]}, ValueError, "a group is named 'all'.*all_features=False"),
        ({}, ValueError, r"groups=\{\}; pass a dict of at least one group"),
        (None, ValueError, "groups=None; pass a dict of at least one group"),
        ({"x": []}, ValueError, "group 'x' has no features"),
        ({"x": slice(5, 7)}, ValueError, "group 'x' has no features"),
        ({"x": "ab"}, TypeError, "group 'x' is 'ab'; use a slice or a list of columns"),
        ({"x": 3}, TypeError, "group 'x' is 3; use a slice or a list of columns"),
    ):
        with pytest.raises(error, match=message):
            compare_groups(small_model(), network.X, network.graph, groups, cv=2)
    for groups, error, message in (
        ({"x": "ab"}, TypeError, "group 'x' is 'ab'"),
        ({"x": slice(5, 7)}, ValueError, "group 'x' has no features"),
        ({}, ValueError, r"groups=\{\}; pass a dict of at least one group"),
    ):
        with pytest.raises(error, match=message):
            group_importances(model, groups)
    with pytest.raises(NotFittedError, match="NetworkCompletion"):
        group_importances(small_model(), {"x": [0]})
    for X, columns in ((frame, ["z"]), (network.X, [5])):
        with pytest.raises(ValueError, match="group 'x' has unknown features"):
            compare_groups(small_model(), X, network.graph, {"x": columns}, cv=2)
    for graph, counts in (
        (np.zeros((4, 4)), "0 linked and 6"),
        (np.ones((4, 4)), "6 linked and 0"),
    ):
        with pytest.raises(ValueError, match=f"the graph has {counts} unlinked pairs"):
            PairClassifier().fit(network.X[:4], graph)


def test_evaluations_print_a_line_for_each_kind(network):
    result = cross_validate_links(InputSimilarity(), network.X, network.graph, cv=4)
    first, *kinds = repr(result).splitlines()
    assert first == "Evaluation of 4 folds:"
    assert len(kinds) == 3
    auc = result.kinds["known-new"].auc
    assert kinds[0].startswith(f"  known-new: AUC {auc.mean():.3f} ± {auc.std():.3f}, AUPR ")
