"""What cannot be saved raises an error with its name and what to do, and nothing is written."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import okforest
from okforest import DirectionBase, OKBoost, OKExtraTrees, OKNeighbors, OKTree
from okforest.decode import Candidates
from okforest.kernels import RBF, FromCallable, Linear, OutputKernel

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = rng.normal(size=(20, 2))


def gram(a, b):
    return a @ b.T


def distance(a, b):
    return np.abs(a - b).sum()


class Logarithm(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.log1p(X)


def ignore(n_trees):
    pass


KERNEL_ADVICE = "Write the kernel as a subclass of okforest.kernels.OutputKernel"
CASES = {
    "function": ({"kernel": gram}, "OKTree.kernel is a function", KERNEL_ADVICE),
    "callable": (
        {"kernel": functools.partial(gram)},
        "OKTree.kernel is a functools.partial",
        KERNEL_ADVICE,
    ),
    "kernel of a function": (
        {"kernel": Linear() + 2.0 * FromCallable(gram)},
        "OKTree.kernel.second.base.function is a function",
        KERNEL_ADVICE,
    ),
    "random state": (
        {"random_state": np.random.RandomState(0)},
        "OKTree.random_state is a numpy.random.",
        "set random_state to None by set_params before saving",
    ),
    "frame": (
        {"decoder": Candidates(pd.DataFrame(Y))},
        "OKTree.decoder.outputs is a pandas.",
        "Use pickle, joblib or skops",
    ),
}
VALUES = {
    "bytes": (b"a", "Mine.extra_ is a bytes"),
    "object in a list": ([0, [object()]], "Mine.extra_[1][0] is an object"),
    "object in a dict": ({"a": 1j}, "Mine.extra_['a'] is a complex"),
    "object in a set": ({1j}, "an item of Mine.extra_ is a complex"),
    "key": ({(0, b""): 1}, "a key of Mine.extra_[1] is a bytes"),
    "object in an array": (np.array([None, 1j]), "Mine.extra_[1] is a complex"),
    "class": (OKTree, "Mine.extra_ is an abc.ABCMeta"),
    "dates": (np.array(["2006-06-25"], "M8[D]"), "Mine.extra_ is an array of type datetime64[D]"),
    "records": (np.zeros(2, "i4,f4"), "Mine.extra_ is an array of type [("),
    "long numbers": (np.zeros(2, np.longdouble), "Mine.extra_ is an array of type"),
    "masked": (np.ma.masked_equal([1, 2], 2), "(a numpy.ma"),
    "duration": (np.timedelta64(3, "D"), "Mine.extra_ is a numpy.timedelta64"),
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
    """Functions, random number generators and data frames."""
    assert_refused(OKTree(**params).fit(X, Y), tmp_path / "model", what, advice)


class Mine(OKTree):
    """A model of a user, which may learn attributes of any name."""


@pytest.mark.parametrize(("value", "what"), VALUES.values(), ids=VALUES)
def test_attributes(tmp_path, value, what):
    """Values that a file cannot store, wherever they are."""
    model = Mine().fit(X, Y)
    model.extra_ = value
    assert_refused(model, tmp_path / "model", what, "never code")


def test_the_advice_helps(tmp_path):
    """Without its callback and its generator, the model is saved."""
    model = OKExtraTrees(2, random_state=np.random.RandomState(0), callback=ignore).fit(X, Y)
    for name in ("callback", "random_state"):
        assert_refused(
            model, tmp_path / "model", f"OKExtraTrees.{name} is a", f"set {name} to None"
        )
        model.set_params(**{name: None})
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_transformer_class_is_saved(tmp_path):
    """The advice for a FunctionTransformer helps."""
    model = make_pipeline(Logarithm(), OKTree()).fit(np.abs(X), Y)
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model", types=[Logarithm])
    np.testing.assert_array_equal(loaded.predict(np.abs(X)), model.predict(np.abs(X)))


COMPILED = {
    "tree": (
        OKBoost(2, base=DirectionBase(DecisionTreeRegressor())),
        "OKBoost.bases_[0].regressor_.tree_ is a sklearn.tree._tree.Tree;",
        "Use pickle, joblib or skops instead.",
    ),
    "index": (
        OKBoost(2, base=DirectionBase(KNeighborsRegressor(algorithm="kd_tree"))),
        "OKBoost.bases_[0].regressor_._tree is a sklearn.neighbors._kd_tree.",
        "Use pickle, joblib or skops instead.",
    ),
    "function": (
        make_pipeline(FunctionTransformer(np.log1p), OKTree()),
        "Pipeline.steps[0][1].func is a numpy.ufunc;",
        "Replace the function by a transformer class of your own",
    ),
    "metric": (
        OKNeighbors(metric=distance),
        "OKNeighbors.metric is a function;",
        "never code. Use pickle or joblib, with a function that is defined in a module.",
    ),
}


@pytest.mark.parametrize(("model", "what", "advice"), COMPILED.values(), ids=COMPILED)
def test_compiled_state_and_functions(tmp_path, model, what, advice):
    """Parts of scikit-learn that are not plain data."""
    assert_refused(model.fit(np.abs(X), Y), tmp_path / "model", what, advice)


def test_state_that_is_not_a_dict(tmp_path):
    """A class may pickle itself in its own way."""

    class MyScaler(StandardScaler):
        def __getstate__(self):
            return (1, 2)

    model = make_pipeline(MyScaler(), OKTree()).fit(X, Y)
    what = "Pipeline.steps[0][1].__getstate__() returns a tuple; okforest.save needs a dict"
    assert_refused(model, tmp_path / "model", what)


class Offset(OutputKernel):
    """A kernel with attributes that are not parameters."""

    def __init__(self, offset=1.0):
        self.offset = offset
        self.square = offset**2

    @functools.cached_property
    def cube(self):
        return self.offset**3

    def check(self, y):
        self._rows = len(y)
        return np.asarray(y)

    def __call__(self, y, z=None):
        return np.multiply.outer(y, y if z is None else z) + self.square + 0 * self.cube


def test_attributes_that_would_be_lost(tmp_path):
    """Public attributes without an underscore at the end, unless they are set or computed again."""
    model = OKTree(kernel=Offset(), random_state=0).fit(X, Y[:, 0])
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model", types=[Offset])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    model.kernel_.shift = 2.0
    what = "OKTree.kernel_.shift would not be saved"
    assert_refused(model, tmp_path / "model", what, "Rename it to shift_, or to _shift if")


def test_what_is_not_a_model(tmp_path):
    """Classes, kernels, searches, and models that are not fitted."""
    for thing, what in (
        (OKTree, "a pipeline that ends with one, and got the class OKTree"),
        (RBF(2.0), "and got RBF(sigma=2.0)"),
        ([1, 2], "and got [1, 2]"),
    ):
        assert_refused(thing, tmp_path / "model", "okforest.save takes a fitted model", what)
    search = GridSearchCV(OKTree(), {"max_depth": [1]}, cv=2).fit(X, Y)
    assert_refused(search, tmp_path / "model", "store a GridSearchCV: save its best_estimator_")
    for model in (OKTree(), make_pipeline(OKTree())):
        with pytest.raises(NotFittedError, match=r"this (OKTree|Pipeline) is not fitted: call fit"):
            okforest.save(model, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_bad_paths(tmp_path):
    """Folders, and files in folders that do not exist."""
    model = OKTree().fit(X, Y)
    with pytest.raises(IsADirectoryError, match=r"is a folder\. Pass the path of a file"):
        okforest.save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent does not exist\. Create it first"):
        okforest.save(model, tmp_path / "absent" / "model")
    assert list(tmp_path.iterdir()) == []
