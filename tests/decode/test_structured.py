"""Decoders of sets, hierarchies, rankings, strings, curves and tuples: optimal by brute force."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from okforest.decode import (
    Borda,
    Cardinality,
    EulerianPath,
    ExpectedF1,
    ExpectedJaccard,
    Hierarchical,
    Kemeny,
    Medoid,
    Mode,
    Parts,
    Quantiles,
    Threshold,
    as_decoder,
)
from okforest.decode.base import HeldOut
from okforest.decode.hierarchies import best_closed_sets
from okforest.decode.rankings import _local_search, _preferences
from okforest.decode.strings import eulerian_path
from okforest.kernels import (
    RBF,
    Curves,
    Dice,
    Dirac,
    Hamming,
    Hierarchy,
    Jaccard,
    Kendall,
    Linear,
    Mallows,
    Spearman,
    Spectrum,
    Tuples,
    Wasserstein,
)
from okforest.kernels.sequences import kmers
from okforest.weights import Span, as_weights
from reference import outputs as slow

LABELS = "abcd"
SETS = st.lists(st.frozensets(st.sampled_from(LABELS)), min_size=1, max_size=6).filter(any)


def weights(n, least=-0.25):
    """Return weights with sum one; they may be negative, as in boosting."""
    values = st.floats(least, 1.0, width=32).map(lambda w: round(w, 3))
    return arrays(np.float64, n, elements=values)


def span_of(kernel, y):
    y = kernel.check(y)
    return Span(kernel.resolve(y), y)


@given(st.data())
def test_decoders_of_sets_are_optimal(data):
    """Each maximises its own weighted score over all sets; signs of weights do not matter."""
    y = data.draw(SETS)
    w = data.draw(weights(len(y)))
    labels = sorted(frozenset().union(*y))
    candidates = slow.subsets(labels)

    def value(score, chosen):
        return sum(weight * score(chosen, output) for weight, output in zip(w, y, strict=True))

    found = ExpectedF1().decode([w], span_of(Dice(), y))[0]
    assert value(slow.f1, found) == pytest.approx(max(value(slow.f1, c) for c in candidates))
    found = Threshold().decode([w / (w.sum() or 1)], span_of(Hamming(), y))[0]
    if w.sum() > 0.1:
        best = max(-value(lambda a, b: len(a ^ b), c) for c in candidates)
        assert -value(lambda a, b: len(a ^ b), found) == pytest.approx(best, abs=1e-6)
    found = Mode().decode([w], span_of(Jaccard(), y))[0]
    assert found in y
    assert value(lambda a, b: a == b, found) == pytest.approx(
        max(value(lambda a, b: a == b, c) for c in y)
    )
    found = ExpectedJaccard().decode([w], span_of(Hamming(), y))[0]
    support = [output for output, weight in zip(y, w, strict=True) if weight] or y
    assert found in support
    assert value(slow.jaccard, found) == pytest.approx(max(value(slow.jaccard, c) for c in support))
    found = Cardinality().decode([w], span_of(Hamming(), y))[0]
    same_size = [c for c in candidates if len(c) == len(found)]
    assert value(lambda a, b: len(a & b), found) == pytest.approx(
        max(value(lambda a, b: len(a & b), c) for c in same_size)
    )
    expected_size = sum(weight * len(output) for weight, output in zip(w, y, strict=True))
    assert abs(len(found) - np.clip(expected_size, 0, len(labels))) <= 0.5 + 1e-6


@pytest.mark.parametrize(
    "decoder", [Threshold(), Cardinality(), ExpectedF1(), ExpectedJaccard(), Mode()]
)
def test_forms_of_sets_agree(decoder):
    """Sets, integers, booleans, and the linear kernel on indicators give the same labels."""
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(30, 5))
    W = rng.dirichlet(np.ones(30) / 10, size=8)
    expected = decoder.decode(W, span_of(Hamming(), Y))
    assert expected.dtype == Y.dtype
    assert (decoder.decode(W, span_of(Jaccard(), Y.astype(bool))) == expected).all()
    assert (decoder.decode(W, span_of(Linear(), Y)) == expected).all()
    assert (decoder.decode(W, span_of(RBF(1.0, base=Hamming()), Y)) == expected).all()
    sets = decoder.decode(W, span_of(Hamming(), [set(np.flatnonzero(row)) for row in Y]))
    assert [sorted(s) for s in sets] == [np.flatnonzero(row).tolist() for row in expected]


@pytest.mark.parametrize("kernel", [Hamming, Dice, Jaccard])
def test_the_default_is_the_training_set_of_the_largest_expected_jaccard_score(kernel):
    """Labels count by their weights; no label need have a probability above one half."""
    y = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]])
    w = [0.36, 0.32, 0.32]
    (found,) = as_decoder("auto", kernel()).decode([w], span_of(kernel(), y))
    assert found.tolist() == [0, 1, 1, 0]
    span = span_of(kernel([9.0, 1.0, 9.0, 9.0]), y)
    (found,) = as_decoder("auto", span.kernel).decode([w], span)
    assert found.tolist() == [1, 0, 0, 0]


def test_what_decoders_compute_from_training_outputs_is_kept(monkeypatch):
    """The second prediction of one row computes no kernel values."""
    rng = np.random.default_rng(0)
    span = span_of(Hamming(), rng.integers(0, 2, size=(20, 5)))
    W = rng.dirichlet(np.ones(20), size=1)
    first = ExpectedJaccard().decode(W, span)
    monkeypatch.setattr(Jaccard, "__call__", None)
    assert (ExpectedJaccard().decode(W, span) == first).all()


def test_expected_f1_in_blocks(monkeypatch):
    """Predictions are decoded some at a time."""
    import okforest.decode.label_sets as module

    rng = np.random.default_rng(1)
    span = span_of(Dice(), rng.integers(0, 2, size=(20, 4)))
    W = rng.dirichlet(np.ones(20) / 5, size=9)
    whole = ExpectedF1().decode(W, span), Mode().decode(W, span)
    monkeypatch.setattr(module, "BLOCK_VALUES", 40)
    for decoder, expected in zip((ExpectedF1(), Mode()), whole, strict=True):
        np.testing.assert_array_equal(decoder.decode(W, span), expected)


@given(st.data())
def test_tuned_thresholds_are_optimal(data):
    """On the held-out rows, no other threshold has a better score."""
    n = data.draw(st.integers(2, 8))
    Y = data.draw(arrays(np.int64, (n, 2), elements=st.integers(0, 1)))
    assume(Y.any(axis=0).all())
    W = np.array([data.draw(weights(n, least=0.0)) + 1e-6 for _ in range(n)])
    W /= W.sum(axis=1, keepdims=True)
    span = span_of(Hamming(), Y)
    held_out = [HeldOut(as_weights(W), span, span.outputs)]
    P = W @ Y
    cuts = np.r_[-1.0, np.unique(P), (np.unique(P)[1:] + np.unique(P)[:-1]) / 2]

    def f1(y, p):
        return 2 * (y & p).sum() / (y.sum() + p.sum())

    macro = Threshold("macro_f1").tune(held_out, span).threshold
    errors = Threshold("hamming").tune(held_out, span).threshold
    for j in range(2):
        y = Y[:, j] == 1
        assert f1(y, P[:, j] > macro[j]) == pytest.approx(max(f1(y, P[:, j] > c) for c in cuts))
        fewest = min((y != (P[:, j] > c)).sum() for c in cuts)
        assert (y != (P[:, j] > errors[j])).sum() == fewest
    micro = Threshold("micro_f1").tune(held_out, span).threshold
    assert f1(Y == 1, micro < P) == pytest.approx(max(f1(Y == 1, c < P) for c in cuts))
    example = Threshold("example_f1").tune(held_out, span).threshold

    def by_example(cut):
        sets = [
            (frozenset(np.flatnonzero(a)), frozenset(np.flatnonzero(b)))
            for a, b in zip(Y, cut < P, strict=True)
        ]
        return np.mean([slow.f1(a, b) for a, b in sets])

    assert by_example(example) == pytest.approx(max(by_example(c) for c in cuts))


@given(st.data())
def test_closed_sets_are_optimal(data):
    """The best set closed under parents, in trees and in other hierarchies."""
    n = data.draw(st.integers(1, 6))
    gains = data.draw(arrays(np.float64, n, elements=st.floats(-1, 1, width=16)))
    is_tree = data.draw(st.booleans())
    parents = [
        data.draw(st.lists(st.integers(0, j - 1), unique=True, max_size=1 if is_tree else 3))
        if j
        else []
        for j in range(n)
    ]
    (found,) = best_closed_sets(gains[None], parents)
    assert all(found[p] for j in range(n) for p in parents[j] if found[j])
    best = max(
        sum(gains[j] for j in chosen)
        for chosen in slow.subsets(range(n))
        if all(p in chosen for j in chosen for p in parents[j])
    )
    assert gains[found].sum() == pytest.approx(best, abs=1e-6)


def test_long_chains_of_classes():
    """Classes may be given children first, however deep the hierarchy is."""
    n = 2000
    chain = [[j + 1] for j in range(n - 1)] + [[]]
    gains = np.full(n, -1.0)
    gains[1000], gains[0] = 5000.0, 1.0
    assert np.flatnonzero(best_closed_sets(gains[None], chain)[0]).tolist() == list(range(1000, n))


def test_hierarchical_decoding_predicts_uncertain_classes():
    """Classes of probability below one half are predicted, unless an empty set is more likely."""
    leaves = [*(f"1/{j}" for j in range(4)), "2/1", "2/2"]
    kernel = Hierarchy({"1": None, "2": None} | {leaf: leaf[0] for leaf in leaves})
    span = span_of(kernel, [*({leaf} for leaf in leaves), set(), set()])
    W = [[0.1, 0.1, 0.1, 0.1, 0.3, 0.3, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0, 0.1, 0.0, 0.4, 0.4]]
    assert Hierarchical().decode(W, span).tolist() == [{"1", "2", "2/1", "2/2"}, set()]
    assert Hierarchical(0.5).decode(W, span).tolist() == [{"2"}, set()]


def test_hierarchical_scores_are_those_of_sets_that_are_not_empty():
    """More than half of the sets are empty; the others are compared with what they would be."""
    span = span_of(Hierarchy({"1": None, "2": "1"}, decay=0.5), [set(), {"1"}, {"1", "2"}])
    # Probabilities are 0.45 and 0.3: the best score is 1.2 / (1.5 + 0.6 / 0.45) = 0.42.
    assert Hierarchical().decode([[0.55, 0.15, 0.3]], span).tolist() == [set()]
    assert Hierarchical().decode([[0.4, 0.25, 0.35]], span).tolist() == [{"1", "2"}]


def test_hierarchical_in_blocks(monkeypatch):
    """Predictions are decoded some at a time."""
    import okforest.decode.hierarchies as module

    rng = np.random.default_rng(1)
    y = ["1/1", "1/2", "2", "2/1@1", "3"] * 3
    kernel = Hierarchy()
    span = Span(kernel.resolve(kernel.check(y)), kernel.check(y))
    W = rng.dirichlet(np.ones(15) / 3, size=7)
    expected = Hierarchical().decode(W, span)
    monkeypatch.setattr(module, "BLOCK_VALUES", 13)
    assert Hierarchical().decode(W, span).tolist() == expected.tolist()


def test_hierarchical_decoding_is_consistent_and_nearest():
    """Predicted sets are closed, and no closed set is nearer in feature space."""
    kernel = Hierarchy({"a": None, "b": None, "c": "a", "d": ["a", "b"]}, decay=0.6)
    y = kernel.check([{"c"}, {"d"}, {"b"}, {"a"}, set()])
    span = Span(kernel.resolve(y), y)
    closed = kernel.check([s for s in slow.subsets("abcd") if kernel.check([s])[0] == s])
    rng = np.random.default_rng(0)
    W = rng.normal(0.3, 0.5, size=(40, 5))
    W /= W.sum(axis=1, keepdims=True)
    W = W[np.abs(W).max(axis=1) < 5]
    found = Hierarchical(0.5).decode(W, span)
    assert set(found) <= set(closed)
    for w, nearest in zip(W, found, strict=True):
        distances = {
            c: span.kernel.diag(closed[[i]])[0] - 2 * span.inner([w], closed[[i]])[0, 0]
            for i, c in enumerate(closed)
        }
        assert distances[nearest] == pytest.approx(min(distances.values()), abs=1e-6)


@given(st.data())
def test_decoders_of_rankings_are_optimal(data):
    """Kemeny is nearest with the Kendall kernel, Borda with the Spearman kernel."""
    n = data.draw(st.integers(1, 5))
    orders = st.lists(st.sampled_from(LABELS), min_size=1, max_size=4, unique=True).map(tuple)
    y = data.draw(st.lists(orders, min_size=n, max_size=n))
    w = data.draw(weights(n))
    labels = sorted({label for o in y for label in o})
    everything = [tuple(p) for p in permutations(labels)]
    for kernel, decoder in ((Kendall(labels), Kemeny()), (Spearman(labels), Borda())):
        span = span_of(kernel, y)
        found = decoder.decode([w], span)
        inner = span.inner([w], kernel.check(everything))[0]
        value = span.inner([w], kernel.check(found.tolist()))[0, 0]
        assert value == pytest.approx(inner.max(), abs=1e-9)


@given(arrays(np.float64, (1, 10), elements=st.floats(-1, 1, width=16)))
def test_local_search_cannot_be_improved_by_one_move(signs):
    """No label has a better place, and the value is at least the start's."""
    (M,) = _preferences(signs, 5)

    def value(order):
        return sum(M[order[i], order[j]] for i in range(5) for j in range(i + 1, 5))

    start = np.arange(5)
    found = _local_search(M, start)
    assert value(found) >= value(start) - 1e-9
    for label in range(5):
        others = [j for j in found if j != label]
        for place in range(5):
            moved = [*others[:place], label, *others[place:]]
            assert value(moved) <= value(found) + 1e-9


