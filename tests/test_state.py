"""A fit changes an estimator only when it is complete, and files hold states that can be loaded."""

import copy
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pytest
import scipy.sparse as sp
import typing_extensions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

import okforest
from okforest import datasets, network, segments
from okforest._utils.state import ABSENT, FittedState, check_declared, declaration
from okforest.decode import Threshold
from okforest.engine import Trees
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


def test_a_fit_without_outputs_keeps_none():
    """The training outputs of an earlier fit, and what is derived from them, take no memory."""
    trees = okforest.OKTotallyRandomTrees(3, random_state=0)
    fresh = clone(trees).fit(X)
    assert vars(trees.fit(X, OUTPUTS["linear"]).fit(X)).keys() == vars(fresh).keys()


def test_a_fit_of_a_class_of_a_user_replaces_what_okforest_declares():
    """An estimate that the new fit does not compute does not stay; what the user set does."""

    class Mine(okforest.OKRandomForest):
        pass

    forest = Mine(20, oob_score=True, random_state=0).fit(X, OUTPUTS["linear"])
    assert hasattr(forest, "oob_score_")
    forest.mine_ = 1
    forest.set_params(oob_score=False).fit(X, OUTPUTS["linear"])
    assert not hasattr(forest, "oob_score_")
    assert forest.mine_ == 1


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_pickle_has_nothing_that_is_derived(name):
    """It is computed again from the fitted attributes, and would only take room."""
    model, _ = fitted(name)
    state = model.__getstate__()
    assert not [one for one in model._derived if one in state]
    assert vars(pickle.loads(pickle.dumps(model))).keys() == vars(model).keys()


def test_trees_that_cannot_be_grown_elsewhere_change_nothing():
    """A forest stays as it was if the cluster that should grow other trees is gone."""

    def lose_connection(*arguments, **options):
        raise ConnectionError

    forest = okforest.OKExtraTrees(3, random_state=0).fit(X, OUTPUTS["linear"])
    learnt = dict(vars(forest))
    with pytest.raises(ConnectionError):
        forest.fit_by(lose_connection, X[:, :3], OUTPUTS["linear"])
    assert vars(forest).keys() == learnt.keys()
    assert all(vars(forest)[name] is value for name, value in learnt.items())


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


def test_parameters_that_load_would_refuse_are_not_saved(tmp_path):
    model = okforest.OKNeighbors(2).fit(X, OUTPUTS["linear"]).set_params(metric="mahalanobis")
    with pytest.raises(ValueError, match="OKNeighbors is not saved, since load would refuse"):
        okforest.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    okforest.save(model.set_params(metric="manhattan"), tmp_path / "model")
    loaded = okforest.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_weights(X).toarray().sum(axis=1), np.ones(ROWS))


def test_warnings_of_a_fit_point_at_the_line_of_the_user():
    forest = okforest.OKExtraTrees(3, warm_start=True).fit(X, OUTPUTS["linear"])
    with pytest.warns(UserWarning, match="grows no trees") as caught:
        forest.fit(X, OUTPUTS["linear"])
    assert caught[0].filename == __file__


def fitted(name):
    kernel = kernel_of(name)
    model = make(ESTIMATORS[name], kernel)
    valid, _ = data_of(model, kernel)
    return model.fit(*valid), valid


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_class_declares_all_that_its_fit_learns(name):
    """With types that can be checked; a name that no annotation has is refused, also by files."""
    model, _ = fitted(name)
    declared = declaration(type(model))
    learnt = {one for one in vars(model) if one.endswith("_")}
    assert learnt <= declared.keys()
    assert {
        k for k, hint in declared.items() if ABSENT not in getattr(hint, "__metadata__", ())
    } <= learnt
    check_declared(model)
    for one in sorted(learnt):
        if declared[one] is not Any:
            damaged = copy.copy(model)
            setattr(damaged, one, object())
            with pytest.raises(ValueError, match=f"{one} is <object"):
                damaged.check_state()
    model.more_ = 1
    with pytest.raises(ValueError, match=f"more_ is not a fitted attribute of {name}"):
        check_declared(model)


def test_a_fit_of_okforest_learns_declared_names_only(monkeypatch):
    """Without an annotation the fit fails and changes nothing. Classes of users may learn any."""
    store = okforest.OKModel.store_outputs

    def store_more(self, kernel, outputs):
        store(self, kernel, outputs)
        self.more_ = 1

    monkeypatch.setattr(okforest.OKModel, "store_outputs", store_more)
    model = okforest.OKTree()
    with pytest.raises(ValueError, match=r"of OKTree; declare it by .* such as more_: np.ndarray"):
        model.fit(X, OUTPUTS["linear"])
    assert not [one for one in vars(model) if one.endswith("_")]

    class Mine(okforest.OKTree):
        pass

    assert Mine().fit(X, OUTPUTS["linear"]).more_ == 1


