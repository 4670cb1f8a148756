"""Inputs with millions of features: trees need memory for those that they draw."""

import os
import resource
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from growing import grow
from okforest.engine import GrowthRules

N_FEATURES = 4_000_000


def sparse_inputs():
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(50), 20), rng.integers(0, N_FEATURES, 1000)
    return sp.csc_array(sp.coo_array((rng.normal(size=1000), (rows, columns)), (50, N_FEATURES)))


@pytest.mark.parametrize("random_splits", [True, False])
def test_memory(random_splits):
    """A thread keeps the order of all features, and the gains of those that it draws."""
    result = subprocess.run(
        [sys.executable, __file__, str(int(random_splits))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(result.stdout) * unit < 20 * N_FEATURES


if __name__ == "__main__":
    X, y = sparse_inputs(), np.random.default_rng(1).normal(size=(50, 2))
    rules = GrowthRules(random_splits=sys.argv[1] == "1", max_features=100)
    options = {"n_categories": np.zeros(N_FEATURES, dtype=np.int32)}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grow(X, y, rules, **options)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