def test_many_labels_are_searched_locally():
    """Above max_exact the search starts at the Borda ranking, and finds a consensus."""
    rng = np.random.default_rng(0)
    ranks = np.array([rng.permutation(14) + 1 for _ in range(3)])
    span = span_of(Kendall(), ranks)
    assert Kemeny().decode([[0.2, 0.6, 0.2]], span).tolist() == ranks[1:2].tolist()


def test_rankings_come_back_as_they_were_given():
    """Ranks as integers or floats, orders as tuples, text as text."""
    W = [[0.1, 0.9]]
    for y, expected in (
        (np.array([[1, 2, 3], [3, 1, 2]]), [[3, 1, 2]]),
        (["a>b>c", "b>c>a"], ["b>c>a"]),
        ([("a", "b", "c"), ("b", "c", "a")], [("b", "c", "a")]),
    ):
        for kernel in (Kendall(), Spearman()):
            found = as_decoder("auto", kernel).decode(W, span_of(kernel, y))
            assert found.tolist() == expected
    floats = Borda().decode(W, span_of(Spearman(), np.array([[1.0, 2.0], [2.0, np.nan]])))
    assert floats.dtype == float


@given(st.text("ab", min_size=0, max_size=9), st.integers(2, 4), st.booleans())
def test_eulerian_paths_have_the_given_kmers(word, k, boundaries):
    """The k-mers of a word lead to a word with the same k-mers; others to none."""
    counts = Counter(kmers(word, k, boundaries))
    found = eulerian_path(counts, boundaries)
    assert found is not None
    assert Counter(kmers(found, k, boundaries)) == counts
    if counts:
        kmer = next(iter(counts))
        broken = counts + Counter({("z",) * (k - 1) + (kmer[0],): 1, ("y",) * k: 1})
        assert eulerian_path(broken, boundaries) is None


