"""What cannot be saved is refused with its name and what to do, and nothing is written."""

import functools
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import okforest
from okforest import OKTree
from okforest.decode import Candidates, TrainingSet
from okforest.kernels import RBF, FromCallable, Linear

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = rng.normal(size=(20, 2))


def gram(a, b):
    return a @ b.T


class MyKernel(Linear):
    pass


class MyDecoder(TrainingSet):
    pass


CASES = {
    "function": ({"kernel": gram}, "OKTree.kernel is a function", "kernel=Precomputed(K)"),
    "callable": (
        {"kernel": functools.partial(gram)},
        "OKTree.kernel is a functools.partial",
        "kernel=Precomputed(K)",
    ),
    "kernel of a function": (
        {"kernel": FromCallable(gram)},
        "OKTree.kernel is a okforest.kernels.callables.FromCallable",
        "kernel=Precomputed(K)",
    ),
    "kernel in a kernel": (
        {"kernel": Linear() + 2.0 * RBF(base=MyKernel())},
        "OKTree.kernel.k2.kernel.base is a ",
        "kernel=Precomputed(K)",
    ),
    "kernel": ({"kernel": MyKernel()}, "OKTree.kernel is a ", "pickle or joblib"),
    "decoder": ({"decoder": MyDecoder()}, "OKTree.decoder is a ", "Use pickle or joblib"),
    "random state": (
        {"random_state": np.random.RandomState(0)},
        "OKTree.random_state is a numpy.random.",
        "call model.set_params(random_state=None) first",
    ),
    "frame": (
        {"decoder": Candidates(pd.DataFrame(Y))},
        "OKTree.decoder.outputs is a pandas.",
        "Use pickle or joblib",
    ),
}
VALUES = {
    "set": ({1}, "OKTree.extra_ is a set"),
    "object in a list": ([0, [object()]], "OKTree.extra_[1][0] is a object"),
    "object in a dict": ({"a": 1j}, "OKTree.extra_['a'] is a complex"),
    "key": ({(0, b""): 1}, "a key of OKTree.extra_[1] is a bytes"),
    "object in an array": (np.array([None, {1}]), "OKTree.extra_[1] is a set"),
    "dates": (np.array(["2006-06-25"], "M8[D]"), "OKTree.extra_ is an array of type datetime64[D]"),
    "records": (np.zeros(2, "i4,f4"), "OKTree.extra_ is an array of type [("),
    "long numbers": (np.zeros(2, np.longdouble), "OKTree.extra_ is an array of type"),
    "masked": (np.ma.masked_equal([1, 2], 2), "(a numpy.ma"),
    "duration": (np.timedelta64(3, "D"), "OKTree.extra_ is a datetime.timedelta"),
}


def assert_refused(model, path, *parts):
    path.write_bytes(b"as it was")
    with pytest.raises(TypeError) as refusal:
        okforest.save(model, path)
    assert all(part in str(refusal.value) for part in parts)
    assert path.read_bytes() == b"as it was"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("params", "what", "advice"), CASES.values(), ids=CASES)
def test_parameters(tmp_path, params, what, advice):
    """Functions, classes of the user's own, and generators of random numbers."""
    assert_refused(OKTree(**params).fit(X, Y), tmp_path / "model", what, advice)


@pytest.mark.parametrize(("value", "what"), VALUES.values(), ids=VALUES)
def test_attributes(tmp_path, value, what):
    """Values that files do not have, wherever they are."""
    model = OKTree().fit(X, Y)
    model.extra_ = value
    assert_refused(model, tmp_path / "model", what, "Use pickle or joblib")


def test_the_advice_on_random_states_helps(tmp_path):
    """Without its generator the model is saved, and the same."""
    model = OKTree(random_state=np.random.RandomState(0)).fit(X, Y)
    okforest.save(model.set_params(random_state=None), tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_is_no_model(tmp_path):
    """Pipelines, classes, subclasses and models that are not fitted."""

    class MyTree(OKTree):
        pass

    for thing, name in (
        (make_pipeline(OKTree()).fit(X, Y), "Pipeline"),
        (MyTree().fit(X, Y), "MyTree"),
        (OKTree, "ABCMeta"),
        (Linear(), "Linear"),
    ):
        assert_refused(
            thing, tmp_path / "model", f"and this is a {name}", "pickle, joblib or skops"
        )
    with pytest.raises(NotFittedError, match=re.escape("this OKTree is not fitted: call fit")):
        okforest.save(OKTree(), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_bad_paths(tmp_path):
    """Folders, and files in folders that do not exist."""
    model = OKTree().fit(X, Y)
    with pytest.raises(IsADirectoryError, match=r"is a folder\. Pass the path of a file"):
        okforest.save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*absent\. Make it first"):
        okforest.save(model, tmp_path / "absent" / "model")
    assert list(tmp_path.iterdir()) == []