class Scaling:
    """A mixin whose fit learns before it calls the model's."""

    def fit(self, X, y):
        self.scale_ = self._scale = self.scale = np.abs(X).max()
        return super().fit(X / self._scale, y)

    def partial_fit(self, X, y):
        self.seen_ = len(X)
        return self.fit(X, y)


def test_a_class_of_a_user_may_set_any_attribute_in_its_fit():
    class Mine(Scaling, okforest.OKTree):
        pass

    model = Mine()
    assert model.partial_fit(X, OUTPUTS["linear"]) is model
    assert model.seen_ == ROWS
    assert model.scale_ == model._scale == model.scale == np.abs(X).max()
    before = dict(vars(model))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(2.0 * X, OUTPUTS["linear"][:5])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_a_package_of_a_user_whose_name_begins_with_okforest(tmp_path):
    """Its classes are the user's: they learn what they want, and load takes them from types."""

    class Mine(Scaling, okforest.OKTree):
        __module__ = "okforest_extras"

    model = Mine().fit(X, OUTPUTS["linear"])
    del model.scale  # only names that end in an underscore are stored
    okforest.save(model, tmp_path / "model")
    loaded = okforest.load(tmp_path / "model", types=[Mine])
    assert loaded.scale_ == model.scale_ == np.abs(X).max()


def test_a_fit_that_is_not_always_available():
    class Mine(okforest.OKTree):
        @available_if(lambda model: model.max_depth is not None)
        def fit(self, X, y):
            return super().fit(X, y)

    assert not hasattr(Mine(), "fit")
    assert Mine(max_depth=2).fit(X, OUTPUTS["linear"]).trees_.node_offsets[0] == 0


def test_types_that_a_type_statement_names():
    """NumPy 2.5 names its type of arrays in this way."""
    scalar = TypeVar("scalar", bound=np.generic)
    array = typing_extensions.TypeAliasType(
        "array", np.ndarray[Any, np.dtype[scalar]], type_params=(scalar,)
    )

    class Mine(FittedState):
        values_: array[np.float64]

    model = Mine()
    model.values_ = np.ones(2)
    model.check_state()
    model.values_ = np.ones(2, dtype=int)
    with pytest.raises(ValueError, match="an array of int64, not an array of floats"):
        model.check_state()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("trees_", None, "trees_ is None, not a Trees"),
        ("seed_", 1.5, "seed_ is 1.5, not an int"),
        ("output_form_", "numpy", "output_form_ is 'numpy', not 'frame' or 'polars'"),
        ("has_missing_", np.ones(12), "has_missing_ is an array of float64, not an array of boo"),
        ("output_names_", {"a"}, "output_names_ is {'a'}, not a list or None"),
        ("categories_", [1], r"categories_ is \[1\], not a list"),
        ("seed_", None, "seed_ is None"),
    ],
)
def test_types_in_messages(name, value, message):
    model = okforest.OKTree().fit(X, OUTPUTS["linear"])
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        model.check_state()
    delattr(model, name)
    if name != "output_form_" and name != "output_names_":
        with pytest.raises(ValueError, match=f"OKTree is incomplete, with {name} missing"):
            model.check_state()


PREDICTING = ("predict", "weight", "apply", "transform", "tree_kernel", "staged", "score")


class Written(BaseException):
    """Not an Exception, so that nothing suppresses it."""


def estimators_in(model):
    """Return a model and all estimators within it."""
    found = [model]
    for value in vars(model).values():
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, BaseEstimator):
                found += estimators_in(item)
    return found


def predictions(model, arguments):
    """Return calls of every method that predicts, by name."""
    values = {"X": arguments[0], "X_new": arguments[0], "X_rows": arguments[0], "y": arguments[-1]}
    values["X_columns"] = arguments[0]
    calls = {}
    for name in dir(model):
        if not name.startswith(
            ("predict", "weight", "apply", "transform", "tree_k", "stag", "sco")
        ):
            continue
        method = getattr(model, name, None)
        if not callable(method):
            continue
        parameters = inspect.signature(method).parameters.values()
        needed = [one.name for one in parameters if one.default is one.empty]
        if set(needed) <= values.keys():
            calls[name] = (method, [values[one] for one in needed])
    return calls


def call(method, arguments):
    try:
        result = method(*arguments)
        return list(result) if inspect.isgenerator(result) else result
    except (ValueError, TypeError, AttributeError) as error:
        return str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("restored", [False, True], ids=["fitted", "restored"])