def test_reconstruction_and_fallback():
    """One training word comes back; where the k-mers make no word, the nearest known one does."""
    words = ["forest", "kernel", "leaf"]
    span = span_of(Spectrum(2, boundaries=True), words)
    assert EulerianPath().decode(np.eye(3), span).tolist() == words
    W = np.array([[0.5001, 0.4999, 0.0]])
    assert EulerianPath().decode(W, span).tolist() == ["forest"]
    W = np.array([[0.6, 0.6, -0.2]])
    assert EulerianPath().reconstruct(W, span) == [None]
    assert EulerianPath().decode(W, span)[0] in words
    text = span_of(Spectrum(2, boundaries=True), np.array(words))
    assert EulerianPath().decode(np.eye(3), text).dtype.kind == "U"
    symbols = span_of(Spectrum(2, boundaries=True), [(1, 2, 3), (2, 1)])
    assert EulerianPath().decode(np.eye(2), symbols).tolist() == [(1, 2, 3), (2, 1)]


@pytest.mark.parametrize("boundaries", [True, False])
def test_counts_rounded_to_zero(boundaries):
    """Where no k-mer is predicted once, the nearest training string is."""
    span = span_of(Spectrum(3, boundaries=boundaries), ["abcd", "efgh", "ijkl", "mnop"])
    assert EulerianPath().decode([[0.4, 0.2, 0.2, 0.2]], span).tolist() == ["abcd"]


