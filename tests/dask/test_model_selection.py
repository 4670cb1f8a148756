"""Searches of scikit-learn with joblib's dask backend."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from clusters import make_data
from okforest import OKBoost, OKExtraTrees
from okforest.dask import shared
from okforest.kernels import RBF, Precomputed

X, Y = make_data(120)


def search(model, y, client):
    """Search in this process and on the cluster; return both."""
    grid = GridSearchCV(model, {"min_samples_leaf": [1, 5, 20]}, cv=3)
    local = grid.fit(X, y).cv_results_["mean_test_score"]
    with warnings.catch_warnings(), joblib.parallel_config("dask", client=client):
        warnings.simplefilter("ignore")
        on_cluster = grid.fit(X, y).cv_results_["mean_test_score"]
    return local, on_cluster


def test_grid_search(threads):
    """Scores on a cluster equal local ones, for any model."""
    for model in (OKExtraTrees(5, random_state=0), OKBoost(3, random_state=0)):
        assert np.array_equal(*search(model, Y, threads))


def kept_by(client):
    """Return the numbers of kernels that workers, the scheduler and this process have been sent."""

    def count():
        from okforest.dask.sharing import _kept

        return len(_kept)

    return [*client.run(count).values(), client.run_on_scheduler(count), count()]


def test_gram_matrices_are_sent_once(client, monkeypatch):
    """A shared kernel is not sent again with every candidate and fold.

    The scheduler, a process of its own, reads the tasks and refers to it.
    """
    kernel = Precomputed(RBF(1.0)(Y))
    model = OKExtraTrees(5, kernel=kernel, random_state=0)
    n_pickled = []
    reduce = Precomputed.__reduce_ex__

    def counting(obj, protocol):
        n_pickled.append(1)
        return reduce(obj, protocol)

    monkeypatch.setattr(Precomputed, "__reduce_ex__", counting)
    with shared(kernel, client):
        local, on_cluster = search(model, np.arange(len(X)), client)
        assert kept_by(client) == [1, 1, 1, 1]
    assert np.array_equal(local, on_cluster)
    assert len(n_pickled) == 1
    pickle.loads(pickle.dumps(kernel))
    assert len(n_pickled) == 2
    assert not any(kept_by(client))


def test_models_pickled_while_a_kernel_is_shared(threads):
    """They refer to it, and cannot be read later: the error says when to save."""
    kernel = Precomputed(RBF(1.0)(Y))
    model = OKExtraTrees(2, kernel=kernel, random_state=0).fit(X, np.arange(len(X)))
    with shared(kernel):
        within = pickle.dumps(model)
        assert np.array_equal(pickle.loads(within).predict(X), model.predict(X))
    with pytest.raises(RuntimeError, match="save models after it has ended"):
        pickle.loads(within)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_other_kernels_while_one_is_shared(threads):
    """They are pickled with their own data; two kernels of a type may be shared."""
    kernel, other = (Precomputed(RBF(sigma)(Y)) for sigma in (1.0, 2.0))
    with shared(kernel):
        assert pickle.loads(pickle.dumps(clone(kernel))) is kernel
        alone = pickle.dumps(other)
        with shared(other):
            assert pickle.loads(pickle.dumps(other)) is other
            assert pickle.loads(pickle.dumps(kernel)) is kernel
        assert pickle.loads(pickle.dumps(kernel)) is kernel
    assert np.array_equal(pickle.loads(alone).gram, other.gram)


def test_only_kernels_are_shared(threads):
    """A Gram matrix alone is refused, and not kept."""
    with pytest.raises(TypeError, match=r"such as Precomputed\(K\).* got a ndarray"), shared(X):
        pass
    assert not any(kept_by(threads))
