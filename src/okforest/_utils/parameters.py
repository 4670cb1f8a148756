"""Parameters as users pass them, checked against declared constraints as in scikit-learn."""

from numbers import Integral, Real
from typing import Any

from okforest._utils.compat import Interval, validate_parameter_constraints

COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_integer(
    name: str, value: Any, least: int, most: int | None = None, *, reason: str = ""
) -> int:
    """Return an argument that must be an integer in a range, or raise a ValueError.

    The message names the range and, if given, the reason for it: a clause such as "X has 3
    features".
    """
    if is_integer(value) and value >= least and (most is None or value <= most):
        return int(value)
    if most is None:
        expected = f"an integer of at least {least}"
    else:
        expected = f"{least}" if least == most else f"an integer from {least} to {most}"
    because = f": {reason}" if reason else ""
    raise ValueError(f"{name}={value!r}; expected {expected}{because}.")


def check_parameters(obj: Any, constraints: dict[str, Any] | None = None) -> None:
    """Raise a ValueError unless the parameters of an object satisfy their constraints.

    Parameters
    ----------
    obj : object
        An object that stores its parameters under their names, such as a kernel or a decoder.
    constraints : dict, optional
        For the name of each parameter, a list of what it may be, as in scikit-learn: types, an
        ``Interval``, ``StrOptions``, None and so on. By default the ``_parameter_constraints`` of
        the object's class.
    """
    if constraints is None:
        constraints = obj._parameter_constraints
    values = {name: getattr(obj, name) for name in constraints}
    validate_parameter_constraints(constraints, values, type(obj).__name__)


def check_arguments(caller: str, constraints: dict[str, Any], **values: Any) -> None:
    """Raise a ValueError unless the arguments of a function satisfy their constraints."""
    validate_parameter_constraints(constraints, values, caller)