@given(st.data())
def test_medoid_and_quantiles_are_optimal(data):
    """The medoid has the least mean distance; the mean quantile function is the barycentre."""
    n = data.draw(st.integers(2, 5))
    y = data.draw(arrays(np.float64, (n, 3), elements=st.floats(-2, 2, width=16)))
    w = data.draw(weights(n, least=0.0)) + 1e-3
    span = span_of(Curves(), y)
    K = span.kernel(span.outputs)
    d = np.sqrt(np.maximum(np.add.outer(np.diag(K), np.diag(K)) - 2 * K, 0))
    found = Medoid().decode([w], span)[0]
    indices = [i for i in range(n) if (y[i] == found).all()]
    assert min((d @ w)[indices]) == pytest.approx((d @ w).min(), abs=1e-6)
    span = span_of(Wasserstein(3), y)
    found = Quantiles().decode([w / w.sum()], span)[0]
    np.testing.assert_allclose(found, w @ np.sort(y, axis=1) / w.sum(), atol=1e-9)


def test_quantiles_ascend():
    """With negative weights the nearest ascending function is returned."""
    span = span_of(Wasserstein(2), [[0.0, 1.0], [0.0, 9.0]])
    assert Quantiles().decode([[2.0, -1.0]], span).tolist() == [[-3.5, -3.5]]


