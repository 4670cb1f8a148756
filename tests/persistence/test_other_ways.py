"""Models can also be saved by pickle, joblib and skops."""

import pickle

import joblib
import numpy as np
import pytest
import skops.io

from okforest import OKBagging, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees, OKTree
from okforest.decode import Candidates
from okforest.kernels import RBF, Dirac, Linear, Mahalanobis, Precomputed

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = rng.normal(size=(40, 2))
POSITIONS = np.arange(40)
CASES = {
    "labels": (OKTree(kernel=Dirac()), np.where(X[:, 0] > 0, "a", "b")),
    "precomputed": (OKTree(kernel=Precomputed(Y @ Y.T)), POSITIONS),
    "sum": (OKExtraTrees(4, kernel=2.0 * RBF() + Linear(), decoder="support"), Y),
    "base": (OKRandomForest(4, kernel=RBF(base=Precomputed(Y @ Y.T))), POSITIONS),
    "candidates": (OKBagging(4, kernel=Mahalanobis(), decoder=Candidates(Y[:9])), Y),
    "name": (OKTotallyRandomTrees(4, kernel="rbf"), Y),
}


def by_pickle(model, path):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model, path):
    joblib.dump(model, path)
    return joblib.load(path)


def by_mapped_joblib(model, path):
    joblib.dump(model, path)
    return joblib.load(path, mmap_mode="r")


def by_skops(model, path):
    skops.io.dump(model, path)
    untrusted = skops.io.get_untrusted_types(file=path)
    assert all(name.startswith("okforest.") for name in untrusted)
    return skops.io.load(path, trusted=untrusted)


@pytest.mark.parametrize("way", [by_pickle, by_joblib, by_mapped_joblib, by_skops])
@pytest.mark.parametrize(("model", "y"), CASES.values(), ids=CASES)
def test_round_trip(tmp_path, model, y, way):
    """Predictions are the same; skops asks to trust okforest's own classes only."""
    model.set_params(random_state=0).fit(X, y)
    same = way(model, tmp_path / "model")
    assert type(same) is type(model)
    assert same.get_params().keys() == model.get_params().keys()
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        same.predict_weights(X).toarray(), model.predict_weights(X).toarray()
    )
