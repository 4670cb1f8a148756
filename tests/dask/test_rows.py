"""The sample of a tree, filled piece by piece with rows from partitions."""

from types import SimpleNamespace

import numpy as np

from okforest.dask.rows import add_piece

X, Y = np.arange(12.0).reshape(4, 3), np.arange(4.0)
RECIPE = SimpleNamespace(dtype=np.dtype(np.float64))


def test_a_sample_from_another_worker():
    """Arrays of a message cannot be written to: the sample is copied."""
    inputs, outputs = add_piece(RECIPE, None, (4, 0), (X[:1], Y[:1]))
    sent = np.frombuffer(inputs.tobytes()).reshape(inputs.shape)
    inputs, outputs = add_piece(RECIPE, (sent, outputs), (4, 1), (X[1:], Y[1:]))
    assert np.array_equal(inputs, X)
    assert np.array_equal(np.concatenate(outputs), Y)


def test_a_piece_added_again():
    """If a worker has died, a piece is written to the same place, and the sample is the same."""
    begun = add_piece(RECIPE, None, (4, 0), (X[:2], Y[:2]))
    for _ in range(2):
        inputs, outputs = add_piece(RECIPE, begun, (4, 2), (X[2:], Y[2:]))
        assert inputs is begun[0]  # not there twice
        assert np.array_equal(inputs, X)
        assert np.array_equal(np.concatenate(outputs), Y)
