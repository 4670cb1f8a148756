"""Different outputs: which are equal, and what is computed from them once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import okforest._utils.distinct as outputs_module
import okforest.weights.output_set as output_set
from okforest._utils.distinct import check_same_type, distinct
from okforest.kernels import RBF, FromCallable
from okforest.weights import OutputSet


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@given(values=st.lists(st.integers(0, 5), min_size=1, max_size=40), width=st.integers(1, 3))
def test_distinct_equals_a_search(values, width):
    """First occurrences in order, and the group of every output, for all types."""
    first = [i for i, v in enumerate(values) if v not in values[:i]]
    group = [[values[i] for i in first].index(v) for v in values]
    rows = np.array([[v / 3.0] * width for v in values])
    for outputs in (
        rows,
        rows[:, 0],
        rows.astype(np.float32),
        np.asfortranarray(rows),
        np.array(values),
        np.array(values, dtype=str),
        objects([frozenset({v}) for v in values]),
    ):
        found = distinct(outputs)
        assert found.first.tolist() == first
        assert found.group.tolist() == group


@pytest.mark.parametrize("shape", [(4, 0), (4, 40_000), (30_000, 4)])
def test_distinct_rows_of_any_length(shape):
    """Rows are hashed in blocks, of one wide row or of many; without columns, all are equal."""
    rows = np.random.default_rng(0).normal(size=shape)
    found = distinct(np.concatenate([rows, rows]))
    assert len(found) == (len(rows) if shape[1] else 1)
    expected = np.arange(len(rows)) % len(found)
    np.testing.assert_array_equal(found.group.reshape(2, -1), [expected, expected])


def test_rows_that_differ_in_the_last_bit():
    """Rows are told apart even if their sums are equal, and large numbers are no error."""
    rows = np.tile(np.random.default_rng(0).normal(size=40), (50, 1))
    rows[np.arange(1, 40), np.arange(1, 40)] *= 1.0 + 2.0**-52
    found = distinct(rows)
    assert len(found) == 40
    np.testing.assert_array_equal(found.group[40:], 0)
    assert len(distinct(np.array([[1e308] * 30, [-1e308] * 30, [1e308] * 30]))) == 2


def test_zeros_are_equal_and_types_differ():
    """−0.0 equals 0.0; True, 1 and "1" differ; lists and arrays are compared by content."""
    assert len(distinct(np.array([0.0, -0.0, 1.0]))) == 2
    assert len(distinct(objects([1, True, "1", 1]))) == 3
    assert distinct(objects([[1], [2], [1]])).group.tolist() == [0, 1, 0]
    assert len(distinct(objects([np.ones(2), np.zeros(2), np.ones(2)]))) == 2
    assert len(distinct(objects([[lambda: 1], [lambda: 1]]))) == 2  # neither hashed nor pickled
    assert len(distinct(np.array([np.nan, np.nan, 1.0]))) <= 3


def test_collisions_of_hashes_are_noticed(monkeypatch):
    """Rows with equal hashes are compared."""
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[10:] = rows[:10]
    expected = distinct(rows)

    class Zeros:
        def integers(self, *args, size, dtype):
            return np.full(size, 2**63 - 1, dtype=dtype)  # the factors become 2⁶⁴ − 1

    monkeypatch.setattr(outputs_module.np.random, "default_rng", lambda seed: Zeros())
    swapped = np.concatenate([rows, rows[:, ::-1]])  # the same sums
    assert len(distinct(swapped)) == 2 * len(expected)


def test_types_are_compared():
    """Width and text are the same as for the training outputs."""
    with pytest.raises(
        ValueError, match="y has 3 values in each output; the training outputs have 2"
    ):
        check_same_type(np.zeros((4, 3)), np.zeros((4, 2)), "y")
    with pytest.raises(ValueError, match=r"y has type float64; .* text never equals a number"):
        check_same_type(np.zeros(4), np.array(["a"]), "y")
    check_same_type(objects(["a"]), np.zeros(3), "y")


def counting_kernel():
    calls = []

    def function(a, b):
        calls.append((a, b))
        return float(a == b)

    return FromCallable(function, elementwise=True), calls


def test_rows_of_the_gram_matrix_are_computed_once():
    """Each row is evaluated when it is asked for first."""
    kernel, calls = counting_kernel()
    outputs = OutputSet(kernel, objects(["a", "b", "a", "c"]))
    assert outputs.outputs.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(outputs.kept_gram.rows(np.array([1])), [[0.0, 1.0, 0.0]])
    assert len(calls) == 3
    np.testing.assert_array_equal(outputs.kept_gram.rows(np.arange(3)), np.eye(3))
    assert len(calls) == 9
    np.testing.assert_array_equal(outputs.kept_gram.rows(np.array([2, 0, 2])), np.eye(3)[[2, 0, 2]])
    assert len(calls) == 9


def test_only_small_gram_matrices_are_kept(monkeypatch):
    """Memory for later predictions is bounded."""
    outputs = OutputSet(RBF(1.0), np.arange(10.0))
    assert outputs.keeps_gram
    monkeypatch.setattr(output_set, "KEPT_BYTES", 8 * 10 * 10 - 1)
    assert not outputs.keeps_gram


def test_some_of_the_outputs():
    """What is taken has the norms that are known."""
    kernel, calls = counting_kernel()
    outputs = OutputSet(kernel, objects(["a", "b", "c", "a"]))
    assert outputs.squares.tolist() == [1.0, 1.0, 1.0]
    n_calls = len(calls)
    taken = outputs.take(np.array([2, 0]))
    assert taken.outputs.tolist() == ["c", "a"]
    assert taken.squares.tolist() == [1.0, 1.0]
    assert taken.group.tolist() == [0, 1]
    assert len(calls) == n_calls


def test_taken_outputs_keep_their_own_squares():
    """A selection of the outputs keeps its squared norms; it does not get the first ones'."""
    kernel = FromCallable(lambda a, b: a * b, elementwise=True)
    taken = OutputSet(kernel, objects([1.0, 1.0, 2.0, 3.0, 4.0])).take(np.array([1, 3]))
    assert taken.outputs.tolist() == [2.0, 4.0]
    assert taken.squares.tolist() == [4.0, 16.0]
    assert taken.group.tolist() == taken.first.tolist() == [0, 1]
