"""Public names, and what importing the package does not import."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import okforest
from public import LAZY, MODULES

OPTIONAL = {
    "PIL",
    "cupy",
    "dask",
    "distributed",
    "fastapi",
    "httpx",
    "matplotlib",
    "networkx",
    "pandas",
    "pooch",
    "scipy.stats",
    "joblib.externals.loky",
}


PACKAGE = Path(okforest.__file__).parent
SHARED = ("_utils", "_core", "_strings", "__version__")


def imported_names(path):
    """Return the room and the full name of everything that a module imports from okforest."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("okforest"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_room_imports_what_is_private_in_another():
    """All rooms may use _utils, whose modules and functions are public within the library."""
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imported_names(path):
            parts = name.split(".")[1:]
            private = any(part.startswith("_") and part not in SHARED for part in parts)
            if private and parts[0] != room:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong


def test_number_of_files():
    """A file is an idea: merge two before a new one is added."""
    assert len(list(PACKAGE.rglob("*.py"))) <= 200


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_public_names_exist(module):
    """Every name in `__all__` is defined."""
    assert all(hasattr(module, name) for name in module.__all__)


def test_version():
    """The version is the version of the installed distribution."""
    assert okforest.__version__


def test_submodules_are_attributes():
    """Submodules that load lazily are listed, and found as attributes; other names are not."""
    assert set(LAZY) < set(dir(okforest))
    assert okforest.network.NetworkCompletion
    with pytest.raises(AttributeError, match="module 'okforest' has no attribute 'networks'"):
        _ = okforest.networks


def test_names_are_imported_on_first_use():
    """The package itself imports nothing; every public name is then found, and kept."""
    code = """
import sys, okforest
assert not {"numpy", "sklearn", "okforest.models"} & set(sys.modules)
assert all(getattr(okforest, name) is not None for name in okforest.__all__)
assert set(okforest.__all__) - {"__version__"} <= set(dir(okforest))
assert okforest.OKTree is okforest.models.OKTree and "OKTree" in vars(okforest)
from okforest import *
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_stays_light():
    """Models are imported alone; optional packages are imported by the functions that use them.

    Modules that scikit-learn itself imports do not count.
    """
    code = """
import json, sys
import sklearn.base, sklearn.metrics.pairwise
before = set(sys.modules)
import okforest
okforest.OKTree
with_models = set(sys.modules) - before
okforest.dask, okforest.datasets, okforest.inspection, okforest.network, okforest.segments
okforest.retrieval, okforest.uncertainty
print(json.dumps([[*with_models], [*set(sys.modules) - before]]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    with_models, with_submodules = map(set, json.loads(run.stdout))
    assert not with_models & {f"okforest.{name}" for name in LAZY}
    assert "okforest.network" in with_submodules
    assert not with_submodules & OPTIONAL