def test_parts():
    """Each part has the decoder of its kernel, or its own."""
    y = [(1.0, "a", {"u"}), (3.0, "b", {"u", "v"}), (4.0, "b", set())]
    span = span_of(Tuples(["linear", "dirac", "hamming"]), y)
    W = [[0.25, 0.5, 0.25]]
    assert Parts().decode(W, span)[0] == (2.75, "b", {"u", "v"})
    assert Parts(["training_set", "auto", "training_set"]).decode(W, span)[0] == (3.0, "b", {"u"})


WRONG = {
    "Threshold": (Threshold(), Dirac(), "predicts sets of labels"),
    "Hierarchical": (Hierarchical(), Hamming(), "classes of a hierarchy"),
    "Borda": (Borda(), Hamming(), "predicts rankings"),
    "EulerianPath": (EulerianPath(), Hamming(), "needs kernel=Spectrum"),
    "Quantiles": (Quantiles(), Hamming(), "predicts distributions"),
    "Parts": (Parts(), Hamming(), "predicts tuples"),
    "an unknown score": (Threshold("f2"), Hamming(), "a str among .* Got 'f2'"),
    "thresholds": (Threshold([0.5, 0.5, 0.5]), Hamming(), "one for each of 2 labels"),
}


@pytest.mark.parametrize(("decoder", "kernel", "message"), WRONG.values(), ids=WRONG)
def test_wrong_outputs(decoder, kernel, message):
    """A decoder refuses outputs that it is not made for."""
    y = ["a", "b"] if isinstance(kernel, Dirac) else [{"a"}, {"b"}]
    with pytest.raises(ValueError, match=message):
        decoder.check(span_of(kernel, y))


def test_wrong_parameters():
    """Parameters of decoders are checked against the outputs."""
    rankings = span_of(Mallows(), ["a>b"])
    with pytest.raises(ValueError, match=r"an int in the range \[1, 16\]"):
        Kemeny(max_exact=30).check(rankings)
    with pytest.raises(ValueError, match="length of at least 2"):
        EulerianPath().check(span_of(Spectrum(1), ["ab"]))
    with pytest.raises(ValueError, match="decoders has 1 entries"):
        Parts(["auto"]).check(span_of(Tuples(["linear", "dirac"]), [(1.0, "a")]))
    with pytest.raises(ValueError, match=r"'threshold' parameter of Hierarchical .* Got 'half'"):
        Hierarchical("half").check(span_of(Hierarchy(), ["1/1"]))


