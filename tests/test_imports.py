"""Public names, and what importing the package does not do."""

import subprocess
import sys

import pytest

import okforest
import okforest.datasets
import okforest.inspection
import okforest.network
import okforest.papers


def test_public_names_exist():
    """Everything that is promised is there, in every public module."""
    modules = (
        okforest,
        okforest.kernels,
        okforest.datasets,
        okforest.decode,
        okforest.metrics,
        okforest.inspection,
        okforest.network,
        okforest.papers,
    )
    for module in modules:
        assert all(hasattr(module, name) for name in module.__all__)
    assert okforest.__version__


@pytest.mark.parametrize(
    "module",
    [
        "matplotlib",
        "networkx",
        "pandas",
        "pooch",
        "scipy.stats",
        "joblib.externals.loky",
        "okforest.papers",
    ],
)
def test_importing_stays_light(module):
    """Optional stacks are not imported; nor is anything that scikit-learn itself does not need."""
    code = (
        "import sys; import sklearn.base, sklearn.metrics.pairwise; before = set(sys.modules);"
        f"import okforest, okforest.datasets, okforest.inspection, okforest.network;"
        f"sys.exit({module!r} in set(sys.modules) - before)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("module", ["okforest.network", "okforest.datasets"])
def test_importing_okforest_takes_no_more_than_models(module):
    """Rooms that sit on the models are imported by those who use them."""
    code = f"import sys, okforest; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
