"""The kernel R² of rows in partitions."""

import numpy as np
import pytest

from okforest.dask._scoring import Terms, _r2


def terms(loss, n_rows):
    """Return what a partition of outputs with a square of one each contributes."""
    return Terms(loss, float(n_rows), float(n_rows), n_rows)


@pytest.mark.parametrize(
    ("parts", "spread", "expected"),
    [
        ([terms(0.5, 1)], 0.0, np.nan),  # one row has no spread
        ([terms(0.5, 1), terms(0.0, 0)], 0.0, np.nan),
        ([terms(0.5, 1), terms(0.5, 1)], 2.0, 0.5),
        ([terms(0.0, 2), terms(1e-14, 1)], 0.0, 1.0),  # equal outputs, all of them predicted
        ([terms(0.0, 2), terms(0.1, 1)], 0.0, 0.0),
    ],
)
def test_few_rows_and_equal_outputs(parts, spread, expected):
    """Equal outputs score one or zero, and a single row has no score."""
    assert np.array_equal(_r2(parts, spread), expected, equal_nan=True)
