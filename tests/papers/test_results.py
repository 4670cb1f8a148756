"""Results of jobs, and numbers as text."""

import numpy as np
from papers.jobs import Finished, Job, Results
from papers.rows import count, mean_and_std, published


def test_count():
    assert [count(n, "seed") for n in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]


def test_cells():
    assert mean_and_std(np.array([1.0, 2.0, 3.0]), 2) == "2.00 ± 1.00"
    assert mean_and_std(np.array([1.0]), 2) == "1.00"
    assert published((0.5, 0.25), 2) == "0.50 ± 0.25"
    assert published(0.5, 3) == "0.500"
    assert published(None) == ""


def test_results():
    """Results are selected by row and arguments, in the order of jobs, or by seed and fold."""
    finished = [
        Finished(Job(row, dict, {"seed": s, "fold": f}), {"loss": 10 * s + f}, 1.0, False)
        for row in ("a", "b")
        for f in range(3)
        for s in range(2)
    ]
    results = Results(finished)
    assert len(results.select("a")) == 6
    assert results.values("loss", "a", fold=1).tolist() == [1.0, 11.0]
    assert results.by_seed("loss", "b").tolist() == [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]
