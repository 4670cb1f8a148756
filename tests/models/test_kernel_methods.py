"""Kernels offer methods and attributes to the models that have them."""

import copy
import inspect
import pickle
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import okforest
from okforest import OKBoost, OKEnsemble, OKExtraTrees, OKModel, OKNeighbors, OKRidge, OKTree
from okforest.kernels import Dirac, Hamming, Linear, Normalized, OutputKernel, Sum
from okforest.kernels.base import methods_of
from okforest.survival import Survival

X = np.random.default_rng(0).normal(size=(12, 3))
CLASSES = ["a", "b", "c"] * 4
TIMES = np.rec.fromarrays([[True, False, True] * 4, np.arange(1.0, 13.0)], names="event,time")
SURVIVAL = {"predict_survival_function", "predict_quantiles", "predict_risk", "event_times_"}


def predict_spread(model, X, power=2):
    """Return the weighted variance of the outputs."""
    W = model.predict_weights(X)
    return W @ model.outputs_**power - (W @ model.outputs_) ** power


class Measured(Linear):
    """A kernel of a user."""

    methods: ClassVar = {
        "predict_spread": predict_spread,
        "n_seen_": property(lambda model: len(model.outputs_)),
    }


@pytest.mark.parametrize(
    ("kernel", "y", "names"),
    [
        ("dirac", CLASSES, {"predict_proba", "classes_"}),
        (Dirac(), CLASSES, {"predict_proba", "classes_"}),
        ("hamming", [{c} for c in CLASSES], {"predict_proba", "classes_"}),
        ("survival", TIMES, SURVIVAL),
        (2.0 * Survival() + Survival(4), TIMES, SURVIVAL),
        (Normalized(Hamming()), [{c} for c in CLASSES], set()),
        ("linear", X, set()),
        (lambda a, b: np.outer(a, b), X[:, 0], set()),
    ],
)
def test_names(kernel, y, names):
    """They are listed and found, attributes after fit only; other models do not have them."""
    every = {"predict_proba", "classes_"} | SURVIVAL
    for model in (OKTree(kernel=kernel), OKNeighbors(3, kernel=kernel)):
        assert names <= set(dir(model))
        assert not (every - names) & set(dir(model))
        methods = {name for name in every if not name.endswith("_")}
        assert {name for name in methods if hasattr(model, name)} == names & methods
        assert not any(hasattr(model, name) for name in every - methods)
        model.fit(X, y)
        assert {name for name in every if hasattr(model, name)} == names
        for name in every - names:
            with pytest.raises(AttributeError, match=f"{type(model).__name__} has no {name}"):
                getattr(model, name)


def test_they_look_like_methods():
    """Name, signature and documentation come from the function; the model is bound."""
    model = OKTree(kernel=Measured())
    assert str(inspect.signature(model.predict_spread)) == "(X, power=2)"
    assert inspect.getdoc(model.predict_spread) == "Return the weighted variance of the outputs."
    assert model.predict_spread.__self__ is model
    assert inspect.signature(OKTree(kernel="dirac").predict_proba).parameters.keys() == {"X"}
    assert "probabilities of classes" in inspect.getdoc(OKTree(kernel="dirac").predict_proba)


@pytest.mark.parametrize(
    "model", [OKExtraTrees(3), OKBoost(3), OKNeighbors(3), OKRidge(), OKEnsemble([OKTree()])]
)
def test_a_kernel_of_a_user(model, tmp_path):
    """Every model has the methods of the kernel, also after a copy, a pickle or a file."""
    y = X[:, 0]
    model = clone(model).set_params(kernel=Measured())
    model.fit(X, y)
    W = model.predict_weights(X)
    expected = W @ y**2 - (W @ y) ** 2
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model", types=[Measured])
    for one in (model, copy.copy(model), copy.deepcopy(model), model.compact(), loaded):
        np.testing.assert_allclose(one.predict_spread(X), expected)
        assert one.n_seen_ == 12
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).predict_spread(X), expected)
    assert not hasattr(clone(model), "n_seen_")


def test_parts_of_a_kernel():
    """A kernel offers its methods also within another one only if it says so."""
    assert methods_of(Measured()).keys() == {"predict_spread", "n_seen_"}
    assert not methods_of(2.0 * Measured())
    assert methods_of(2.0 * (Linear() + Survival())).keys() == SURVIVAL


def test_the_first_of_two_parts_has_the_method():
    """A composed kernel comes before its parts, and they come in the order of its parameters."""

    class First(Linear):
        methods: ClassVar = {"predict_part": lambda model, X: "first"}
        methods_as_part = True

    class Second(Linear):
        methods: ClassVar = {"predict_part": lambda model, X: "second"}
        methods_as_part = True

    class Both(Sum):
        methods: ClassVar = {"predict_part": lambda model, X: "both"}

    kernels = {"first": First() + 2.0 * Second(), "second": Second() + First()}
    for expected, kernel in (kernels | {"both": Both(First(), Second())}).items():
        assert OKTree(kernel=kernel).predict_part(X) == expected

    """A model that defines a method has its own, and its own errors."""

    class Own(OKTree):
        def predict_proba(self, X):
            return "own"

        @property
        def refused_(self):
            raise AttributeError("this is why")

    model = Own(kernel="dirac").fit(X, CLASSES)
    assert model.predict_proba(X) == "own"
    with pytest.raises(AttributeError, match="this is why"):
        _ = model.refused_
    assert not hasattr(model, "__array__")
    assert not hasattr(model, "_ipython_display_")


@pytest.mark.parametrize("kernel", ["no such kernel", 3, None])
def test_half_built_models(kernel):
    """Attributes are looked for in models without parameters, and with a wrong kernel."""
    empty = object.__new__(OKTree)
    assert not hasattr(empty, "kernel")
    assert not hasattr(empty, "predict_proba")
    assert "fit" in dir(empty)
    assert not hasattr(OKTree(kernel=kernel), "predict_proba")
    assert "fit" in dir(OKTree(kernel=kernel))
    assert not is_classifier(OKTree(kernel=kernel))


def test_other_names_are_refused():
    """A misspelt attribute has the message of Python."""
    with pytest.raises(AttributeError, match="OKTree has no predict_probs"):
        OKTree(kernel="dirac").predict_probs(X)
    assert issubclass(Measured, OutputKernel)
    assert not hasattr(OKModel, "predict_proba")


@pytest.mark.parametrize("kernel", [Dirac(), Hamming(), Survival()])
def test_documentation(kernel):
    """Every parameter is described, as in methods of classes."""
    described = "".join(cls.__doc__ or "" for cls in type(kernel).__mro__)
    for name, method in kernel.methods.items():
        if isinstance(method, property):
            assert f"``{name}``" in described
            continue
        assert f"``{name}(X" in described
        _, *parameters = inspect.signature(method).parameters
        assert all(f"\n{parameter} : " in inspect.getdoc(method) for parameter in parameters)