def test_halves_are_rounded_down():
    """Of two sizes that are equally near to the expected one, the smaller set is predicted."""
    y = np.array([[1, 1], [1, 0]])
    assert Cardinality().decode([[0.5, 0.5]], span_of(Hamming(), y)).tolist() == [[1, 0]]


@pytest.mark.parametrize("score", ["hamming", "macro_f1"])
def test_thresholds_of_folds_that_lack_labels(score):
    """The columns of a fold are matched by label; one that it lacks has probability zero."""
    y = [{"a"}, {"b"}, {"c"}, {"b", "c"}]
    span = span_of(Hamming(), y)
    W = np.array([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.1, 0.9]])
    outputs = [{"b"}, {"c"}]
    lacking, whole = span_of(Hamming(), outputs), span_of(Hamming(labels=["a", "b", "c"]), outputs)
    assert lacking.kernel.labels == ["b", "c"]
    found, expected = (
        Threshold(score).tune([HeldOut(as_weights(W), fold, span.outputs)], span).threshold
        for fold in (lacking, whole)
    )
    np.testing.assert_allclose(found, expected)


def test_parts_are_tuned_on_the_outputs_of_each_fold():
    """The weights of a fold belong to its own training outputs."""
    kernel = Tuples([Dirac(), Hamming(labels=["a", "b"])], weights=[1.0, 1.0])
    y = kernel.check([("u", {"a"}), ("v", {"b"})])
    span, fold = Span(kernel.resolve(y), y), Span(kernel.resolve(y), y[::-1])
    W = as_weights(np.array([[0.9, 0.1], [0.3, 0.7]]))
    parts = Parts(["auto", Threshold("macro_f1")])
    found = parts.tune([HeldOut(W, fold, y)], span).decoders[1].threshold
    sets, fold_sets = (
        span_of(Hamming(labels=["a", "b"]), [pair[1] for pair in sets]) for sets in (y, y[::-1])
    )
    held_out = HeldOut(W, fold_sets, sets.outputs)
    expected = Threshold("macro_f1").tune([held_out], sets).threshold
    np.testing.assert_allclose(found, expected)


def test_weights_of_classes_decide_whether_ancestors_are_taken_along():
    """The gain of a deep class counts less than the loss of its parent."""
    kernel = Hierarchy({"1": None, "2": "1"}, decay=0.5)
    span = span_of(kernel, [{"1", "2"}, {"1"}, set()])
    # Probabilities are 0.1 and 1.0: the gains are -0.4 and 0.5, and 0.5 * 0.5 with the weight.
    assert Hierarchical().decode([[1.0, -0.9, 0.9]], span).tolist() == [frozenset()]


def test_the_threshold_of_an_open_set_may_be_too_large():
    """The best set is found with a smaller one if no closed set scores as much as the open one."""
    kernel = Hierarchy({"a": None, "b": "a", "c": "b", "d": "b"}, decay=0.5)
    span = span_of(kernel, [{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "d"}])
    # Probabilities are 0.4, -1, -1 and 0.8: {a} has the score 0.8, and {} has 0.6.
    assert Hierarchical().decode([[1.4, -0.8, -1.0, 0.8]], span).tolist() == [{"a"}]


def test_of_equal_kemeny_rankings_the_one_of_borda():
    """If the rankings cancel, the first label comes first, as in Borda's ranking."""
    span = span_of(Kendall(), ["a>b>c", "c>b>a"])
    assert Kemeny().decode([[0.5, 0.5]], span).tolist() == ["a>b>c"]


def test_counts_of_kmers_are_rounded_to_the_nearest():
    """Three quarters of a k-mer are one, and a quarter is none."""
    span = span_of(Spectrum(2), ["abc", "abx"])
    assert EulerianPath().decode([[0.75, 0.25]], span).tolist() == ["abc"]