def test_predictions_change_nothing(name, restored, monkeypatch):
    """Threads share a model: no method that predicts sets an attribute of it or of its parts."""
    model, arguments = fitted(name)
    model = pickle.loads(pickle.dumps(model)) if restored else model
    parts = {id(part): (part, dict(vars(part))) for part in estimators_in(model)}
    calls = predictions(model, arguments)
    assert calls

    def refuse(self, name, value):
        if id(self) in parts:
            raise Written(f"{type(self).__name__}.{name}")
        object.__setattr__(self, name, value)

    with monkeypatch.context() as patch:
        patch.setattr(BaseEstimator, "__setattr__", refuse, raising=False)
        for method, values in calls.values():
            call(method, values)
    for part, before in parts.values():
        assert vars(part).keys() == before.keys()
        assert all(vars(part)[one] is before[one] for one in before)


def test_a_decoder_of_a_restored_forest_is_not_kept_by_predictions():
    """It is tuned when set_params sets it; predictions of other copies tune it every time."""
    forest = okforest.OKRandomForest(9, kernel="hamming", oob_score=True, random_state=0)
    forest.fit(X, OUTPUTS["hamming"]).set_params(decoder=Threshold("macro_f1"))
    assert forest.decoder_.is_tuned
    expected = forest.predict(X)
    del forest.decoder_
    np.testing.assert_array_equal(forest.predict(X), expected)
    assert not hasattr(forest, "decoder_")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["OKTree", "OKBoost", "OKNeighbors", "OKRidge", "CensoredForest"])
def test_threads_share_a_restored_model(name):
    """They predict the same as one thread, from the first call on."""
    model, arguments = fitted(name)
    expected = model.predict(arguments[0])
    for _ in range(5):
        same = pickle.loads(pickle.dumps(model))
        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(same.predict, [arguments[0]] * 16):
                np.testing.assert_array_equal(found, expected)


@cache
def fitted_once(name):
    return fitted(name)[0]


KINDS = ["gone", "None", "number", "text", "list", "shorter", "deeper", "objects", "other"]
SPARSE_PARTS = ("data", "indices", "indptr")


def damaged(value, kind, part):
    """Return a value like the one of a fitted attribute; ``part`` chooses what is damaged in it."""
    if isinstance(value, Trees):
        names = [field.name for field in fields(value)]
        name = names[part % len(names)]
        return replace(value, **{name: damaged(getattr(value, name), kind, part)})
    if sp.issparse(value) and kind in ("shorter", "deeper", "other"):
        value, name = value.copy(), SPARSE_PARTS[part % 3]
        setattr(value, name, damaged(getattr(value, name), kind, part))
        return value
    if kind in ("None", "number", "text", "list"):
        return {"None": None, "number": -3, "text": "text", "list": [1, "a", None]}[kind]
    if isinstance(value, np.ndarray):
        if kind == "shorter":
            return value[:-1]
        if kind == "deeper":
            return value[..., None]
        if kind == "other" and value.dtype.kind in ("b", "U") and value.flags.forc:
            flags = value.dtype.kind == "b"  # bytes that are no booleans, or no characters
            raw = value.ravel().view(np.uint8 if flags else np.uint32)
            return np.full_like(raw, 7 if flags else 2**31).view(value.dtype).reshape(value.shape)
        numeric = value.dtype.kind in "iuf"
        return value[::-1] * 10 if kind == "other" and numeric else value.astype(object)
    if isinstance(value, list):
        return value[:-1]
    if isinstance(value, int | float):
        return value + 1 if kind == "shorter" else float(value)
    return {kind: value}


PARAMS = ["mahalanobis", "precomputed", "nonsense", -1, 0, 2.5, None, {"V": 3}, ["a"]]


@pytest.mark.filterwarnings("ignore")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_save_writes_nothing_that_load_refuses(data, tmp_path):
    """Whatever happened to the fitted attributes: save refuses it, or load restores it."""
    name = data.draw(st.sampled_from([*ESTIMATORS]))
    model = copy.copy(fitted_once(name))
    learnt = sorted(one for one in vars(model) if one.endswith("_"))
    for one in data.draw(st.lists(st.sampled_from(learnt), max_size=2, unique=True)):
        kind = data.draw(st.sampled_from(KINDS))
        if kind == "gone":
            delattr(model, one)
        else:
            vars(model)[one] = damaged(vars(model)[one], kind, data.draw(st.integers(0, 20)))
    params = sorted(model.get_params(deep=False))
    for one in data.draw(st.lists(st.sampled_from(params), max_size=1)):
        vars(model)[one] = data.draw(st.sampled_from(PARAMS))
    path = tmp_path / "model"
    path.unlink(missing_ok=True)
    try:
        okforest.save(model, path)
    except (NotFittedError, TypeError, ValueError):
        assert not path.exists()
    else:
        loaded = okforest.load(path)
        assert vars(loaded).keys() >= {one for one in vars(model) if one.endswith("_")}
