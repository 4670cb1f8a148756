"""Classes by the names that files store, ``module:qualname``.

A name in a file never causes an import of anything outside okforest and the public modules of
scikit-learn in :data:`SCIKIT_LEARN`. It stands for a class that is passed to
:func:`okforest.load`, exported by okforest or one of these modules, or already imported by the
program. The class must derive from scikit-learn's ``BaseEstimator``, as models, kernels and
decoders do. A file can thus choose estimators and their parameters, but it cannot run any other
code.
"""

import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from sklearn.base import BaseEstimator

SCIKIT_LEARN = frozenset(
    f"sklearn.{name}"
    for name in (
        *("calibration", "cluster", "compose", "covariance", "cross_decomposition"),
        *("decomposition", "discriminant_analysis", "dummy", "ensemble", "feature_extraction"),
        *("feature_extraction.image", "feature_extraction.text", "feature_selection", "frozen"),
        *("gaussian_process", "impute", "isotonic", "kernel_approximation", "kernel_ridge"),
        *("linear_model", "manifold", "mixture", "model_selection", "multiclass", "multioutput"),
        *("naive_bayes", "neighbors", "neural_network", "pipeline", "preprocessing"),
        *("random_projection", "semi_supervised", "svm", "tree"),
    )
)


class UnknownClassError(Exception):
    """A file names a class that is neither imported nor passed to :func:`okforest.load`."""


def class_name(cls: type) -> str:
    """Return the name that a file stores for a class.

    okforest and scikit-learn move classes between the files of a package: theirs are stored with
    the package that exports them.
    """
    module, qualname = cls.__module__, cls.__qualname__
    parts = module.split(".")
    if parts[0] in ("okforest", "sklearn"):
        packages = (".".join(parts[:n]) for n in range(2, len(parts)))
        module = next((name for name in packages if _imported(name, qualname) is cls), module)
    return f"{module}:{qualname}"


class ClassFinder:
    """Finds the class that a name in a file stands for.

    Parameters
    ----------
    types : iterable of classes
        Classes that are found whether or not their module is imported.
    """

    def __init__(self, types: Iterable[Any]):
        if isinstance(types, type):
            raise TypeError(f"types is a class; pass a list of classes: types=[{types.__name__}].")
        if not isinstance(types, Iterable):
            raise TypeError(f"types={types!r}; pass a list of classes.")
        self._types = list(types)
        for cls in self._types:
            if not _is_estimator_class(cls):
                raise TypeError(
                    f"types holds {cls!r}; pass classes of models, kernels, decoders or other "
                    "scikit-learn estimators."
                )

    def find(self, name: str) -> Any:
        """Return the class, or raise an :class:`UnknownClassError`.

        A class that was passed comes before an imported one, if its module is the one of the name
        or within it. A class that was passed and has moved to another module comes last.
        """
        module, _, qualname = name.partition(":")
        named = [cls for cls in self._types if cls.__qualname__ == qualname]
        for cls in named:
            if f"{cls.__module__}.".startswith(f"{module}."):
                return cls
        if module in _own_packages() or module in SCIKIT_LEARN:
            with suppress(ImportError):  # the package may be optional
                import_module(module)
        imported = _imported(module, qualname)
        if _is_estimator_class(imported):
            return imported
        if named:
            return named[0]
        raise UnknownClassError(_how_to_find(module, qualname))


def _is_estimator_class(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseEstimator)


def _imported(module: str, qualname: str) -> Any:
    """Return what an imported module holds under a name, or None."""
    thing: Any = sys.modules.get(module)
    for part in qualname.split("."):
        # Not getattr: a module may import others when it is asked for an attribute.
        thing = getattr(thing, "__dict__", {}).get(part)
    return thing


@cache
def _own_packages() -> frozenset[str]:
    """Return the public packages within okforest, which may be imported."""
    package = Path(__file__).parent.parent
    found = iter_modules([str(package)])
    return frozenset(f"okforest.{item.name}" for item in found if not item.name.startswith("_"))


def _how_to_find(module: str, qualname: str) -> str:
    name = qualname.rpartition(".")[2]
    needed = f"it needs the class {name} ({module}:{qualname})"
    if module in sys.modules or "<locals>" in qualname:
        return f"{needed}, which is not an estimator class of {module}. Pass types=[{name}] to load"
    return (
        f"{needed}, and load does not import modules that a file names. Import {module} first, or "
        f"pass types=[{name}] to load"
    )
