"""Predictions for the partitions of Dask collections."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clusters import make_data
from okforest import OKExtraTrees, OKNeighbors, OKRandomForest
from okforest.dask import fit_remote, predict
from okforest.engine import Trees

X, Y = make_data()
COLLECTION = da.from_array(X, chunks=(70, 4))
LABELS = np.where(Y[:, 1] > 0, "high", "low")
MODELS = {
    "vectors": OKExtraTrees(5, random_state=0).fit(X, Y),
    "numbers": OKExtraTrees(5, random_state=0).fit(X, Y[:, 0]),
    "rbf": OKExtraTrees(5, kernel="rbf", random_state=0).fit(X, Y),
    "labels": OKRandomForest(5, kernel="dirac", random_state=0).fit(X, LABELS),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_equal_to_a_local_prediction(model):
    """Shape and type are known before computing, in threads without a cluster."""
    found, expected = predict(model, COLLECTION), model.predict(X)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.numblocks[0] == COLLECTION.numblocks[0]
    assert np.array_equal(found.compute(), expected)


def test_pipelines_and_other_models():
    """A model need not be a forest."""
    filled = np.nan_to_num(X)
    model = make_pipeline(StandardScaler(), OKNeighbors()).fit(filled, Y)
    found = predict(model, da.from_array(filled, chunks=(100, -1)))
    assert np.array_equal(found.compute(), model.predict(filled))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_label_sets(form):
    """They are predicted as an array, whatever the form of the training outputs."""
    labels = (Y > 0).astype(int)
    model = OKExtraTrees(5, kernel="jaccard", random_state=0).fit(X, form(labels))
    expected = OKExtraTrees(5, kernel="jaccard", random_state=0).fit(X, labels).predict(X)
    assert np.array_equal(predict(model, COLLECTION).compute(), expected)


def test_candidates():
    """Outputs are chosen from given ones."""
    model = MODELS["rbf"]
    found = predict(model, COLLECTION, candidates=Y[:5])
    assert np.array_equal(found.compute(), model.predict(X, candidates=Y[:5]))


def test_the_model_is_sent_once(client, monkeypatch):
    """It is pickled once for worker processes, and not with the tasks."""
    n_pickled = []
    reduce = Trees.__reduce_ex__

    def counting(trees, protocol):
        n_pickled.append(1)
        return reduce(trees, protocol)

    monkeypatch.setattr(Trees, "__reduce_ex__", counting)
    found = predict(MODELS["vectors"], COLLECTION)
    assert np.array_equal(found.compute(), MODELS["vectors"].predict(X))
    assert np.array_equal(found.compute(), MODELS["vectors"].predict(X))
    assert len(n_pickled) == 1


def test_frames_with_empty_partitions():
    """The number of rows of a partition of a frame is not known, and may be zero."""
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = OKExtraTrees(5, random_state=0).fit(frame, Y)
    collection = dd.from_pandas(frame, npartitions=4)
    collection = collection[collection.b > 0]
    found = predict(model, collection)
    assert np.isnan(found.shape[0])
    assert np.array_equal(found.compute(), model.predict(frame[frame.b > 0]))
    nothing = predict(model, collection[collection.b > 100]).compute()
    assert nothing.shape == (0, 3)


def test_unknown_chunk_sizes():
    """An array may have partitions of unknown sizes."""
    filtered = COLLECTION.rechunk((70, -1))
    filtered = filtered[filtered[:, 1] > 0]
    assert np.isnan(filtered.chunks[0]).all()
    kept = X[X[:, 1] > 0]
    assert np.array_equal(
        predict(MODELS["vectors"], filtered).compute(), MODELS["vectors"].predict(kept)
    )


def test_errors():
    """Only fitted models of okforest, and only collections."""
    with pytest.raises(TypeError, match="X is a ndarray; expected a Dask array or frame"):
        predict(MODELS["rbf"], X)
    with pytest.raises(
        TypeError, match=r"predict takes a fitted model of okforest.*StandardScaler"
    ):
        predict(StandardScaler(), COLLECTION)
    search = GridSearchCV(MODELS["numbers"], {"max_depth": [2]}, cv=2).fit(X, Y[:, 0])
    with pytest.raises(TypeError, match=r"got GridSearchCV. Pass its best_estimator_"):
        predict(search, COLLECTION)


def test_partitions_that_do_not_fit(threads):
    """The error names the partition."""
    blocks = [da.from_delayed(dask.delayed(part), (9, 6), float) for part in (X[:9], X[:9, :4])]
    message = "partition 1: X has 4 features, but OKExtraTrees is expecting 6"
    forest = fit_remote(MODELS["vectors"], X, Y)
    for lazy in (
        predict(MODELS["vectors"], da.concatenate(blocks)),
        forest.predict(da.concatenate(blocks)),
    ):
        with pytest.raises(ValueError, match=message):
            lazy.compute()
