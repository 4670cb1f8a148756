"""Kernels on strings, and on curves of any length: formulas, blocks, and unknown symbols."""

import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from okforest.kernels import (
    EditDistance,
    GapWeighted,
    GlobalAlignment,
    Mismatch,
    Normalized,
    Spectrum,
)
from okforest.kernels.sequences import edit_distances
from reference import outputs as slow

WORDS = st.lists(st.text("ab", max_size=6), min_size=2, max_size=6)
NUMBERS = st.floats(-3.0, 3.0).map(lambda value: round(value, 2))
CURVES = st.lists(st.lists(NUMBERS, min_size=1, max_size=4), min_size=2, max_size=6)


@given(WORDS)
def test_string_kernels_equal_their_definitions(y):
    """Gap-weighted and mismatch kernels, and edit distances, against enumeration."""
    pairs = [(u, v) for u in y for v in y]

    def gram(f):
        return np.array([f(u, v) for u, v in pairs]).reshape(len(y), len(y))

    for k in (1, 2, 3):
        kernel = GapWeighted(k, 0.7)
        expected = gram(lambda u, v, k=k: slow.gap_weighted(u, v, k, 0.7))
        np.testing.assert_allclose(kernel(kernel.check(y)), expected, atol=1e-12)
    for k, m in ((2, 0), (2, 1), (3, 2)):
        kernel = Mismatch(k, m, alphabet=["a", "b", "c"])
        expected = gram(lambda u, v, k=k, m=m: slow.mismatch(u, v, k, m, "abc"))
        np.testing.assert_allclose(kernel(kernel.check(y)), expected)
    words = Spectrum().check(y)
    np.testing.assert_array_equal(edit_distances(words, words), gram(slow.edit_distance))


@given(WORDS, st.integers(1, 4), st.booleans())
def test_spectrum_equals_its_definition(y, k, boundaries):
    """Common k-mers counted by enumeration; features of new strings have the known k-mers."""

    def counts(word):
        marks = "|" * (k - 1) if boundaries else ""
        marked = marks + word + marks
        return Counter(marked[i : i + k] for i in range(len(marked) - k + 1))

    expected = [[sum(n * counts(v)[w] for w, n in counts(u).items()) for v in y] for u in y]
    for words in (y, [tuple(word) for word in y], np.array(y)):
        kernel = Spectrum(k, boundaries)
        words = kernel.check(words)
        np.testing.assert_array_equal(kernel(words), expected)
        kernel = kernel.resolve(words[:1])
        vocabulary = {"".join(w) for w in counts(y[0])}
        features = kernel.features(words)
        assert features.shape == (len(y), len(vocabulary))
        known = [sum(n for w, n in counts(u).items() if w in vocabulary) for u in y]
        np.testing.assert_array_equal(features.sum(axis=1), known)


@settings(max_examples=15)
@given(st.lists(st.text("abcd", min_size=40, max_size=50), min_size=1, max_size=3))
def test_mismatch_of_long_strings_equals_its_definition(y):
    """Counts of the words near k-mers, by which long strings are compared, agree with its sums."""
    for k, m in ((1, 0), (2, 1), (3, 2)):
        kernel = Mismatch(k, m, alphabet=["a", "b", "c"])
        known = [word.split("d") for word in y]  # no k-mer has the unknown symbol
        expected = [
            [sum(slow.mismatch(s, t, k, m, "abc") for s in u for t in v) for v in known]
            for u in known
        ]
        np.testing.assert_array_equal(kernel(kernel.check(y)), expected)
        np.testing.assert_array_equal(kernel(kernel.check(y[:1]), kernel.check(y)), expected[:1])


