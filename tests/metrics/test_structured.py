"""Scores of label sets, rankings and hierarchies, against scikit-learn, SciPy and hand counts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau, spearmanr
from sklearn import metrics as sk

from okforest.metrics import (
    au_prc,
    kendall_tau,
    set_f1_score,
    set_hamming_loss,
    set_jaccard_score,
    spearman_rho,
    subset_accuracy,
)

BITS = arrays(np.int64, (6, 3), elements={"min_value": 0, "max_value": 1})


@given(BITS, BITS)
def test_scores_of_sets_equal_those_of_scikit_learn(true, predicted):
    """On indicators, sparse indicators and sets; 0 / 0 is 1 for examples, left out for labels."""
    names = "abc"
    sets = [[{names[j] for j in np.flatnonzero(row)} for row in y] for y in (true, predicted)]
    weight = np.arange(1.0, 7.0)
    for y, p in ((true, predicted), (sp.csr_array(true), sp.csr_array(predicted)), sets):
        assert subset_accuracy(y, p) == pytest.approx(sk.accuracy_score(true, predicted))
        labels = None if y is not sets[0] else names
        assert set_hamming_loss(y, p, labels=labels) == pytest.approx(
            sk.hamming_loss(true, predicted)
        )
        for ours, theirs in (
            (set_f1_score, sk.f1_score),
            (set_jaccard_score, sk.jaccard_score),
        ):
            options = {"sample_weight": weight, "zero_division": 1.0}
            expected = theirs(true, predicted, average="samples", **options)
            assert ours(y, p, sample_weight=weight) == pytest.approx(expected)
            expected = theirs(true, predicted, average="micro", **options)
            assert ours(y, p, average="micro", sample_weight=weight) == pytest.approx(expected)
            occurs = (true | predicted).any(axis=0)
            expected = 1.0
            if occurs.any():
                columns = true[:, occurs], predicted[:, occurs]
                each = [
                    theirs(a, b, **options) for a, b in zip(*(c.T for c in columns), strict=True)
                ]
                expected = np.mean(each)
            found = ours(y, p, average="macro", sample_weight=weight)
            assert found == pytest.approx(expected)


def test_rankings():
    """Complete rankings have SciPy's τ and ρ; pairs that the truth leaves open do not count."""
    rng = np.random.default_rng(0)
    true, predicted = (np.array([rng.permutation(5) + 1 for _ in range(9)]) for _ in range(2))
    taus = [kendalltau(a, b).statistic for a, b in zip(true, predicted, strict=True)]
    rhos = [spearmanr(a, b).statistic for a, b in zip(true, predicted, strict=True)]
    assert kendall_tau(true, predicted) == pytest.approx(np.mean(taus))
    assert spearman_rho(true, predicted) == pytest.approx(np.mean(rhos))
    weight = np.arange(9.0)
    weighted = np.average(taus, weights=weight)
    assert kendall_tau(true, predicted, sample_weight=weight) == pytest.approx(weighted)
    assert kendall_tau(["a>b=c"], ["a>b>c"]) == 1.0
    assert kendall_tau(["a>c"], ["b>c>a"]) == -1.0
    assert kendall_tau(["a>b>c"], ["a=b>c"]) == pytest.approx(2 / 3)
    assert kendall_tau([("a", "b"), ("b",)], [("a", "b"), ("b", "a")]) == 1.0
    assert np.isnan(kendall_tau(["a"], ["a>b"]))
    tied = ["a>b>c", "a=b=c"]
    assert kendall_tau(["a>b>c"] * 2, tied) == 0.5
    assert spearman_rho(["a>b>c"] * 2, tied) == pytest.approx(0.5)
    assert spearman_rho(tied, ["c>b>a"] * 2) == pytest.approx(-1.0)


def test_areas():
    """Pooled, macro and weighted areas; classes without true rows are left out of means."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, size=(20, 4))
    truth[:, 2] = 0
    scores = rng.uniform(size=(20, 4))
    pooled = sk.average_precision_score(truth.ravel(), scores.ravel())
    each = [sk.average_precision_score(truth[:, j], scores[:, j]) for j in (0, 1, 3)]
    assert au_prc(truth, scores) == pytest.approx(pooled)
    assert au_prc(truth, scores, average="macro") == pytest.approx(np.mean(each))
    weights = truth[:, [0, 1, 3]].sum(axis=0)
    expected = np.average(each, weights=weights)
    assert au_prc(truth, scores, average="weighted") == pytest.approx(expected)
    assert au_prc(sp.csr_array(truth), scores) == pytest.approx(pooled)


def test_class_paths():
    """Class paths are the sets of their classes and ancestors."""
    true, predicted = ["1/1", "1/2@2"], ["1/2", "1@2"]
    sets = [{"1", "1/1"}, {"1", "1/2", "2"}], [{"1", "1/2"}, {"1", "2"}]
    for score in (set_f1_score, set_jaccard_score, set_hamming_loss, subset_accuracy):
        assert score(true, predicted) == score(*sets)
    labels = ["1", "2", "1/1", "1/2"]
    matrix = [[1, 0, 1, 0], [1, 1, 0, 1]]
    scores = [[0.9, 0.2, 0.4, 0.3], [0.8, 0.7, 0.5, 0.1]]
    assert au_prc(true, scores, labels=labels) == au_prc(matrix, scores)
    assert au_prc(sets[0], scores, labels=labels) == au_prc(matrix, scores)


def test_columns_of_frames():
    """Frames are compared by the names of their columns."""
    frame = pd.DataFrame([[1, 0, 2], [2, 1, 0]], columns=["a", "b", "c"])
    assert set_f1_score(frame > 1, (frame > 1)[["c", "a", "b"]]) == 1.0
    assert kendall_tau(frame + 1, (frame + 1)[["c", "a", "b"]]) == 1.0


ERRORS = {
    "kinds of sets": (lambda: set_f1_score([{"a"}], [[1]]), "not of one kind"),
    "columns": (lambda: set_f1_score([[1, 0]], [[1]]), "2 labels and y_pred 1"),
    "average": (lambda: set_f1_score([[1, 0]], [[1, 0]], average="all"), "'example', 'micro'"),
    "rankings": (lambda: kendall_tau([[1, 2]], ["a>b"]), "same labels in the same form"),
    "shapes": (lambda: au_prc([[1, 0]], [[0.5]]), "two matrices of one shape"),
    "no class": (lambda: au_prc([[0, 0]], [[0.5, 0.5]]), "no class in any row"),
    "fewer labels": (
        lambda: set_hamming_loss([{"a", "b"}], [set()], labels=["a"]),
        "labels has 1 labels, and the sets have 2",
    ),
    "paths without labels": (lambda: au_prc(["1/2"], [[0.5, 0.5]]), "labels=model.classes_"),
    "an unknown class": (lambda: au_prc(["3"], [[0.5]], labels=["1"]), "class '3', which is not"),
    "area": (lambda: au_prc([[1, 0]], [[0.5, 0.5]], average="all"), "'pooled', 'macro'"),
}


@pytest.mark.parametrize(("call", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(call, message):
    """Errors name what was received and what to do."""
    with pytest.raises(ValueError, match=message):
        call()


def test_rankings_without_weight_are_left_out():
    """If the only rankings with weight order no pair, there is no mean."""
    true, predicted = ["a>b>c", "a=b=c"], ["a>b>c", "a>b>c"]
    for score in (kendall_tau, spearman_rho):
        assert np.isnan(score(true, predicted, sample_weight=[0.0, 1.0]))
