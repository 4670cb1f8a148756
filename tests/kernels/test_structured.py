"""Kernels on sets, hierarchies, rankings, strings, curves and tuples: formulas, and PSD."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from okforest.kernels import (
    Curves,
    Dice,
    Dirac,
    EditDistance,
    GapWeighted,
    GlobalAlignment,
    Hamming,
    Hierarchy,
    Jaccard,
    Kendall,
    Mallows,
    Mismatch,
    Spearman,
    Spectrum,
    Tuples,
    Wasserstein,
    as_kernel,
)
from reference import outputs as slow

PARENTS = {"a": None, "b": None, "c": "a", "d": ["a", "b"], "e": "d"}
SETS = st.lists(st.frozensets(st.sampled_from("abcde"), max_size=5), min_size=2, max_size=8).filter(
    any
)
WORDS = st.lists(st.text("ab", max_size=6), min_size=2, max_size=6)
ORDERS = st.lists(st.permutations("abcd").map(tuple), min_size=2, max_size=8)
PARTIAL = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True).map(tuple),
    min_size=2,
    max_size=8,
).filter(lambda orders: max(map(len, orders)) > 1)
NUMBERS = st.floats(-3.0, 3.0).map(lambda value: round(value, 2))
CURVES = st.lists(st.lists(NUMBERS, min_size=4, max_size=4), min_size=2, max_size=6)
RAGGED = st.lists(st.lists(NUMBERS, min_size=1, max_size=5), min_size=2, max_size=6)
TIED = st.lists(
    st.sampled_from(["a>b>c", "a=b>c", "c>a", "b=c", "c>b=a"]), min_size=2, max_size=8
).filter(lambda rankings: set(rankings) != {"b=c"})

CASES = {
    "Hamming": (Hamming(), SETS),
    "Hamming, weighted": (Hamming({"a": 1, "b": 2, "c": 3, "d": 0.5, "e": 1}, list("abcde")), SETS),
    "Jaccard": (Jaccard(), SETS),
    "Jaccard, weighted": (Jaccard([1, 2, 3, 0.5, 1], list("abcde")), SETS),
    "Dice": (Dice(), SETS),
    "Hierarchy": (Hierarchy(PARENTS), SETS),
    "Kendall": (Kendall(), ORDERS),
    "Kendall, partial": (Kendall(), PARTIAL),
    "Kendall, tied": (Kendall(), TIED),
    "Spearman": (Spearman(), ORDERS),
    "Spearman, partial": (Spearman(), PARTIAL),
    "Spearman, tied": (Spearman(), TIED),
    "Mallows": (Mallows(0.3), ORDERS),
    "Mallows, partial": (Mallows(0.3), PARTIAL),
    "Spectrum": (Spectrum(2), WORDS),
    "Spectrum, boundaries": (Spectrum(3, boundaries=True), WORDS),
    "Mismatch": (Mismatch(2, 1), WORDS),
    "GapWeighted": (GapWeighted(2, 0.7), WORDS),
    "EditDistance": (EditDistance(), WORDS),
    "Curves": (Curves(), CURVES),
    "Curves, slopes": (Curves(points=[0, 1, 3, 4], slope=0.5), CURVES),
    "Curves, resampled": (Curves(n_points=7), RAGGED),
    "Wasserstein": (Wasserstein(8), RAGGED),
    "GlobalAlignment": (GlobalAlignment(0.8), RAGGED),
    "Tuples": (
        Tuples(["linear", "dirac", Kendall()]),
        st.lists(
            st.tuples(NUMBERS, st.sampled_from("xyz"), st.permutations("abc").map(tuple)),
            min_size=2,
            max_size=6,
        ),
    ),
}


@pytest.mark.filterwarnings("ignore:.*have fewer than length:UserWarning")
@pytest.mark.parametrize(("kernel", "outputs"), CASES.values(), ids=CASES)
def test_methods_agree_and_gram_matrices_are_psd(kernel, outputs):
    """On random outputs: PSD, and Gram, cross-Gram, diagonal, pairs and features agree."""

    @given(outputs)
    def check(y):
        y = kernel.check(y)
        resolved = kernel.resolve(y)
        K = resolved(y)
        assert np.isfinite(K).all()
        np.testing.assert_allclose(K, K.T, atol=1e-10)
        assert np.linalg.eigvalsh(K).min() > -1e-8 * max(1.0, np.abs(K).max())
        np.testing.assert_allclose(resolved(y[:2], y), K[:2], atol=1e-10)
        np.testing.assert_allclose(resolved.diag(y), np.diag(K), atol=1e-10)
        np.testing.assert_allclose(resolved.pairs(y, y[::-1]), np.diag(K[:, ::-1]), atol=1e-10)
        if resolved.feature_dim(y) is not None:
            features = resolved.features(y)
            assert features.shape == (len(y), resolved.feature_dim(y))
            np.testing.assert_allclose(features @ features.T, K, atol=1e-9)
        again = resolved.check(y)
        assert again.shape == y.shape
        np.testing.assert_allclose(resolved.resolve(y[:1])(again), K, atol=1e-10)

    check()


@given(SETS)
def test_kernels_on_sets_equal_their_definitions(y):
    """Hamming, Jaccard and Dice, with sets and with the same sets as indicators."""
    labels = sorted(frozenset().union(*y)) or ["a"]
    indicators = np.array([[int(label in s) for label in labels] for s in y])
    definitions = {
        Hamming: lambda u, v: 1 - len(u ^ v) / len(labels),
        Jaccard: lambda u, v: len(u & v) / len(u | v) if u | v else 1.0,
        Dice: slow.f1,
    }
    for cls, definition in definitions.items():
        expected = np.array([[definition(u, v) for v in y] for u in y])
        kernel = cls(labels=labels)
        np.testing.assert_allclose(kernel(kernel.check(y)), expected, atol=1e-12)
        np.testing.assert_allclose(cls()(cls().check(indicators)), expected, atol=1e-12)
        np.testing.assert_allclose(
            cls()(cls().check(sp.csr_array(indicators))), expected, atol=1e-12
        )


@pytest.mark.parametrize("cls", [Hamming, Jaccard, Dice])
def test_labels_without_training_rows(cls):
    """Kernels are PSD, and features leave out labels that were not in the training sets."""
    kernel = cls()
    train = kernel.check([{"a"}, {"b"}, {"a", "b"}, set()])
    new = kernel.check([{"z"}, {"a", "z"}, {"y", "z"}, {"y"}])
    kernel = kernel.resolve(train)
    both = np.concatenate([train, new])
    K = kernel(both)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    np.testing.assert_allclose(kernel.diag(both), np.diag(K))
    np.testing.assert_allclose(kernel.pairs(new, new[::-1]), np.diag(K[4:, 4:][:, ::-1]))
    if cls is Hamming:
        np.testing.assert_allclose(
            kernel.features(new) @ kernel.features(train).T, K[4:, :4], atol=1e-12
        )
        squares = kernel.diag(new)[1] + kernel.diag(train)[0] - 2 * K[5, 0]
        assert squares == pytest.approx(1.0)  # one label of two differs: 2 × ½


def test_forms_of_label_sets():
    """Canonical forms keep sets and matrices apart; frames give their labels."""
    matrix = np.array([[1, 0], [0, 1]])
    for y in (matrix, matrix.tolist(), matrix.astype(bool), pd.DataFrame(matrix)):
        assert Hamming().check(y).tolist() == matrix.tolist()
    assert Hamming().check([{"b", "a"}, set()]).tolist() == [{"a", "b"}, frozenset()]
    assert Hamming().learn_form(pd.DataFrame(matrix, columns=["x", "y"])).labels == ["x", "y"]
    assert Hamming().resolve(Hamming().check([{1, "1"}, {2}])).labels == [1, 2, "1"]


@given(ORDERS)
def test_ranking_kernels_equal_their_definitions(y):
    """Kendall and Mallows count pairs; Spearman correlates ranks; all forms agree."""
    n_pairs = 6
    d = np.array([[slow.discordant(u, v) for v in y] for u in y])
    ranks = np.array([[order.index(label) + 1 for label in "abcd"] for order in y])
    texts = [">".join(order) for order in y]
    rho = [[np.corrcoef(u, v)[0, 1] for v in ranks] for u in ranks]
    for form in (y, ranks, texts, [list(order) for order in y][:0] or ranks.astype(float)):
        np.testing.assert_allclose(Kendall()(Kendall().check(form)), 1 - 2 * d / n_pairs, atol=1e-9)
        np.testing.assert_allclose(Mallows(0.2)(Mallows().check(form)), np.exp(-0.2 * d), atol=1e-9)
        np.testing.assert_allclose(Spearman()(Spearman().check(form)), rho, atol=1e-9)


def test_partial_rankings_are_means_over_completions():
    """Ranks that are not known are replaced by their means over all completions."""
    kernel = Spearman(labels=list("abc"))
    completions = kernel.check(["b>a>c", "b>c>a", "c>b>a", "a>b>c", "a>c>b", "c>a>b"])
    partial = kernel.features(kernel.check(["b>a"]))
    agreeing = kernel.features(completions[[0, 1, 2]])
    np.testing.assert_allclose(partial[0], agreeing.mean(axis=0), atol=1e-12)
    with_nan = kernel.features(kernel.check(np.array([[2.0, 1.0, np.nan]])))
    np.testing.assert_allclose(with_nan, partial)


def test_weights_of_a_hierarchy():
    """Weights fall with depth, and average over parents; ancestors are added."""
    kernel = Hierarchy(PARENTS, decay=0.5)
    y = kernel.check([{"e"}, {"c"}, {"b"}])
    assert y[0] == {"e", "d", "a", "b"}
    kernel = kernel.resolve(y)
    assert kernel(y)[0].tolist() == [1 + 1 + 0.5 + 0.25, 1.0, 1.0]
    matrix = Hierarchy(PARENTS, decay=0.5)
    indicators = matrix.check(np.array([[0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]))
    assert indicators.tolist() == [[1, 1, 0, 1, 1], [1, 0, 1, 0, 0]]
    assert matrix.resolve(indicators)(indicators)[0].tolist() == [2.75, 1.0]
    positions = Hierarchy([-1, 0, 0])
    assert positions.check(np.array([[0, 1, 0]])).tolist() == [[1, 1, 0]]


def test_curves_integrate_products():
    """The trapezoidal rule, on a grid that is not even; slopes are added."""
    points = np.array([0.0, 0.5, 2.0, 3.0])
    kernel = Curves(points)
    y = kernel.check([np.sin(points), points**2])
    assert kernel(y)[0, 1] == pytest.approx(np.trapezoid(np.sin(points) * points**2, points))
    slopes = [np.diff(curve) / np.diff(points) for curve in y]
    expected = kernel(y)[0, 1] + 2.0 * (slopes[0] * slopes[1]) @ np.diff(points)
    assert Curves(points, slope=2.0)(y)[0, 1] == pytest.approx(expected)


def test_outputs_in_frames_and_series():
    """Rows of a frame are curves or samples; a series holds sets, rankings, paths or strings."""
    values = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]])
    for kernel in (Curves(), Wasserstein(3), GlobalAlignment()):
        frame = kernel.check(pd.DataFrame(values, columns=["a", "b", "c"]))
        np.testing.assert_array_equal(frame, kernel.check(values))
    for kernel, y in (
        (Hamming(), [{"a"}, set()]),
        (Kendall(), ["a>b", "b>a"]),
        (Kendall(), [("a", "b"), ("b", "a")]),
        (Hierarchy(), ["1/2", "1@3"]),
        (Spectrum(), ["abc", "ab"]),
    ):
        assert kernel.check(pd.Series(y, index=[3, 1])).tolist() == kernel.check(y).tolist()


def test_columns_of_frames_are_compared_by_name():
    """A frame with other columns is an error; the same columns may have any order."""
    sets = pd.DataFrame([[1, 0, 0], [0, 1, 1]], columns=["a", "b", "c"])
    ranks = pd.DataFrame([[1, 2, 3], [3, 1, 2]], columns=["a", "b", "c"])
    hierarchy = Hierarchy({"a": None, "b": None, "c": "b"})
    for kernel, frame in ((Hamming(), sets), (hierarchy, sets), (Kendall(), ranks)):
        learnt = kernel.learn_form(frame).resolve(frame.to_numpy())
        found = learnt.check(frame[["c", "a", "b"]])
        np.testing.assert_array_equal(found, frame.to_numpy())
        pd.testing.assert_frame_equal(learnt.in_form(found), frame)
        with pytest.raises(ValueError, match="'c' is missing, and 'z' is unknown"):
            learnt.check(frame.rename(columns={"c": "z"}))


def test_orders_in_lists():
    """Lists of text are orders; numbers from 0 may be orders or ranks, and are refused."""
    kernel = Kendall()
    assert kernel.check([["b", "a"], ["a", "b", "c"]]).tolist() == [("b", "a"), ("a", "b", "c")]
    for y in ([[2, 0, 1], [0, 1, 2]], np.array([[1, 1, 2], [2, 0, 1]])):
        with pytest.raises(ValueError, match=r"pass tuples.*; if it holds ranks, pass y \+ 1"):
            kernel.check(y)
    with pytest.raises(ValueError, match=r"lists of different lengths; pass .* as tuples"):
        kernel.check([[0, 1], [1, 0, 2]])


SCORES = {
    "floats": [[0.2, 3.1, 1.4], [2.0, 0.1, 0.7]],
    "negative floats": [[-0.2, -3.1, -1.4], [-2.0, -0.1, -0.7]],
    "integers": [[3, 10, 7], [9, 1, 4]],
    "stars": [[5, 5, 4, 4, 4], [1, 3, 5, 5, 2]],
    "stars, some unknown": [[5.0, 5.0, 4.0, np.nan, 4.0], [5.0, np.nan, 5.0, 4.5, 2.0]],
    "negated ranks": [[-1, -3, -2], [-2, -1, -3]],
}


@pytest.mark.parametrize("kernel", [Kendall(), Spearman(), Mallows()], ids=repr)
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_scores_are_not_ranks(kernel, scores):
    """Scores would be predicted in the reverse order; the conversion in the message works."""
    y = np.array(scores)
    known = ~np.isnan(y)
    options = {} if known.all() else {"nan_policy": "omit"}
    conversion = "".join(
        ["rankdata(-y, axis=1", *(f", {k}={v!r}" for k, v in options.items()), ")"]
    )
    message = rf"y\[0\] is \[.*not ranks: ranks of {y.shape[1]} labels .*{re.escape(conversion)}"
    with pytest.raises(ValueError, match=message):
        kernel.check(scores)
    ranks = kernel.check(rankdata(-y, axis=1, **options))
    for row, score, has_score in zip(ranks, y, known, strict=True):
        best = np.flatnonzero(has_score)[score[has_score].argmax()]
        assert row[best] == 1
        np.testing.assert_array_equal(np.isnan(row), ~has_score)


@pytest.mark.parametrize(
    "ranks",
    [
        [1.0, 3.0],  # a rank is skipped, and no label lacks one
        [1.0, 4.0, np.nan],  # two are skipped, and one label lacks one
        [2.0, 2.0, 3.0, 3.0, np.nan],  # one is skipped before the first labels, and none later
    ],
)
def test_gaps_among_ranks(ranks):
    """There are as many as labels without a rank, and a gap is before all labels that follow."""
    with pytest.raises(ValueError, match=r"y\[0\] is .* which are not ranks"):
        Kendall().check([ranks])


@pytest.mark.parametrize("method", ["min", "average", "max", "dense"])
def test_ranks_of_every_convention(method):
    """Ties may be ranked by any method of SciPy, and labels without a rank may leave gaps."""
    scores = list(itertools.product(range(3), repeat=4))
    ranks = rankdata(scores, axis=1, method=method).astype(float)
    expected = rankdata(scores, axis=1, method="min")
    np.testing.assert_array_equal(Kendall().check(ranks), expected)
    for hidden in range(4) if method != "dense" else ():
        partial = ranks.copy()
        partial[:, hidden] = np.nan
        others = np.delete(np.array(scores), hidden, axis=1)
        found = np.delete(Kendall().check(partial), hidden, axis=1)
        np.testing.assert_array_equal(found, rankdata(others, axis=1, method="min"))


def test_classes_may_be_tuples():
    """A tuple that is a class is one parent; another one holds several."""
    parents = {("x", 1): None, ("x", 2): ("x", 1), "y": (("x", 1), ("x", 2))}
    closed = Hierarchy(parents).check([{("x", 2)}, {"y"}])
    assert closed.tolist() == [{("x", 1), ("x", 2)}, {("x", 1), ("x", 2), "y"}]


def test_wasserstein_distance():
    """The squared distance in feature space is the distance of sorted samples of one size."""
    kernel = Wasserstein(50)
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=50), 3 + rng.normal(size=50)
    K = kernel(kernel.check([u, v]))
    expected = ((np.sort(u) - np.sort(v)) ** 2).mean()
    assert K[0, 0] + K[1, 1] - 2 * K[0, 1] == pytest.approx(expected)


def test_parts_of_tuples_count_alike():
    """By default every part is scaled to variance 1 in its feature space."""
    rng = np.random.default_rng(0)
    y = list(zip(1000 * rng.normal(size=50), rng.integers(0, 3, 50), strict=True))
    kernel = Tuples(["linear", "dirac"])
    y = kernel.check(y)
    resolved = kernel.resolve(y)
    for weight, part, outputs_of_part in zip(
        resolved.weights, resolved.parts, resolved.columns(y), strict=True
    ):
        K = weight * part(outputs_of_part)
        assert np.trace(K) / 50 - K.mean() == pytest.approx(1.0)


BAD = {
    "a number among sets": (Hamming(), [{"a"}, 3], "among sets of labels"),
    "a value of 2": (Hamming(), [[0, 2], [1, 0]], "holds the value 2"),
    "rows of labels": (Hamming(), [["a"], ["a", "b"]], "different lengths"),
    "labels as text": (Hamming(), [["a", "b"], ["b", "c"]], "pass sets"),
    "one column": (Jaccard(), [1, 0, 1], "one column per label"),
    "missing set": (Hamming(), [{"a"}, None], "among sets of labels"),
    "text with a separator": (Hamming(), ["a;b", "b"], r"set\(text.split\(';'\)\) - \{''\}"),
    "array of text": (Jaccard(), np.array(["a,b", "b"]), r"set\(text.split\(','\)\)"),
    "series of text": (Jaccard(), pd.Series(["a|b", None]), r"split\('\|'\).*fillna"),
    "one label as text": (Hamming(), ["a", "b"], 'kernel="dirac"'),
    "the empty label": (Hamming(), [{"a"}, {""}], "an empty set has no labels"),
    "repeated label": (Kendall(), ["a>b>a"], "'a' more than once"),
    "repeated label in an order": (Spearman(), [("a", "b", "b")], "'b' more than once"),
    "empty ranking": (Kendall(), [()], "is empty"),
    "text among orders": (Kendall(), [("a", "b"), "b>a"], "among orders"),
    "missing path": (Hierarchy(), ["a/b", None, "a"], "contains None, a missing value"),
    "missing first path": (Hierarchy(), [np.nan, "a/b"], "contains nan, a missing value"),
    "missing path in a series": (Hierarchy(), pd.Series(["a", None]), "a missing value"),
    "number among paths": (
        Hierarchy(),
        ["a/b", 3],
        "mixes class paths and other values, such as 3",
    ),
    "sequences of NaN": (
        Spectrum(),
        np.full((2, 3), np.nan),
        r"y\[0\] holds nan, a missing symbol",
    ),
    "missing symbol": (EditDistance(), [("a",), ("b", None)], r"y\[1\] holds None, a missing"),
    "no columns": (GapWeighted(), np.empty((4, 0)), r"shape \(4, 0\), so no sequence has a symbol"),
    "several variables": (
        GlobalAlignment(),
        np.ones((3, 6, 2)),
        r"\(6, 2\).*Tuples\(\[kernel\] \* 2",
    ),
    "no rank": (Kendall(), [[np.nan, np.nan]], "without any rank"),
    "infinite rank": (Kendall(), [[1.0, np.inf]], "infinite ranks"),
    "unknown class": (Hierarchy(PARENTS), [{"z"}], "'z' is not a class"),
    "cycle": (Hierarchy({"a": "b", "b": "a"}), [{"a"}], "has a cycle"),
    "unknown parent": (Hierarchy({"a": "b"}), [{"a"}], "not a class itself"),
    "no hierarchy": (Hierarchy(), [{1, 2}], "hierarchy of the classes is not known"),
    "columns of a hierarchy": (Hierarchy([-1, 0]), [[1, 1, 0]], "parents has 2 classes"),
    "damaged path": (Hierarchy(), ["1//2"], "not a class path"),
    "text and others": (Spectrum(), ["a", 1], "mixes strings and other values, such as 1"),
    "missing string": (Spectrum(), ["a", np.nan], "contains nan, a missing value"),
    "numbers as strings": (Spectrum(), [1, 2], "pass strings"),
    "ragged curves": (Curves(), [[1, 2], [1, 2, 3]], "different lengths.*n_points"),
    "empty curve": (GlobalAlignment(), [[1.0], []], "at least one number"),
    "missing value": (Curves(), [[1.0, np.nan]], "must be known"),
    "points": (Curves(points=[0, 1]), [[1, 2, 3]], "one point per value"),
    "descending points": (Curves(points=[1, 0]), [[1, 2]], "ascending"),
    "empty sample": (Wasserstein(), [[1.0], []], "at least one number"),
    "parts": (Tuples(["linear", "dirac"]), [(1.0,)], "has 1 parts"),
    "a part": (Tuples(["linear", Kendall()]), [(1.0, "a>a")], "part 1 of the outputs"),
    "not a tuple": (Tuples(["linear", "dirac"]), [3.0], "tuple of several parts"),
    "no kernels": (Tuples([]), [()], "kernels is empty"),
}


@pytest.mark.parametrize(("kernel", "y", "message"), BAD.values(), ids=BAD)
def test_bad_outputs(kernel, y, message):
    """Errors name what was received and what to do."""
    with pytest.raises(ValueError, match=message):
        kernel.check(y)


BAD_PARAMETERS = {
    "weight": (Hamming({"a": -1.0}), [{"a"}], "must be positive"),
    "missing weight": (Hamming({"b": 1.0}), [{"a"}], "no entry for the label 'a'"),
    "weights": (Hamming([1.0, 2.0]), [{"a"}], "one weight per label"),
    "no labels": (Jaccard(), [set(), set()], "every set in y is empty"),
    "rate": (Mallows(0.0), ["a>b"], "'rate' parameter of Mallows"),
    "decay": (GapWeighted(2, 1.5), ["ab"], "'decay' parameter of GapWeighted"),
    "decay of a hierarchy": (Hierarchy(decay=0.0), ["1/2"], "'decay' parameter of Hierarchy"),
    "length": (Spectrum(0), ["ab"], "'length' parameter of Spectrum must be an int"),
    "mismatches": (Mismatch(2, 2), ["ab"], "fewer mismatches than symbols"),
    "negative mismatches": (Mismatch(2, -1), ["ab"], "'mismatches' parameter of Mismatch"),
    "sigma": (EditDistance(-1.0), ["ab"], "'sigma' parameter of EditDistance"),
    "slope": (Curves(slope=-1.0), [[1.0, 2.0]], "'slope' parameter of Curves"),
    "weights of parts": (Tuples(["linear"], [0.0]), [(1.0,), (2.0,)], "one positive number"),
}


@pytest.mark.parametrize(("kernel", "y", "message"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_bad_parameters(kernel, y, message):
    """Parameters are checked when a model is fitted."""
    with pytest.raises(ValueError, match=message):
        kernel.resolve(kernel.check(y))


def test_names():
    """Kernels with useful defaults have names."""
    assert isinstance(as_kernel("hamming"), Hamming)
    assert isinstance(as_kernel("spearman"), Spearman)
    assert isinstance(as_kernel("mallows"), Mallows)


def test_numbers_are_not_classes():
    """Dirac takes whole numbers as classes, and refuses others."""
    assert Dirac().check([1.0, 2.0]).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Unknown label type"):
        Dirac().check([0.5, 1.0])


def test_weights_of_classes_follow_the_columns():
    """A parent may come after its children in a matrix."""
    kernel = Hierarchy([2, 2, -1], decay=0.5)
    y = kernel.check(np.array([[1, 0, 0], [0, 0, 1]]))
    np.testing.assert_allclose(kernel.resolve(y).weight_of_classes(), [0.5, 0.5, 1.0])
    np.testing.assert_allclose(kernel.resolve(y)(y), [[1.5, 1.0], [1.0, 1.0]])


def test_quantiles_at_the_steps_of_a_distribution():
    """A level that the share of the values reaches exactly, up to rounding, is reached."""
    for n_levels, n in ((7, 42), (19, 38), (21, 42), (4, 6), (64, 5)):
        steps = [-(-(2 * i + 1) * n // (2 * n_levels)) for i in range(n_levels)]  # exact, ⌈ ⌉
        found = Wasserstein(n_levels).check([np.arange(1.0, n + 1)])
        np.testing.assert_array_equal(found[0], steps)


@pytest.mark.parametrize(
    ("y", "place"),
    [
        (["a>b", np.nan, "b>a"], 1),
        ([None, "a>b"], 0),
        (pd.Series(["a>b", "b>a", None]), 2),
        ([("a", "b"), None], 1),
    ],
)
def test_a_missing_ranking_is_named(y, place):
    with pytest.raises(
        ValueError, match=rf"y\[{place}\] is (nan|None), a missing ranking; drop such"
    ):
        Kendall().check(y)


def test_a_weight_of_an_unknown_label_is_named():
    kernel = Hamming(weights={"sea": 2.0, "bogus": 1.0})
    with pytest.raises(ValueError, match=r"no entry for the label 'sand'.*'bogus' is not a label"):
        kernel.resolve(kernel.check([{"sea"}, {"sand"}]))


def test_points_of_resampled_curves():
    curves = [[0.0, 1.0, 0.0], [1.0, 2.0, 3.0, 4.0]]
    with pytest.raises(ValueError, match="4 values, after they are resampled to n_points"):
        Curves(points=[0.0, 0.5, 1.0], n_points=4).check(curves)
    assert Curves(points=[0.0, 0.1, 0.5, 1.0], n_points=4).check(curves).shape == (2, 4)
