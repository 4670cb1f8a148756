"""Rankings are compared as rankings: spelling, form and the numbering of ranks do not matter."""

import itertools

import numpy as np
import pandas as pd
import pytest

from okforest import OKRandomForest
from okforest.kernels import Kendall
from okforest.metrics import kendall_tau
from okforest.uncertainty import ConformalSets, entropy, probabilities

LABELS = "abc"


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(60, 2))


@pytest.fixture
def orders(X):
    return [tuple(np.array(list(LABELS))[np.argsort(-np.r_[row, 0])].tolist()) for row in X]


def forest(**parameters):
    return OKRandomForest(20, kernel="kendall", random_state=0, **parameters)


def as_text(orders, separator=">"):
    return [separator.join(order) for order in orders]


def as_ranks(orders):
    return np.array([[order.index(label) + 1 for label in LABELS] for order in orders])


def as_frame(orders):
    return pd.DataFrame(as_ranks(orders), columns=list(LABELS))


PERMUTATIONS = list(itertools.permutations(LABELS))
FORMS = {"text": as_text, "orders": list, "frame": as_frame}


@pytest.mark.parametrize("candidate_form", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_candidates_in_any_form_are_those_of_the_training_form(X, orders, form, candidate_form):
    y, candidates = FORMS[form](orders), FORMS[candidate_form](PERMUTATIONS)
    model = ConformalSets(forest(), method="oob", candidates=candidates).fit(X, y)
    same = ConformalSets(forest(), method="oob", candidates=FORMS[form](PERMUTATIONS)).fit(X, y)
    assert model.achievable_coverage_ == 1.0
    sets, expected = (one.predict_sets(X) for one in (model, same))
    assert all(type(a) is type(b) for a, b in zip(sets, expected, strict=True))
    pairs = ((np.asarray(a)[0], np.asarray(b)[0]) for a, b in zip(sets, expected, strict=True))
    assert all(type(a) is type(b) for a, b in pairs)
    np.testing.assert_array_equal(np.concatenate(list(sets)), np.concatenate(list(expected)))
    contained = sets.contain(y)
    assert contained.mean() > 0.8
    for other in FORMS.values():
        np.testing.assert_array_equal(sets.contain(other(orders)), contained)


def test_positions_of_columns_are_the_labels_of_ranks(X, orders):
    candidates = list(itertools.permutations(range(3)))
    model = ConformalSets(forest(), method="oob", candidates=candidates).fit(X, as_ranks(orders))
    assert model.achievable_coverage_ == 1.0
    with pytest.raises(ValueError, match=r"label 'a'.*ranks of the labels \[0, 1, 2\]; pass ranks"):
        model.set_params(candidates=PERMUTATIONS).fit(X, as_ranks(orders))


def test_blanks_and_the_order_of_ties_do_not_matter(X, orders):
    spaced = as_text(PERMUTATIONS, " > ")
    model = ConformalSets(forest(), method="oob", candidates=spaced).fit(X, as_text(orders))
    assert model.achievable_coverage_ == 1.0
    tied = forest().fit(X, ["a=b>c", " b = a>c "] * 30)
    outputs, shares = probabilities(tied, X[:2])
    assert outputs.tolist() == ["a=b>c"]
    np.testing.assert_array_equal(shares, [[1.0], [1.0]])
    np.testing.assert_array_equal(entropy(tied, X), np.zeros(60))
    with pytest.raises(ValueError, match="there are 1 different candidates"):
        tied.predict_top(X[:1], k=2)


@pytest.mark.parametrize("same", [[1.5, 1.5, 3.0], [1, 1, 2], [2, 2, 3]])
def test_ranks_count_by_their_order(X, same):
    y = np.array([[1, 1, 3], same] * 30)
    model = forest().fit(X, y)
    assert len(probabilities(model, X).outputs) == 1
    sets = ConformalSets(forest(), method="oob").fit(X, y).predict_sets(X[:2])
    np.testing.assert_array_equal(sets.contain([[1, 1, 3], same]), [True, True])
    assert Kendall().check(y).dtype == y.dtype


def test_missing_ranks_stay_missing():
    ranks = Kendall().check([[2.0, np.nan, 3.0], [np.nan, 1.0, 1.0]])
    np.testing.assert_array_equal(ranks, [[1.0, np.nan, 2.0], [np.nan, 1.0, 1.0]])


def test_forms_that_cannot_be_converted_are_refused(X, orders):
    kernel = forest().fit(X, orders).kernel_
    with pytest.raises(ValueError, match="ties, and the training outputs are orders"):
        kernel.check(["a=b>c"])
    with pytest.raises(ValueError, match="y holds ranks, and the training outputs are orders"):
        kernel.check([[1, 2, 3]])
    with pytest.raises(ValueError, match="y holds ranks, and the training outputs are orders"):
        kernel.check(pd.DataFrame([[1, 2, 3]], columns=list("xyz")))


@pytest.mark.parametrize(
    ("y", "advice"),
    [
        (["a,b,c", "c,b,a"], r"'a,b,c' is read as a single label.*replace\(',', '>'\)"),
        (["a", "b;a"], r"'b;a' is read as a single label.*replace\(';', '>'\)"),
        (["a b c", "c b a"], r"replace\(' ', '>'\)"),
        (["a<b<c", "c<b<a"], r"most preferred first: '>'\.join\(reversed"),
        ([("a,b,c",), ("c,b,a",)], r"'a,b,c' is read as a single label"),
    ],
)
def test_other_separators_are_refused(X, y, advice):
    with pytest.raises(ValueError, match=advice):
        forest().fit(X, y * 30)
    with pytest.raises(ValueError, match=advice):
        kendall_tau(y, ["a>b"] * len(y))


@pytest.mark.parametrize(
    "y", [["Paris", "Rome", "Oslo"], [("Paris",), ("Rome",), ("Oslo",)], ["a=b"] * 3, [[1, 1]] * 3]
)
@pytest.mark.parametrize("kernel", ["kendall", "spearman", "mallows"])
def test_rankings_that_order_nothing_are_refused(X, y, kernel):
    """Classes would be fitted by a constant, with a perfect score."""
    with pytest.raises(ValueError, match=r"prefers a label to another.*kernel=\"dirac\""):
        OKRandomForest(2, kernel=kernel).fit(X[:30], y * 10)


def test_scores_on_rows_that_order_nothing(X):
    """Rows of a test set may all be partial; only training needs an order."""
    model = forest().fit(X[:30], ["a>b", "b>a", "c"] * 10)
    assert np.isfinite(model.score(X[:2], ["c", "c"]))
    assert np.isnan(kendall_tau(["c", "c"], ["c", "c"]))
