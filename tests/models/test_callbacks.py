"""Callbacks of scikit-learn follow the trees and the rounds of a fit."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from okforest import OKBoost, OKExtraTrees, OKTree

pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")

X = np.random.default_rng(0).normal(size=(12, 3))


class Recorder:
    """A callback that notes its calls."""

    def __init__(self, error=None):
        self.calls, self.error = [], error

    def setup(self, estimator, context):
        self.calls.append(("setup", context.max_subtasks))

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name, context.task_id))
        if self.error and context.task_id == 2:
            raise self.error

    def on_fit_task_end(self, estimator, context):
        self.calls.append(("end", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", None))


def expected(name, n):
    tasks = [(when, name, i) for i in range(n) for when in ("begin", "end")]
    return [("setup", n), ("begin", "fit", 0), *tasks, ("end", "fit", 0), ("teardown", None)]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (OKTree(), "growing trees"),
        (OKExtraTrees(5, n_jobs=2), "growing trees"),
        (OKBoost(5), "boosting rounds"),
    ],
)
def test_calls(model, name):
    """Every tree or round is a task; a warm start has tasks for the new ones only."""
    callback = Recorder()
    assert model.set_callbacks(callback).fit(X, X) is model
    n = 1 if isinstance(model, OKTree) else 5
    assert callback.calls == expected(name, n)
    plain = type(model)(**model.get_params()).fit(X, X)
    assert vars(plain).keys() | {"_skl_callbacks"} == vars(model).keys()
    assert hasattr(pickle.loads(pickle.dumps(model)), "trees_")
    if n > 1:
        callback.calls.clear()
        model.set_params(warm_start=True, n_estimators=8).fit(X, X)
        assert callback.calls == expected(name, 3)


def test_early_stopping():
    """The fit ends with fewer tasks than were announced."""
    callback = Recorder()
    model = OKBoost(50, n_iter_no_change=1, tol=1.0, random_state=0).set_callbacks(callback)
    n = model.fit(X, X).n_estimators_
    assert n < 50
    assert callback.calls[0] == ("setup", 50)
    assert callback.calls[-3:] == [
        ("end", "boosting rounds", n - 1),
        ("end", "fit", 0),
        ("teardown", None),
    ]


@pytest.mark.parametrize("model", [OKExtraTrees(5), OKBoost(5)])
def test_an_exception_stops_the_fit(model):
    """The callback is torn down, and the model stays as it was."""
    callback = Recorder(error=KeyboardInterrupt())
    model.fit(X, X)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(callback).fit(X[:, :2], X)
    assert callback.calls[-1] == ("teardown", None)
    assert ("end", "fit", 0) not in callback.calls
    assert all(vars(model)[name] is value for name, value in before.items())


def test_older_versions_of_scikit_learn():
    """Without callbacks in scikit-learn, models have no set_callbacks, and fit."""
    code = """
import sklearn.callback, sklearn.ensemble, sklearn.neighbors, sklearn.pipeline, sklearn.impute
del sklearn.callback.CallbackSupportMixin
from okforest import OKBoost, OKTree
for model in (OKTree(), OKBoost(3)):
    assert not hasattr(model, "set_callbacks")
    model.fit([[0.0], [1.0]], [0.0, 1.0])
"""
    subprocess.run([sys.executable, "-c", code], check=True)
