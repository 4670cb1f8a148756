"""A fit that fails leaves a model as it was."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Fit = TypeVar("Fit", bound=Callable[..., Any])


def atomic(fit: Fit) -> Fit:
    """Restore the attributes of a model if its fit raises an error or is interrupted."""

    @wraps(fit)
    def attempt(model: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(model).copy()
        try:
            return fit(model, *args, **kwargs)
        except BaseException:  # Ctrl-C too
            vars(model).clear()
            vars(model).update(before)
            raise

    return attempt  # type: ignore[return-value]
