"""Estimators with a model inside: which model, its kernel, its tags, and checks of it."""

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from okforest import OKBoost, OKExtraTrees, OKRidge, OKTotallyRandomTrees, OKTree
from okforest.models.tree_model import TreeModel
from okforest.models.wrapping import (
    Wrapper,
    WrapperModel,
    check_inner,
    clone_with_kernel,
    final_model,
)

X, Y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]


class Copying(WrapperModel):
    """A model that predicts as its estimator does."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def _default_estimator(self):
        return OKTree(kernel="dirac")

    def fit(self, X, y):
        self._keep(clone_with_kernel(self._inner(), self.kernel).fit(X, y))
        self.store_outputs(self.estimator_.kernel_, self.estimator_.outputs_)
        return self

    def weight_matrix(self, X):
        return self.estimator_.weight_matrix(X)


class Tagged(Wrapper):
    def __init__(self, estimator):
        self.estimator = estimator


def test_final_model():
    tree = OKTree()
    assert final_model(make_pipeline(StandardScaler(), make_pipeline(tree))) is tree
    assert final_model(tree) is tree


def test_clones_with_a_kernel_leave_the_original():
    pipeline = make_pipeline(StandardScaler(), OKTree())
    cloned = clone_with_kernel(pipeline, "dirac")
    assert (cloned[-1].kernel, pipeline[-1].kernel) == ("dirac", "linear")
    with pytest.raises(TypeError, match="estimator is the class OKTree; use a model of okforest"):
        clone_with_kernel(OKTree, "dirac")
    with pytest.raises(TypeError, match=r"estimator is LinearRegression\(\)"):
        clone_with_kernel(LinearRegression(), "dirac")


@pytest.mark.parametrize(
    ("estimator", "kernel", "decoder"),
    [
        (None, "dirac", "auto"),
        (OKTree(kernel="rbf", decoder="mean"), "rbf", "mean"),
        (LinearRegression(), "linear", "auto"),
        (LogisticRegression(), "dirac", "auto"),
    ],
    ids=str,
)
def test_the_kernel_and_decoder_of_the_inner_model(estimator, kernel, decoder):
    model = Copying(estimator)
    assert (model.kernel, model.decoder) == (kernel, decoder)


def test_features_and_tags_of_the_inner_model():
    model = Copying().fit(X, Y)
    assert model.n_features_in_ == 1
    assert model.predict(X).tolist() == Y
    assert get_tags(Tagged(OKTree())).input_tags.allow_nan
    assert not get_tags(Tagged(OKRidge())).input_tags.allow_nan


def test_a_compact_wrapper():
    """The copy holds compact models; an estimator that was not passed stays the default."""
    forest = OKExtraTrees(3, kernel="dirac", bootstrap=True, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="out-of-bag"):
        model = Copying(forest).fit(X, Y)
    small = model.compact()
    assert hasattr(model.estimator_, "oob_weights_")
    assert not hasattr(small.estimator_, "oob_weights_")
    assert Copying().fit(X, Y).compact().estimator is None
    assert Copying().compact().estimator is None


def test_checks_of_an_inner_model():
    check_inner(OKTree().fit(X, Y), "model_")
    check_inner(OKTotallyRandomTrees(2).fit(X), "trees_", TreeModel)
    with pytest.raises(ValueError, match="model_ is of type list, not a model of okforest"):
        check_inner([], "model_")
    with pytest.raises(ValueError, match="model_ is of type OKBoost, not a tree or a forest"):
        check_inner(OKBoost(2).fit(X, Y), "model_", TreeModel)
    with pytest.raises(ValueError, match="model_ has no training outputs"):
        check_inner(OKTree(), "model_")
