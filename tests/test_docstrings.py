"""Docstrings: their examples run, and their parameters match the signatures."""

import doctest
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

import okforest
from public import MODULES

FILES = [
    module.name
    for module in pkgutil.walk_packages(okforest.__path__, "okforest.")
    if not module.name.endswith("_core")
]
PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if callable(getattr(module, name))
}

# Modules whose examples read published data sets.
READ_DATA = [f"okforest.datasets.{name}" for name in ("images", "labels", "networks", "series")]


@pytest.mark.parametrize("name", FILES)
def test_examples_run(name, request):
    """Every example in a docstring prints the output that follows it."""
    if name in READ_DATA:
        request.getfixturevalue("data_folder")  # skips without the data sets
    if name == "okforest.refit.priors":
        pytest.importorskip("clarabel", reason="Clarabel is not installed")
    if name.startswith("okforest.dask"):
        pytest.importorskip("distributed", reason="Dask is not installed")
    if name.startswith("okforest.retrieval.web"):
        pytest.importorskip("okforest.retrieval.web", reason="the extra serve is not installed")
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


@pytest.mark.parametrize("thing", PUBLIC.values(), ids=PUBLIC)
def test_parameters_are_documented(thing):
    """The parameters are documented in the order of the signature; so is every public method."""
    doc = ClassDoc(thing) if inspect.isclass(thing) else FunctionDoc(thing)
    names = (name for entry in doc["Parameters"] for name in entry.name.split(", "))
    documented = [name.lstrip("*") for name in names]
    if documented:
        expected = [name for name in inspect.signature(thing).parameters if name != "self"]
        assert documented == expected
    if inspect.isclass(thing):
        for name, method in inspect.getmembers(thing, inspect.isfunction):
            if not name.startswith("_") and "okforest" in method.__module__:
                assert inspect.getdoc(method), f"{name} has no docstring"


@pytest.mark.parametrize("name", okforest.__all__)
def test_models_have_examples(name):
    """Every class has an example; every model lists its attributes, without a placeholder."""
    thing = getattr(okforest, name)
    if inspect.isclass(thing):
        assert ">>>" in thing.__doc__
    if hasattr(thing, "fit"):
        assert "{" not in thing.__doc__.split("Attributes")[1]
