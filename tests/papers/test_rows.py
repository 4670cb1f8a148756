"""Numbers as text."""

import numpy as np

from papers.rows import count, mean_and_std, published


def test_count():
    assert [count(n, "seed") for n in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]


def test_cells():
    assert mean_and_std(np.array([1.0, 2.0, 3.0]), 2) == "2.00 ± 1.00"
    assert mean_and_std(np.array([1.0]), 2) == "1.00"
    assert published((0.5, 0.25), 2) == "0.50 ± 0.25"
    assert published(0.5, 3) == "0.500"
    assert published(None) == ""
