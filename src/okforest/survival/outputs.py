"""Reading outputs that are known up to an interval, such as survival times.

The canonical form has two columns, ``lower`` and ``upper``: equal for an exact value, ``upper`` is
infinite for a right-censored one, ``lower`` is minus infinity for a left-censored one, and both are
infinite for an unlabelled one.
"""

from typing import Any

import numpy as np

from okforest._utils.arrays import Booleans, Floats
from okforest._utils.distinct import refuse_masked
from okforest._utils.frames import is_frame

FORMS = (
    "a structured array with the fields event (bool) and time, such as "
    "np.rec.fromarrays([event, time], names='event,time'), or an array of shape (n, 2) with the "
    "columns lower and upper, equal for an exact value and infinite where there is no bound"
)


def read_intervals(y: Any, numbers: bool = False) -> Floats:
    """Return outputs as intervals, of shape (n, 2), or raise a ValueError that names the remedy.

    With ``numbers``, a 1-d array of numbers is taken for exact outputs.
    """
    refuse_masked(y, "y")
    if is_frame(y):
        return _read_frame(y)
    array = np.asarray(y)
    if array.dtype.names is not None:
        return _read_events(*_fields(array))
    if numbers and array.ndim == 1:
        exact = _numbers(array)
        return np.column_stack([exact, exact])
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"y has shape {array.shape}; pass {FORMS}.")
    return _read_bounds(array)


def times_only(intervals: Floats) -> Floats:
    """Return intervals unless they hold negative times or no event, which raise a ValueError."""
    finite = intervals[np.isfinite(intervals)]
    if len(finite) and finite.min() < 0:
        raise ValueError(
            f"y holds the negative time {finite.min():.6g}; times count from the start of "
            "observation and must be at least 0. Use lower = -inf for a time that is only bounded "
            "from above."
        )
    return intervals


def is_exact(intervals: Floats) -> Booleans:
    """Return which outputs are known exactly."""
    return np.asarray(intervals[:, 0] == intervals[:, 1])


def is_unlabelled(intervals: Floats) -> Booleans:
    """Return which outputs are not bounded at all."""
    return np.asarray(np.isneginf(intervals[:, 0]) & np.isposinf(intervals[:, 1]))


def right_censored(intervals: Floats, what: str) -> tuple[Booleans, Floats]:
    """Return events and times, or raise a ValueError for interval or left censoring."""
    exact = is_exact(intervals)
    others = intervals[~exact]
    if not np.isposinf(others[:, 1]).all() or np.isneginf(others[:, 0]).any():
        raise ValueError(
            f"{what} is defined for exact and right-censored times, but y also holds intervals or "
            "left-censored times. For these use okforest.survival.concordance_index and "
            "concordance_scorer, or select the rows with lower = upper or upper = inf."
        )
    return exact, intervals[:, 0]


def _fields(array: Any) -> tuple[Any, Any]:
    names = array.dtype.names
    if len(names) != 2:
        raise ValueError(f"y has the fields {', '.join(names)}; pass {FORMS}.")
    return _in_order(*(array[name] for name in names))


def _read_frame(frame: Any) -> Floats:
    if len(frame.columns) != 2:
        raise ValueError(f"y is a frame with {len(frame.columns)} columns; pass {FORMS}.")
    first, second = (np.asarray(frame[name]) for name in frame.columns)
    if {str(name).lower() for name in frame.columns} == {"event", "time"}:
        if str(frame.columns[0]).lower() == "time":
            first, second = second, first
        return _read_events(_as_events(first), second)
    if "b" in (first.dtype.kind, second.dtype.kind):
        return _read_events(*_in_order(first, second))
    return _read_bounds(np.column_stack([first, second]))


def _in_order(first: Any, second: Any) -> tuple[Any, Any]:
    """Return events and times, which are told apart by their type."""
    reverse = second.dtype.kind == "b" and first.dtype.kind != "b"
    return (second, first) if reverse else (first, second)


def _as_events(values: Any) -> Any:
    """Return a column with the name event as bool, if it holds only 0 and 1."""
    if values.dtype.kind in "iuf" and np.isin(values, (0, 1)).all():
        return values.astype(bool)
    return values


def _read_events(event: Any, time: Any) -> Floats:
    event, time = np.asarray(event), np.asarray(time)
    if event.dtype.kind != "b":
        raise ValueError(
            f"the event in y has type {event.dtype}; it must be bool: True if "
            "the event was observed, False if the case was censored."
        )
    time = _numbers(time)
    if len(time) and time.min() < 0:
        raise ValueError(
            f"y holds the negative time {time.min():.6g}; times count from the start of "
            "observation and must be at least 0."
        )
    if np.isinf(time).any():
        raise ValueError("y holds an infinite time; a case is censored by event = False.")
    return np.column_stack([time, np.where(event, time, np.inf)])


def _read_bounds(bounds: Any) -> Floats:
    bounds = _numbers(bounds)
    lower, upper = bounds.T
    if (lower > upper).any():
        i = int(np.argmax(lower > upper))
        raise ValueError(
            f"y[{i}] has lower = {lower[i]:.6g} > upper = {upper[i]:.6g}; the columns of y are "
            "lower and upper bounds, in this order. For events and times pass "
            "np.rec.fromarrays([event, time], names='event,time')."
        )
    # R codes events as 0 and 1, or as 1 and 2.
    like_events = set(lower) in ({0.0, 1.0}, {1.0, 2.0}) and np.isfinite(upper).all()
    many_times = len(set(upper)) > max(2, 0.25 * len(upper))  # visits are fewer
    if like_events and (lower < upper).mean() > 0.5 and many_times:
        raise ValueError(
            f"the first column of y holds only {lower.min():g} and {lower.max():g}, like events, "
            "but a plain array has the columns lower and upper. Pass "
            f"np.rec.fromarrays([status == {lower.max():g}, time], names='event,time'); if they "
            "are bounds, pass lower bounds that differ from these, such as -inf for 0."
        )
    if (np.isposinf(lower) | np.isneginf(upper)).any():
        raise ValueError("y holds lower = inf or upper = -inf; these bounds exclude every value.")
    return bounds


def _numbers(values: Any) -> Floats:
    if values.dtype.kind in "mM":
        raise ValueError(
            f"y holds dates or durations (type {values.dtype}); pass numbers, such as days since "
            "the start of observation: (date - start) / np.timedelta64(1, 'D')."
        )
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y holds values of type {values.dtype}; pass {FORMS}.") from None
    if np.isnan(numbers).any():
        raise ValueError(
            "y contains NaN; an unknown bound is -inf (lower) or inf (upper), and a case without "
            "any information has both."
        )
    return numbers
