"""What a fit learns: declared by annotations, complete before it is installed, checked in files."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from okforest._utils.arrays import Outputs

T = TypeVar("T")
ABSENT = "may be absent"
Maybe = Annotated[T, ABSENT]  # an attribute that some fits do not learn
KINDS = {"f": "floats", "i": "integers", "u": "integers", "b": "booleans"}


class FittedState(BaseEstimator):
    """An estimator whose fit changes nothing until it is complete.

    ``fit`` runs on a copy without the attributes of an earlier fit (with ``warm_start=True``, with
    them), and what the copy has learnt then replaces all that the estimator had. A fit that raises
    an error, or is interrupted, leaves the estimator as it was. Predictions change nothing, so that
    threads can share an estimator.

    Fitted attributes have names that end in an underscore. The annotations of the class and its
    bases declare them with their types, ``trees_: Trees``, or ``oob_score_: Maybe[float]`` for an
    attribute that some fits do not learn. A fit of okforest learns no others, and files with other
    names or types are refused; a class of a user may set any attribute in its fit. Attributes that
    are derived from them, and computed again after loading, are listed in ``_derived``.
    """

    _derived: ClassVar[tuple[str, ...]] = ()

    n_features_in_: Maybe[int]
    feature_names_in_: Maybe[Outputs]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "fit_by"):
            fit = inspect.getattr_static(cls, name, None)  # its own, or that of a mixin
            if inspect.isfunction(fit) and not hasattr(fit, "installs"):
                setattr(cls, name, _whole(fit))

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._derived}

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes are those that the class declares.

        For developers: :func:`okforest.save` and :func:`okforest.load` call it. A subclass whose
        arrays must fit each other, as compiled code trusts, extends it.
        """
        check_declared(self)


def _whole(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a fit that runs on a copy of the estimator and then installs what it has learnt."""
    if getattr(fit, "__isabstractmethod__", False):
        return fit

    @wraps(fit)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "_fitting" in vars(self):  # the fit of a subclass calls that of its base class
            return fit(self, *args, **kwargs)
        learner = blank(self, keep=getattr(self, "warm_start", False))
        learner._fitting = True
        result = fit(learner, *args, **kwargs)
        del learner._fitting
        _check_names(learner)
        self.__dict__ = vars(learner)  # one step: other threads see the old fit or the new one
        return self if result is learner else result

    run.installs = True  # type: ignore[attr-defined]
    return run


def blank(estimator: Any, keep: bool = False) -> Any:
    """Return an estimator with the same parameters, and what was learnt only if it is kept."""
    twin = object.__new__(type(estimator))
    for name, value in vars(estimator).items():
        if keep or not _is_learnt(estimator, name):
            vars(twin)[name] = value
    return twin


def _is_learnt(estimator: Any, name: str) -> bool:
    # A class of a user may learn attributes that it does not declare: they stay until they are set.
    cls: type = type(estimator)
    learns = _is_fitted_name(name) and (_is_ours(cls) or name in declaration(cls))
    return learns or name in estimator._derived


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("okforest.")


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


@cache
def declaration(cls: type) -> dict[str, Any]:
    """Return the types of the fitted attributes of a class, by name."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        try:
            hints = inspect.get_annotations(base, eval_str=True)
        except NameError:  # a name that is imported for type checkers only
            hints = dict.fromkeys(inspect.get_annotations(base), Any)
        found |= {name: hint for name, hint in hints.items() if _is_fitted_name(name)}
    return found


def check_declared(estimator: Any) -> None:
    """Raise a ValueError unless fitted attributes have the declared names and types."""
    _check_names(estimator)
    cls: Any = type(estimator)
    learnt = vars(estimator)
    for name, hint in declaration(cls).items():
        if name not in learnt:
            if ABSENT not in getattr(hint, "__metadata__", ()):
                raise ValueError(f"the fitted {cls.__name__} is incomplete, with {name} missing")
        elif not _fits(learnt[name], hint):
            value = learnt[name]
            what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
            raise ValueError(f"{name} is {what[:80]}, not {_text(hint)}")


def _check_names(estimator: Any) -> None:
    """Raise a ValueError if an estimator of okforest has a fitted attribute of another name."""
    cls: Any = type(estimator)
    if not _is_ours(cls):
        return
    unknown = {name for name in vars(estimator) if _is_fitted_name(name)} - declaration(cls).keys()
    if unknown:
        raise ValueError(
            f"{min(unknown)} is not a fitted attribute of {cls.__name__}; declare it by an "
            f"annotation of the class, such as {min(unknown)}: np.ndarray"
        )


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type, as annotations name it."""
    hint = _without_alias(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin is Annotated:
        return _fits(value, parts[0])
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str | int) and value in parts
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _kind(parts) in ("", KINDS.get(value.dtype.kind))
    if origin is list:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if origin is tuple:
        return isinstance(value, tuple)
    if origin is dict:
        pairs = isinstance(value, dict) and value.items()
        return pairs is not False and all(
            _fits(key, parts[0]) and _fits(item, parts[1]) for key, item in pairs
        )
    if hint is None or hint is NoneType:
        return value is None
    if hint in (int, float):
        numbers = (int, np.integer) if hint is int else (float, np.floating)
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _without_alias(hint: Any) -> Any:
    """Return a type for a name that a ``type`` statement gave it, as NumPy 2.5 names NDArray."""
    parts = get_args(hint)
    alias = get_origin(hint) or hint
    value = getattr(alias, "__value__", None)  # TypeAliasType is not in Python 3.11
    if value is None:
        return hint
    return _without_alias(value[parts] if parts else value)


def _kind(parts: tuple[Any, ...]) -> str:
    """Return the kind of the entries of a type of arrays; empty if it may be any."""
    scalar = (*get_args(parts[-1]), Any)[0]
    if not isinstance(scalar, type):
        return ""
    kinds = {np.floating: "floats", np.integer: "integers", np.bool_: "booleans"}
    return next((name for cls, name in kinds.items() if issubclass(scalar, cls)), "")


def _text(hint: Any) -> str:
    hint = _without_alias(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _text(parts[0])
    if origin in (Union, UnionType):
        return " or ".join(map(_text, parts))
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin is np.ndarray:
        return f"an array of {_kind(parts)}".removesuffix(" of ")
    name = getattr(origin or hint, "__name__", str(hint))
    return "None" if name == "NoneType" else f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def check_feature_count(model: Any) -> None:
    """Check the number of features, and that there is a name for each if there are names."""
    n_features = model.n_features_in_
    if n_features < 1:
        raise ValueError(f"n_features_in_ is {n_features!r}")
    check_length(model, "feature_names_in_", n_features)


def check_length(model: Any, name: str, expected: int) -> None:
    """Check the length of an attribute, if the model has it."""
    if hasattr(model, name) and len(getattr(model, name)) != expected:
        raise ValueError(f"{name} has {len(getattr(model, name))} entries, not {expected}")


def check_floats(
    model: Any, name: str, n_dimensions: int, shape: tuple[int, ...] | None = None
) -> None:
    """Check an attribute that holds an array of floats, dense or sparse."""
    array = getattr(model, name)
    if not isinstance(array, np.ndarray | sp.csr_array) or array.dtype.kind != "f":
        raise ValueError(f"{name} is not an array of floats")
    if array.ndim != n_dimensions or shape not in (None, array.shape):
        raise ValueError(f"{name} has shape {array.shape}")
