"""What a fit learns: complete before the model changes, and installed in one step."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator


class FittedState(BaseEstimator):
    """An estimator whose fit changes nothing until it is complete.

    ``fit`` runs on a copy without the attributes of an earlier fit (with ``warm_start=True``, with
    them), and what the copy has learnt then replaces all that the estimator had. A fit that raises
    an error, or is interrupted, leaves the estimator as it was.

    Fitted attributes have names that end in an underscore. Attributes that are derived from them,
    and computed again after loading, are listed in ``_derived``.
    """

    _derived: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "fit_by"):
            if name in vars(cls):
                setattr(cls, name, _whole(vars(cls)[name]))

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._derived}


def _whole(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a fit that runs on a copy of the estimator and then installs what it has learnt."""
    if getattr(fit, "__isabstractmethod__", False):
        return fit

    @wraps(fit)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "_fitting" in vars(self):  # the fit of a subclass calls that of its base class
            return fit(self, *args, **kwargs)
        learner = _learner(self)
        result = fit(learner, *args, **kwargs)
        del learner._fitting
        kept = {name: value for name, value in vars(self).items() if not _is_learnt(self, name)}
        learnt = {name: value for name, value in vars(learner).items() if _is_learnt(self, name)}
        self.__dict__ = kept | learnt  # one step: other threads see the old fit or the new one
        return self if result is learner else result

    return run


def _learner(estimator: Any) -> Any:
    learner = object.__new__(type(estimator))
    continues = getattr(estimator, "warm_start", False)
    for name, value in vars(estimator).items():
        if continues or not _is_learnt(estimator, name):
            vars(learner)[name] = value
    learner._fitting = True
    return learner


def _is_learnt(estimator: Any, name: str) -> bool:
    return (name.endswith("_") and not name.startswith("_")) or name in estimator._derived


def check_feature_count(model: Any) -> None:
    """Check the number of features, and that there is a name for each if there are names."""
    n_features = model.n_features_in_
    if type(n_features) is not int or n_features < 1:
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
