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