def test_mismatch_does_not_depend_on_other_strings():
    """Two strings have one kernel whatever else is compared; other symbols are left out."""
    kernel = Mismatch(2, 1)
    y = kernel.check(["aab", "aba"])
    kernel = kernel.resolve(y)
    more = kernel.check(["aab", "aba", "acc", "aabcaab", "cc"])
    expected = [[slow.mismatch(u, v, 2, 1, "ab") for v in ("aab", "aba")] for u in y]
    np.testing.assert_array_equal(kernel(y, more)[:, :2], expected)
    np.testing.assert_array_equal(kernel(more)[:2, :2], expected)
    K = kernel(more)
    np.testing.assert_array_equal(K[2], 0)  # "ac" and "cc" have a symbol of their own
    np.testing.assert_array_equal(K[3, :2], 2 * np.array(expected)[0])
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_pairs_are_compared_once():
    """The Gram matrix is exactly symmetric; other pairs have the same values."""
    rng = np.random.default_rng(0)
    words = Spectrum().check(["".join(rng.choice(list("abc"), n)) for n in range(12)])
    curves = GlobalAlignment().check([rng.normal(size=n) for n in range(1, 9)])
    kernels = ((Mismatch(3, 1, list("abc")), words), (GapWeighted(), words))
    for kernel, y in (*kernels, (GlobalAlignment(), curves)):
        K = kernel(y)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(kernel(y[:5], y), K[:5], rtol=1e-14)
        np.testing.assert_allclose(kernel(y, y[:5]), K[:, :5], rtol=1e-14)


def test_alignments_of_distant_curves_do_not_vanish():
    """Sums are kept as logarithms: long and distant curves do not underflow or overflow."""
    t = np.linspace(0.0, 1.0, 600)
    kernel = GlobalAlignment(0.05)
    K = kernel(kernel.check([np.sin(9 * t), np.sin(9 * t + 0.01), 1e3 + t]))
    assert K[0, 1] > 1e-8
    assert K[0, 2] == 0.0
    np.testing.assert_allclose(np.diag(K), 1.0)


def test_sequences_of_other_symbols():
    """Tuples of any symbols are sequences, too."""
    words = Spectrum(2).check(["aba", "ab"])
    symbols = Spectrum(2).check([(1, 2, 1), [1, 2]])
    np.testing.assert_array_equal(Spectrum(2)(words), Spectrum(2)(symbols))
    assert symbols.tolist() == [(1, 2, 1), (1, 2)]


@given(CURVES)
def test_global_alignment_equals_enumeration(y):
    """The kernel sums over all alignments, with κ = g / (2 − g)."""

    def similarity(u, v):
        g = np.exp(-((u - v) ** 2) / (2 * 0.8**2))
        return g / (2 - g)

    K = np.array([[slow.alignments(u, v, similarity) for v in y] for u in y])
    scale = np.sqrt(np.diag(K))
    kernel = GlobalAlignment(0.8)
    np.testing.assert_allclose(kernel(kernel.check(y)), K / np.outer(scale, scale), rtol=1e-6)


def test_empty_strings_are_defined():
    """An empty string has no k-mers; distances to it are lengths."""
    kernel = Spectrum(2)
    assert kernel(kernel.check(["", "ab"])).tolist() == [[0.0, 0.0], [0.0, 1.0]]
    assert GapWeighted(2)(kernel.check(["", "ab"]))[0].tolist() == [0.0, 0.0]
    assert Spectrum(2, boundaries=True)(kernel.check(["", "ab"]))[0, 0] == 1.0
    kernel = EditDistance(1.0).resolve(kernel.check(["", "ab"]))
    assert kernel.diag(kernel.check([""])).tolist() == [1.0]


def test_median_width_is_that_of_distances_between_landmarks():
    """The width is in the units of ‖d − d'‖, which is divided by √(number of landmarks)."""
    kernel = EditDistance()
    y = kernel.check(["a", "ab", "abc", "xyzu", "xyz"])
    d = edit_distances(y, y) / np.sqrt(len(y))
    between = [np.linalg.norm(d[i] - d[j]) for i in range(len(y)) for j in range(i)]
    np.testing.assert_allclose(kernel.resolve(y).sigma ** 2, np.median(np.square(between)))


@pytest.mark.parametrize(
    "kernel", [Spectrum(3), Normalized(Spectrum(3)), Mismatch(3, 1), GapWeighted(3)]
)
def test_sequences_too_short_for_the_kernel_give_a_warning(kernel):
    y = ["ab", "cd", "abcd"] * 10
    with pytest.warns(UserWarning, match="20 of 30 outputs, .* fewer than length=3"):
        kernel.resolve(kernel.check(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel.resolve(kernel.check(["abc", "", "bcda", "cdab"] * 10))  # one point is one output
        Spectrum(3, boundaries=True).resolve(kernel.check(y))
