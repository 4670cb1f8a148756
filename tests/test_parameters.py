"""Parameters and arguments against their declared constraints."""

from numbers import Integral, Real

import numpy as np
import pytest

from okforest._utils.compat import Interval, StrOptions
from okforest._utils.parameters import check_arguments, check_parameters

AT_LEAST_ONE = [Interval(Integral, 1, None, closed="left")]


class Wave:
    """A part with parameters, which is not an estimator."""

    _parameter_constraints = {  # noqa: RUF012
        "length": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        "steps": AT_LEAST_ONE,
    }

    def __init__(self, length: object = "median", steps: object = 1):
        self.length = length
        self.steps = steps


@pytest.mark.parametrize("length", ["median", 2, 0.5, np.float32(0.5)])
@pytest.mark.parametrize("steps", [1, np.int64(3)])
def test_valid_parameters_pass(length, steps):
    check_parameters(Wave(length, steps))


@pytest.mark.parametrize("length", [0, -1.0, float("nan"), True, "mean", None, [1.0]])
def test_the_message_names_class_parameter_range_and_value(length):
    message = r"The 'length' parameter of Wave must be a float in the range \(0(\.0)?, inf\)"
    with pytest.raises(ValueError, match=message) as raised:
        check_parameters(Wave(length))
    assert "'median'" in str(raised.value)
    assert f"Got {length!r} instead" in str(raised.value)


@pytest.mark.parametrize("steps", [0, 1.0, True, np.True_, "1"])
def test_integers_are_no_floats_and_no_booleans(steps):
    with pytest.raises(ValueError, match="'steps' parameter of Wave must be an int"):
        check_parameters(Wave(steps=steps))


def test_only_the_named_parameters_are_checked():
    wave = Wave("mean", 0)
    with pytest.raises(ValueError, match="'steps'"):
        check_parameters(wave, {"steps": AT_LEAST_ONE})


def test_arguments_of_a_function():
    check_arguments("best", {"k": AT_LEAST_ONE}, k=2)
    with pytest.raises(ValueError, match=r"'k' parameter of best must be an int.*Got 0 instead"):
        check_arguments("best", {"k": AT_LEAST_ONE}, k=0)
