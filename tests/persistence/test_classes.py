"""Which classes a file can name: okforest's, imported ones, and those that are passed."""

import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import all_estimators

import okforest
from okforest import OKTree
from okforest.kernels import RBF, Linear
from okforest.network import NetworkCompletion
from okforest.persistence import FileFormatError
from okforest.persistence.classes import (
    SCIKIT_LEARN,
    ClassFinder,
    UnknownClassError,
    class_name,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))


class MyKernel(Linear):
    Nested = type("Nested", (Linear,), {"__module__": __name__, "__qualname__": "MyKernel.Nested"})


def make_class(name="MyKernel", module="my_module", base=Linear):
    return type(name, (base,), {"__module__": module, "__qualname__": name})


@pytest.fixture
def my_module(monkeypatch):
    """Return a module that is imported, with a class of the same name."""
    module = ModuleType("my_module")
    module.MyKernel = make_class()
    monkeypatch.setitem(sys.modules, "my_module", module)
    return module


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (OKTree, "okforest.models:OKTree"),
        (RBF, "okforest.kernels:RBF"),
        (NetworkCompletion, "okforest.network:NetworkCompletion"),
        (BaseEstimator, "sklearn.base:BaseEstimator"),
        (MyKernel, f"{__name__}:MyKernel"),
        (MyKernel.Nested, f"{__name__}:MyKernel.Nested"),
        (make_class(), "my_module:MyKernel"),
    ],
)
def test_names(cls, name):
    """Classes of okforest and scikit-learn have the name of the package that exports them."""
    assert class_name(cls) == name


def test_estimators_of_scikit_learn():
    """Every public one is in a module that load imports."""
    for _, cls in all_estimators():
        assert class_name(cls).partition(":")[0] in SCIKIT_LEARN


def test_imported_classes(my_module):
    """A class is found in its module, also within another class."""
    finder = ClassFinder([])
    assert finder.find(class_name(MyKernel)) is MyKernel
    assert finder.find(class_name(MyKernel.Nested)) is MyKernel.Nested
    assert finder.find("my_module:MyKernel") is my_module.MyKernel


def test_passed_classes(my_module):
    """A class that is passed comes before an imported one."""
    reloaded = make_class()
    assert ClassFinder([reloaded]).find("my_module:MyKernel") is reloaded
    within = make_class(module="my_module.kernels")  # my_module exports it
    assert ClassFinder([within]).find("my_module:MyKernel") is within
    for other in (make_class(name="Other"), make_class(module="my_module_2")):
        assert ClassFinder([other]).find("my_module:MyKernel") is my_module.MyKernel


def test_scripts():
    """A class of a script or notebook is found by its qualified name alone, if none fits better."""
    script, module = make_class(module="__main__"), make_class(module="module")
    for passed, name in ((module, "__main__"), (script, "module"), (script, "__main__")):
        assert ClassFinder([passed]).find(f"{name}:MyKernel") is passed
    assert ClassFinder([script, module]).find("module:MyKernel") is module
    assert ClassFinder([script, module]).find("absent:MyKernel") is script  # the first
    with pytest.raises(
        UnknownClassError, match=r"not an estimator class of __main__\. Pass types="
    ):
        ClassFinder([]).find("__main__:MyKernel")


def test_local_classes(tmp_path):
    """A class that is defined in a function must be passed."""

    class Local(Linear):
        pass

    with pytest.raises(UnknownClassError, match=r"not an estimator class of absent\. Pass types="):
        ClassFinder([]).find("absent:function.<locals>.Local")
    model = OKTree(kernel=Local()).fit(X, X)
    okforest.save(model, tmp_path / "model")
    with pytest.raises(
        FileFormatError, match=r"needs the class Local .*Pass types=\[Local\] to load"
    ):
        okforest.load(tmp_path / "model")
    loaded = okforest.load(tmp_path / "model", types=[Local])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "builtins:eval",
        "builtins:dict",
        "subprocess:Popen",
        "sys:modules",
        "sklearn.base:clone",
        "okforest.kernels:as_kernel",
        "okforest.kernels:Missing",
        "okforest.datasets:load_digits",
        "numpy:ndarray",
        ":",
        "__main__:",
    ],
)
def test_only_estimators(name):
    """Nothing but classes of estimators is ever found, whatever is imported."""
    with pytest.raises(UnknownClassError, match="it needs the class"):
        ClassFinder([]).find(name)


