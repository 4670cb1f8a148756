"""Setting parameters of kernels from outside, as searches do."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKRidge, OKTree
from okforest.kernels import RBF, FromCallable, Linear, Normalized, Scaled
from okforest.kernels.base import kernel_was_set


def overlap(a, b):
    return np.equal.outer(a, b)


@pytest.mark.parametrize(
    ("holder", "params", "message"),
    [
        (
            OKTree(kernel="rbf"),
            {"kernel__sigma": 2.0},
            r"kernel__sigma cannot be set, because kernel='rbf' has no parameters; pass an object, "
            r"kernel=RBF\(\)\.",
        ),
        (OKTree(), {"kernel": "rbf", "kernel__sigma": 2.0}, r"kernel='rbf' .* kernel=RBF\(\)"),
        (
            OKTree(kernel="spline"),
            {"kernel__sigma": 2.0},
            "an object with this parameter as kernel",
        ),
        (
            OKTree(kernel=RBF),
            {"kernel__sigma": 2.0},
            r"kernel=RBF .* pass an object, kernel=RBF\(...\)",
        ),
        (
            OKTree(kernel=overlap),
            {"kernel__elementwise": True},
            r"kernel=overlap has no parameters; pass an object, kernel=FromCallable\(overlap\)",
        ),
        (OKTree(), {"decoder__outputs": []}, "decoder='auto' .* with this parameter as decoder"),
        (
            OKRidge(input_kernel="rbf"),
            {"input_kernel__sigma": 1.0},
            r"pass an object, input_kernel=RBF\(\)",
        ),
        (RBF(), {"base__sigma": 1.0}, "base=None has no parameters"),
        (Normalized("rbf"), {"base__sigma": 1.0}, r"base='rbf' .* base=RBF\(\)"),
        (Linear() + RBF(base="rbf"), {"second__base__sigma": 1.0}, r"base__sigma .* base=RBF\(\)"),
    ],
)
def test_parameters_of_what_has_none(holder, params, message):
    """A name, a function or a class has no parameters to set; the remedy is an object."""
    with pytest.raises(ValueError, match=message):
        clone(holder, safe=False).set_params(**params)


def test_searches_explain_it_too():
    """The error reaches the user of a search over a kernel given by name, also in a pipeline."""
    X, y = np.arange(12.0).reshape(-1, 1), np.arange(12.0)
    pipeline = make_pipeline(StandardScaler(), OKTree(kernel="rbf"))
    for model, name in ((OKTree(kernel="rbf"), ""), (pipeline, "oktree__")):
        with pytest.raises(ValueError, match=r"pass an object, kernel=RBF\(\)"):
            GridSearchCV(model, {f"{name}kernel__sigma": [1.0, 2.0]}).fit(X, y)


def test_parameters_that_exist_are_set():
    """An object given in the same call receives its parameters; unknown names are refused."""
    tree = OKTree(kernel="rbf").set_params(kernel=RBF(), kernel__sigma=2.0)
    assert tree.kernel.sigma == 2.0
    kernel = Scaled(RBF(base=Normalized(FromCallable(overlap))))
    kernel.set_params(scale=3.0, base__base__base__elementwise=True)
    assert (kernel.scale, kernel.base.base.base.elementwise) == (3.0, True)
    for holder in (tree, kernel):
        with pytest.raises(ValueError, match="Invalid parameter 'krnl'"):
            holder.set_params(krnl__sigma=2.0)
        with pytest.raises(ValueError, match="Invalid parameter 'krnl'"):
            holder.set_params(krnl="rbf")


def test_a_search_over_kernels_can_be_detected():
    """Setting the kernel or its parameters is remembered; a clone forgets it."""
    tree = OKTree(kernel=RBF())
    assert not kernel_was_set(tree)
    assert not kernel_was_set(tree.set_params(max_depth=3, decoder="support"))
    for params in ({"kernel__sigma": 2.0}, {"kernel": "linear"}):
        changed = clone(tree).set_params(**params)
        assert kernel_was_set(changed)
        assert not kernel_was_set(clone(changed))
    assert not kernel_was_set(StandardScaler())
