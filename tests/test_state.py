"""A fit changes an estimator only when it is complete, and files hold states that can be loaded."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

import okforest
from okforest import datasets, network, segments
from public import MODULES
from sparse_calls import COLUMNS, LINKS, OUTPUTS, ROWS, X, kernel_of, make

ESTIMATORS = {
    name: thing
    for module in MODULES
    for name in module.__all__
    if inspect.isclass(thing := getattr(module, name))
    and hasattr(thing, "fit")
    and not inspect.isabstract(thing)
}
# Tiny trees are grown fully, of which refits warn.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the trees are grown fully"),
    pytest.mark.filterwarnings("ignore:invalid value"),
]
NAN = np.full((ROWS, COLUMNS), np.inf)


def data_of(model, kernel):
    """Return valid arguments of fit, and some with which it fails early, and late."""
    if isinstance(model, network.BipartiteCompletion):
        return (X, X, LINKS), [(X, X, LINKS[:5]), (X, NAN, LINKS)]
    if isinstance(model, network.LinkPredictor):
        return (X, LINKS), [(X, LINKS[:5, :5]), (NAN, LINKS)]
    if isinstance(model, segments.PixelClassifier):
        images, labels = datasets.make_textures(4, seed=0)
        return (images, labels), [(images, labels[:2]), (images[:1], labels)]
    y = OUTPUTS[kernel]
    if isinstance(model, okforest.DirectionBase):  # its y are vectors
        return (X, y), [(X, y[:5]), (NAN, y)]
    return (X, y), [(X, y[:5]), (X, None), (NAN, y)]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_that_fails_changes_nothing(name, tmp_path):
    """Every attribute is the same object as before, and the model can still be saved."""
    kernel = kernel_of(name)
    model = make(ESTIMATORS[name], kernel)
    valid, invalid = data_of(model, kernel)
    assert model.fit(*valid) is model
    learnt = dict(vars(model))
    assert [one for one in learnt if one.endswith("_")]
    for arguments in invalid:
        if arguments[-1] is None and not model.__sklearn_tags__().target_tags.required:
            continue
        with pytest.raises((TypeError, ValueError)):
            model.fit(*arguments)
        assert vars(model).keys() == learnt.keys()
        assert all(vars(model)[one] is learnt[one] for one in learnt)
    okforest.save(model, tmp_path / "model")
    okforest.load(tmp_path / "model")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_replaces_all_that_was_learnt(name):
    """What an earlier fit has left, or a user has put there, does not stay."""
    kernel = kernel_of(name)
    model = make(ESTIMATORS[name], kernel)
    valid, _ = data_of(model, kernel)
    model.stale_, model.note = 1, "kept"
    fresh = clone(model).fit(*valid)
    model.fit(*valid)
    assert model.note == "kept"
    assert {one for one in vars(model) if one != "note"} == vars(fresh).keys()


def test_an_interrupted_fit_changes_nothing():
    """Ctrl-C and exceptions of a callback leave the forest as it was, without a trace."""

    def stop(done):
        raise KeyboardInterrupt

    y = OUTPUTS["linear"]
    for model in (okforest.OKExtraTrees(3), okforest.OKBoost(3)):
        model.set_params(random_state=0).fit(X, y)
        learnt, before = vars(model).keys(), model.predict(X)
        model.set_params(callback=stop)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :3], y)
        assert vars(model).keys() == learnt
        np.testing.assert_array_equal(model.predict(X), before)


def test_a_warm_start_that_fails_keeps_the_trees():
    y = OUTPUTS["linear"]
    forest = okforest.OKExtraTrees(3, warm_start=True, random_state=0).fit(X, y)
    forest.set_params(n_estimators=5)
    with pytest.raises(ValueError, match="differs from the previous fit"):
        forest.fit(X, y[::-1])
    assert len(forest.trees_) == 3
    assert len(forest.fit(X, y).trees_) == 5


def test_states_that_load_would_refuse_are_not_saved(tmp_path):
    model = okforest.OKTree().fit(X, OUTPUTS["linear"])
    model.outputs_ = model.outputs_[1:]
    with pytest.raises(ValueError, match="outputs_ has 11 entries, not 12"):
        okforest.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_warnings_of_a_fit_point_at_the_line_of_the_user():
    forest = okforest.OKExtraTrees(3, warm_start=True).fit(X, OUTPUTS["linear"])
    with pytest.warns(UserWarning, match="grows no trees") as caught:
        forest.fit(X, OUTPUTS["linear"])
    assert caught[0].filename == __file__
