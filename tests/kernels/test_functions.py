"""Functions as kernels: which are accepted, and errors that tell what to change."""

import math

import numpy as np
import pytest

from okforest import OKTree
from okforest.kernels import FromCallable, Linear


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: np.ones(len(a)), r"returned an array of shape \(4,\).*elementwise=True"),
        (lambda a, b: 1.0, r"returned an array of shape \(\) for 4 and 4 outputs"),
    ],
)
def test_functions_of_the_wrong_shape(function, message):
    """A kernel function must return a matrix."""
    with pytest.raises(ValueError, match=message):
        FromCallable(function)(np.arange(4))


def edit_distance(a, b):
    """Return a number for two strings; on arrays of strings it fails."""
    if not a or not b:
        return max(len(a), len(b))
    same = a[0] == b[0]
    insert, delete = edit_distance(a, b[1:]), edit_distance(a[1:], b)
    return min(insert + 1, delete + 1, edit_distance(a[1:], b[1:]) + (not same))


@pytest.mark.parametrize(
    "function",
    [lambda a, b: np.exp(-edit_distance(a, b)), lambda a, b: float(a.count("a") * b.count("a"))],
    ids=["ambiguous truth", "no attribute"],
)
def test_functions_of_two_single_outputs(function):
    """A function that fails on arrays, but not on two outputs, is recognised; the remedy works."""
    y = ["ab", "abc", "b"]
    message = r"takes two single outputs: .*Error.* Pass kernel=FromCallable\(function, elementwise"
    with pytest.raises(ValueError, match=message):
        OKTree(kernel=function).fit(np.arange(3.0)[:, None], y)
    model = OKTree(kernel=FromCallable(function, elementwise=True))
    assert model.fit(np.arange(3.0)[:, None], y).predict([[0.0]]).tolist() == ["ab"]


def test_errors_of_functions_pass_unchanged():
    """If a function fails on single outputs as well, its own error is raised."""
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        FromCallable(lambda a, b: 1 / 0)(np.arange(3))
    with pytest.raises(IndexError, match="no such output"):
        FromCallable(_refuse)(np.arange(3))
    with pytest.raises(ZeroDivisionError):
        FromCallable(lambda a, b: 1 / 0)(np.arange(0))
    with pytest.raises(ValueError, match="values of type complex128; it must return real"):
        FromCallable(lambda a, b: np.ones((3, 3)) * 1j)(np.arange(3))


def _refuse(a, b):
    raise IndexError("no such output")


def test_elementwise_functions_return_numbers():
    """With elementwise=True, anything but a number is an error."""
    with pytest.raises(ValueError, match="returned an object of type list for two outputs"):
        FromCallable(lambda a, b: [1, 2], elementwise=True)(np.arange(2))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (math.sqrt, r"function sqrt\(x, /\) cannot be called with two arguments; pass a function"),
        (lambda a: 1.0, r"function <lambda>\(a\) cannot be called with two arguments"),
        (5, "function=5 is not a function; pass a function of two arrays of outputs"),
    ],
)
@pytest.mark.parametrize("elementwise", [False, True])
def test_kernel_functions_take_two_arguments(function, message, elementwise):
    """A function of one argument, or no function, is an error in fit; so it is in a sum."""
    kernel = FromCallable(function, elementwise=elementwise)
    for used in (kernel, Linear() + kernel):
        with pytest.raises(ValueError, match=message):
            OKTree(kernel=used).fit(np.arange(3.0)[:, None], np.arange(3.0))


def test_functions_without_a_signature_are_kernels():
    """Some compiled functions have no signature to check; max is one of them."""
    kernel = FromCallable(max, elementwise=True)
    assert kernel.resolve(np.arange(2)) is kernel
