"""Setting the parameters of kernels from outside, as searches do."""

from typing import Any, Self

from sklearn.base import BaseEstimator


class NestedParametersMixin(BaseEstimator):
    """An estimator whose parameters may be kernels, with parameters of their own.

    Scores in the feature spaces of different kernels cannot be compared. A search changes
    ``kernel`` or ``kernel__sigma`` with :meth:`set_params`, which :func:`kernel_was_set` detects.
    """

    _kernel_was_set = False

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of kernels, as in ``kernel__sigma`` or ``base__sigma``.

        Parameters
        ----------
        **params : dict
            Values by name.

        Returns
        -------
        self : estimator
            This estimator.
        """
        _check_nested(self, params)
        super().set_params(**params)
        if any(name.partition("__")[0] == "kernel" for name in params):
            self._kernel_was_set = True
        return self


def kernel_was_set(model: Any) -> bool:
    """Return whether a model's kernel, or a parameter of it, was changed by ``set_params``."""
    return getattr(model, "_kernel_was_set", False)


def _check_nested(estimator: BaseEstimator, params: dict[str, Any]) -> None:
    """Raise a ValueError if a parameter such as ``kernel__sigma`` has no object to be set on."""
    own = estimator.get_params(deep=False)
    for name in params:
        part, nested, _ = name.partition("__")
        value = params.get(part, own.get(part))
        has_parameters = hasattr(value, "set_params") and not isinstance(value, type)
        if nested and part in own and not has_parameters:
            raise ValueError(
                f"{name} cannot be set, because {part}={_shown(value)} has no parameters; "
                f"pass {_as_object(part, value)}."
            )


def _shown(value: Any) -> str:
    return getattr(value, "__name__", repr(value))


def _as_object(part: str, value: Any) -> str:
    """Describe the object to pass instead of a name, a class or a function."""
    from okforest.kernels.as_kernel import as_kernel

    if isinstance(value, type):
        return f"an object, {part}={value.__name__}(...)"
    try:
        kernel = type(as_kernel(value)).__name__
    except ValueError:
        return f"an object with this parameter as {part}"
    return f"an object, {part}={kernel}({_shown(value) if callable(value) else ''})"
