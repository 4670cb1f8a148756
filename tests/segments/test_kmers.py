"""Windows of sequences: letters, counts, random windows, and the way back."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from okforest.segments import KmerWindows, SegmentClassifier
from reference.segments import spread

texts = st.lists(st.text("abc€", min_size=4, max_size=9), min_size=1, max_size=4)


def cut(segmenter, sequences, seed=0):
    sequences = segmenter.check(sequences)
    return segmenter.resolve(sequences).cut(sequences, seed)


@given(texts)
def test_one_hot_equals_the_oracle(sequences):
    """All windows, in order: an indicator of each letter at each place, then the place."""
    segments = cut(KmerWindows(4, alphabet="abc€"), sequences)
    rows = []
    for sequence in sequences:
        for i in range(len(sequence) - 3):
            letters = [float(letter == a) for letter in sequence[i : i + 4] for a in "abc€"]
            rows.append([*letters, i / max(1, len(sequence) - 4)])
    np.testing.assert_allclose(segments.values, rows, rtol=1e-6)
    assert segments.places[-1].tolist() == [len(sequences[-1]) - 4, 4]


@given(texts, st.sampled_from([1, 2, 3]))
def test_counts_equal_the_oracle(sequences, k):
    """Counts of all strings of k letters, in the order of the alphabet."""
    segments = cut(KmerWindows(4, encoding="counts", k=k, position=False), sequences)
    letters = sorted(set("".join(sequences)))
    strings = [""]
    for _ in range(k):
        strings = [s + letter for s in strings for letter in letters]
    rows = []
    for sequence in sequences:
        for i in range(len(sequence) - 3):
            window = sequence[i : i + 4]
            found = Counter(window[j : j + k] for j in range(4 - k + 1))
            rows.append([found[string] for string in strings])
    np.testing.assert_array_equal(segments.values, rows)
    assert segments.values.dtype == np.uint8


def test_random_windows_depend_on_the_sequence_alone():
    """A given number of windows is drawn from all, the same for every order."""
    sequences = ["abcabca", "bbbbbbbbb", "abc"]
    segmenter = KmerWindows(3, 50).resolve(sequences)
    together = segmenter.cut(sequences[::-1], 7)
    for i, sequence in enumerate(sequences[::-1]):
        alone = segmenter.cut([sequence], 7)
        np.testing.assert_array_equal(alone.places, together.places[50 * i : 50 * (i + 1)])
    assert set(segmenter.cut(["abcabca"], 7).places[:, 0]) == set(range(5))
    assert segmenter.count(sequences) == 150
    assert KmerWindows(3).count(sequences) == 5 + 7 + 1


@given(st.integers(0, 1000))
def test_spreading_equals_the_oracle(seed):
    """A letter gets the mean of the windows that cover it."""
    item, segmenter = "abcabcabcabc", KmerWindows(3, 4).resolve(["abc"])
    places = segmenter.cut([item], seed).places
    values = np.random.default_rng(seed).random((4, 1))
    covered = [(begin <= np.arange(12)) & (np.arange(12) < begin + 3) for begin, _ in places]
    means = segmenter.spread(item, places, values)[:, 0]
    np.testing.assert_allclose(means, spread((12,), covered, values[:, 0]))


def test_forms_of_sequences():
    """Lists, arrays of strings, and lists and arrays of letters are the same sequences."""
    lines = ["abca", "bbca"]
    letters = [list(line) for line in lines]
    segmenter = KmerWindows(2)
    for X in (lines, np.array(lines), np.array(letters), letters, [np.array(x) for x in letters]):
        assert segmenter.check(X) == lines
        model = SegmentClassifier(segmenter, random_state=0).fit(X, [0, 1])
        assert model.segmenter_.alphabet_ == "abc"
    assert segmenter.check([["a", "b"], ["c", "b", "a"]]) == ["ab", "cba"]


@pytest.mark.parametrize(
    ("X", "entry"),
    [
        ([[0, 1, 2, 1, 0, 1], [1, 2, 1, 0, 0, 0]], "0"),
        (np.array([[10, 1, 2, 1, 0, 1]] * 2), "10"),
        ([np.arange(8), np.arange(9)], "0"),
        (np.full((2, 7), 0.5), "0.5"),
        ([["ab", "c", "a"], ["b", "a", "b"]], "'ab'"),
    ],
    ids=["lists", "array", "ragged", "floats", "words"],
)
def test_numbers_are_not_letters(X, entry):
    """Numbers and words are refused, alone and in a model, with a way to make letters of them."""
    message = f"sequence 0 has the entry {entry}; expected a string, or single letters"
    for call in (KmerWindows(3).check, lambda X: SegmentClassifier(KmerWindows(3)).fit(X, [0, 1])):
        with pytest.raises(ValueError, match=message):
            call(X)
    codes = [[0, 1, 2, 1, 0, 1], [1, 2, 1, 0, 0, 0, 2]]
    letters = ["".join(chr(97 + i) for i in sequence) for sequence in codes]
    assert KmerWindows(3).check(letters) == ["abcbab", "bcbaaac"]


def test_classification():
    """A motif anywhere in the sequence is found, and the evidence points at it."""
    rng = np.random.default_rng(0)
    sequences = ["".join(rng.choice(list("acgt"), rng.integers(30, 50))) for _ in range(80)]
    labels = np.arange(80) % 2
    for i in np.flatnonzero(labels):
        place = rng.integers(0, 22)
        sequences[i] = sequences[i][:place] + "gattaca" + sequences[i][place + 7 :]
    model = SegmentClassifier(KmerWindows(7, position=False), combine="confidence", random_state=0)
    model.fit(sequences[:60], labels[:60])
    assert model.score(sequences[60:], labels[60:]) >= 0.8
    evidence = model.evidence(sequences[61], 1)
    motif = sequences[61].index("gattaca")
    assert abs(evidence.places[evidence.top(1)[0], 0] - motif) <= 3


@pytest.mark.parametrize(
    ("params", "X", "message"),
    [
        ({}, "acgt", "X is a single string"),
        ({}, ["acgtacgt", 5], "sequence 1 is a int; expected a string"),
        ({}, ["acgtacgt", "acg"], "sequence 1 has 3 letters, fewer than a window"),
        ({}, ["acgtacgt", ""], "sequence 1 has 0 letters"),
        ({}, [b"acgtacgt"], "sequence 0 is a bytes; expected a string of letters; call decode"),
        ({}, None, "X is of type NoneType; expected a list of strings"),
        ({"alphabet": "acgt"}, ["acgtacgn"], "sequence 0 has the letter 'n', which is not in"),
        ({"alphabet": ["a"]}, ["acgtacgn"], "expected a string of all letters"),
        ({"length": 0}, ["acgt"], "'length' parameter of KmerWindows"),
        ({"n_segments": 0}, ["acgtacgt"], "'n_segments' parameter of KmerWindows"),
        ({"encoding": "counts", "k": 9}, ["acgtacgt"], "k=9 is larger than length=6"),
        ({"encoding": "hash"}, ["acgtacgt"], "'encoding' parameter .* Got 'hash'"),
    ],
)
def test_bad_sequences(params, X, message):
    """Errors name the sequence or the parameter, and what to do."""
    with pytest.raises(ValueError, match=message):
        KmerWindows(**params).check(X)


def test_letters_unseen_in_training():
    """A letter that no training sequence has is refused in prediction."""
    model = SegmentClassifier(KmerWindows(2)).fit(["abab", "bbbb", "aaaa"], [0, 1, 0])
    with pytest.raises(ValueError, match="has the letter 'c', which is not in the alphabet 'ab'"):
        model.predict(["abc"])


def test_too_many_strings():
    """Counting too many strings is refused."""
    segmenter = KmerWindows(8, encoding="counts", k=8)
    sequences = segmenter.check(["abcdefgh"])
    with pytest.raises(ValueError, match="use a smaller k"):
        segmenter.resolve(sequences)


def test_counts_beyond_a_byte():
    """A letter that occurs more than 255 times in a window is counted."""
    cut = KmerWindows(300, encoding="counts", k=1, position=False)
    sequences = cut.check(["a" * 300, "a" * 256 + "b" * 44])
    values = cut.resolve(sequences).cut(sequences).values
    assert values.tolist() == [[300, 0], [256, 44]]