def test_nothing_is_imported(monkeypatch):
    """Neither a module that a file names, nor what a module would import by itself."""
    with pytest.raises(
        UnknownClassError, match=r"antigravity:Pi.* Import antigravity first, or pass"
    ):
        ClassFinder([]).find("antigravity:Pi")
    assert "antigravity" not in sys.modules
    lazy = ModuleType("lazy")
    lazy.__getattr__ = lambda name: pytest.fail(f"{name} was asked for")
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    with pytest.raises(UnknownClassError, match="not an estimator class of lazy"):
        ClassFinder([]).find("lazy:MyKernel")


HOSTILE = [
    *("antigravity:Pi", "this:Model", "turtledemo:Model", "my_package:Model", "sklearn:Model"),
    *("sklearn.utils.estimator_checks:Model", "sklearn.experimental:Model"),
    *("sklearn.datasets:fetch_openml", "sklearn.conftest:Model", "sklearn.impute._knn:Model"),
    *("sklearn.impute.os:Model", "sklearn..impute:Model", ".sklearn.impute:KNNImputer"),
    *("sklearn.impute:os.system", "sklearn.svm:__builtins__", "sklearn.manifold:trustworthiness"),
]


def test_of_scikit_learn_only_public_modules_are_imported(tmp_path):
    """A fresh process finds their estimators, and a hostile name imports nothing else."""
    (tmp_path / "my_package.py").write_text("raise SystemExit('was imported')")
    program = """
import sys
from okforest.persistence.classes import SCIKIT_LEARN, ClassFinder, UnknownClassError

assert "sklearn.impute" not in sys.modules
found = ClassFinder([]).find("sklearn.impute:KNNImputer")
assert found is sys.modules["sklearn.impute"].KNNImputer
for name in sorted(SCIKIT_LEARN):
    __import__(name)  # all of them exist
before = {*sys.modules}
for name in sys.argv[1:]:
    try:
        raise SystemExit(f"found {ClassFinder([]).find(name)}")
    except UnknownClassError:
        pass
assert {*sys.modules} == before, {*sys.modules} - before
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *HOSTILE],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_own_packages_are_imported(monkeypatch):
    """A model of okforest.network is found though nobody has imported okforest.network."""
    monkeypatch.setattr(okforest, "network", okforest.network)  # restored after the test
    for name in [name for name in sys.modules if name.startswith("okforest.network")]:
        monkeypatch.delitem(sys.modules, name)
    found = ClassFinder([]).find("okforest.network:NetworkCompletion")
    assert class_name(found) == "okforest.network:NetworkCompletion"
    with pytest.raises(UnknownClassError, match=r"Import okforest\.absent first"):
        ClassFinder([]).find("okforest.absent:Model")


def test_packages_that_cannot_be_imported(monkeypatch):
    """The error names the class that is needed, where an optional library is not installed."""
    monkeypatch.setitem(sys.modules, "okforest.dask", None)
    with pytest.raises(UnknownClassError, match=r"needs the class Model \(okforest\.dask:Model\)"):
        ClassFinder([]).find("okforest.dask:Model")


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (MyKernel, r"types is a class; pass a list of classes: types=\[MyKernel\]"),
        ([MyKernel()], r"types holds MyKernel\(\); pass classes of models, kernels"),
        ([dict], "types holds <class 'dict'>; pass classes of"),
        (["my_module:MyKernel"], "types holds 'my_module:MyKernel'; pass classes of"),
    ],
)
def test_bad_types(tmp_path, types, message):
    """The classes are checked before the file is opened."""
    with pytest.raises(TypeError, match=message):
        okforest.load(tmp_path / "absent", types=types)
