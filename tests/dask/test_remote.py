"""Forests that stay on workers, grown on all rows or on samples of rows in partitions."""

import logging
import math
import pickle
import re
import time

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from distributed.client import FutureCancelledError
from sklearn.metrics import accuracy_score

from clusters import assert_same_trees, left_on, make_data
from okforest import OKExtraTrees, OKRandomForest, OKTotallyRandomTrees
from okforest.dask import fit, fit_remote, predict
from okforest.dask.cluster import LostPart
from okforest.dask.prediction import Terms, r2
from okforest.dask.rows import plan_rows
from okforest.decode import ExpectedLoss, Sharpened, Threshold
from okforest.engine import grow
from okforest.kernels import (
    RBF,
    FromCallable,
    Hamming,
    Hierarchy,
    Laplacian,
    Linear,
    Mahalanobis,
    Precomputed,
)

X, Y = make_data(400)
NEW, NEW_Y = make_data(50, seed=1)
LABELS = np.array(["a", "b", "c"])[(Y[:, 0] > 0.5).astype(int) + (Y[:, 1] > 0)]
PATHS = np.array(["a/b", "a/c", "d"], dtype=object)[(Y[:, 0] > 0.5).astype(int) + (Y[:, 1] > 0)]
RANKS = np.argsort(np.argsort(Y, axis=1), axis=1) + 1
SETS = (Y > 0.3).astype(int)
WEIGHT = np.random.default_rng(1).integers(0, 4, size=len(X)).astype(float)


def chunks(values, size=150):
    return da.from_array(values, chunks=(size, *values.shape[1:]))


def drawing(model=OKRandomForest, **parameters):
    """Return a forest that draws 150 rows for each of its trees."""
    return model(5, bootstrap=True, max_samples=150, random_state=0, **parameters)


def rbf(sigma="median", **parameters):
    return drawing(
        OKExtraTrees, kernel=RBF(sigma), embedding_rank=12, decoder="support", **parameters
    )


PARTITIONED = {
    "random forest": (drawing(), Y, None),
    "share of the rows": (drawing(min_samples_leaf=0.02), Y, None),
    "extra-trees, weights": (drawing(OKExtraTrees), Y, WEIGHT),
    "pruned": pytest.param(*(drawing(ccp_alpha=0.1), Y[:, 0], None), marks=pytest.mark.slow),
    "labels": (drawing(kernel="dirac"), LABELS, None),
    "rankings": (drawing(kernel="kendall", min_samples_leaf=10), RANKS, None),
    "label sets": pytest.param(
        *(drawing(kernel="hamming", decoder="expected_f1"), SETS, None), marks=pytest.mark.slow
    ),
    "fourier": (rbf(embedding="fourier"), Y, WEIGHT),
    "nystrom": (rbf(embedding="nystrom"), Y, None),
    "laplacian": pytest.param(
        drawing(kernel=Laplacian(), embedding="nystrom", embedding_rank=9, decoder="support"),
        Y,
        None,
        marks=pytest.mark.slow,
    ),
    "totally random": pytest.param(
        *(drawing(OKTotallyRandomTrees), Y, None), marks=pytest.mark.slow
    ),
}


@pytest.mark.parametrize(("model", "y", "weight"), PARTITIONED.values(), ids=PARTITIONED)
def test_rows_in_partitions(threads, model, y, weight):
    """The forest is the local one; only variances differ, by rounding."""
    weights = None if weight is None else chunks(weight)
    forest = fit_remote(model, chunks(X), chunks(y), weights, partitioned=True, client=threads)
    expected = model.fit(X, y, weight)
    found = forest.to_local()
    assert_same_trees(found, expected, but=("variance",))
    scale = expected.trees_.variance.max()
    assert np.allclose(found.trees_.variance, expected.trees_.variance, atol=1e-12 * scale)
    for name in ("seed_", "embedding_", "embedding_rank_", "n_features_in_"):
        assert getattr(found, name) == getattr(expected, name), name
    assert np.array_equal(found.has_missing_, expected.has_missing_)
    check_predictions(forest, expected)
    assert np.array_equal(found.predict(NEW), expected.predict(NEW))
    forest.release()
    del forest
    assert left_on(threads) == (0, 0, 0)


REPLICATED = {
    "linear": pytest.param(OKExtraTrees(9, random_state=0), Y, marks=pytest.mark.slow),
    "labels": (OKRandomForest(9, kernel="dirac", random_state=0), LABELS),
    "pruned": (OKRandomForest(9, ccp_alpha=1.0, random_state=0), Y),
    "rbf": (OKRandomForest(9, kernel="rbf", random_state=0), Y),
    "rankings": (OKRandomForest(9, kernel="kendall", random_state=0), RANKS),
    "label sets": (OKRandomForest(9, kernel="hamming", decoder="mode", random_state=0), SETS),
    "paths": (OKRandomForest(9, kernel=Hierarchy(), random_state=0), PATHS),
    "precomputed": pytest.param(
        OKExtraTrees(9, kernel=Precomputed(RBF(1.0)(Y)), random_state=0),
        np.arange(len(X)),
        marks=pytest.mark.slow,
    ),
}


@pytest.mark.parametrize(("model", "y"), REPLICATED.values(), ids=REPLICATED)
def test_all_rows_on_every_worker(threads, model, y):
    """The forest is the local one, to the last bit."""
    forest = fit_remote(model, X, y, client=threads)
    expected = model.fit(X, y)
    assert_same_trees(forest.to_local(), expected)
    check_predictions(forest, expected)
    assert "9 trees" in repr(forest)
    assert "released" not in repr(forest)
    for misuse, message in (
        (lambda: forest.score(NEW, NEW_Y), "X is a ndarray; expected a Dask array or frame"),
        (lambda: forest.predict(chunks(NEW[:, 0])), r"X has ndim=1; expected .* X\[:, None\]"),
        (lambda: pickle.dumps(forest), r"cannot be copied or pickled; to_local\(\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            misuse()
    forest.release()
    assert "released" in repr(forest)
    for use in (lambda: forest.predict(chunks(NEW)), forest.to_local):
        with pytest.raises(RuntimeError, match="was released"):
            use()


class LargeLeaves(Linear):
    """A kernel with a default for leaves."""

    default_min_samples_leaf = 7


def test_smallest_leaf_of_the_kernel(threads):
    """Trees on workers have leaves of the size that the kernel chooses, as local ones have."""
    model = drawing(kernel=LargeLeaves())
    forest = fit_remote(model, chunks(X), chunks(Y), partitioned=True, client=threads).to_local()
    assert forest.min_samples_leaf_ == 7
    assert forest.trees_.weight[forest.trees_.left < 0].min() >= 7
    assert fit(model, X, Y, client=threads).min_samples_leaf_ == 7


def test_releasing_while_predictions_are_computed(threads, tmp_path):
    """They are finished, and the client stays connected."""
    begun, going_on = tmp_path / "begun", tmp_path / "going on"

    def wait(block):
        begun.touch()
        while not going_on.exists():
            time.sleep(0.01)
        return block

    forest = fit_remote(OKExtraTrees(9, random_state=0), X, Y)
    x = chunks(NEW, 20)
    expected = forest.predict(x).compute()
    predicted = forest.predict(x.map_blocks(wait, meta=NEW[:0])).persist()
    while not begun.exists():
        time.sleep(0.01)
    forest.release()
    going_on.touch()
    assert np.array_equal(predicted.compute(), expected)
    del predicted
    assert left_on(threads) == (0, 0, 0)


def test_predictions_of_a_released_forest(threads):
    """Lazy ones that were not computed before cannot be."""
    forest = fit_remote(OKExtraTrees(9, random_state=0), X, Y)
    later = forest.predict(chunks(NEW, 20))
    keys = [part.key for part in forest.parts]
    forest.release()
    while any(threads.who_has(keys).values()):  # until the scheduler has been told
        time.sleep(0.01)
    with pytest.raises((LostPart, FutureCancelledError)):
        later.compute()


def test_a_failed_fit_leaves_nothing(threads):
    """Not even while the error is kept, as interactive shells do."""

    def fail(done):
        raise ArithmeticError

    model = drawing(OKExtraTrees, callback=fail)
    for data in ((X, Y, None, False), (chunks(X), chunks(Y), None, True)):
        with pytest.raises(ArithmeticError) as kept:
            fit_remote(model, *data)
        assert left_on(threads) == (0, 0, 0)
        assert kept.value is not None


def test_forests_that_cannot_stay_on_workers(threads):
    """The error names the reason."""
    with pytest.raises(ValueError, match="y is None; a forest on workers needs outputs"):
        fit_remote(OKTotallyRandomTrees(), X, None)
    with pytest.raises(ValueError, match="oob_score=True needs all trees in one place"):
        fit_remote(OKRandomForest(oob_score=True), X, Y)


def check_predictions(forest, local):
    """Compare all predictions with a local model's."""
    new = chunks(NEW, 30)
    expected = local.predict(NEW)
    found = forest.predict(new)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        assert np.allclose(found.compute(), expected, atol=1e-12)
    else:
        assert np.array_equal(found.compute(), expected)
    W = forest.predict_weights(new)
    assert W.shape == (len(NEW), len(X))
    assert abs(W.compute() - local.predict_weights(NEW)).max() < 1e-15
    for scheme in ("convolve", "average"):
        K = forest.predict_kernel(new, chunks(X[:30], 30), scheme)
        assert np.allclose(K.compute(), local.predict_kernel(NEW, X[:30], scheme), atol=1e-12)
    assert np.allclose(forest.predict_kernel(new).compute(), local.predict_kernel(NEW), atol=1e-12)
    y = local.outputs_[:40]
    weight = np.arange(40.0)
    score = forest.score(chunks(X[:40], 20), chunks(y, 20), chunks(weight, 20))
    assert float(score) == pytest.approx(local.score(X[:40], y, weight), abs=1e-12)


def test_weights_come_in_training_partitions(threads):
    """A column block of the weights belongs to each partition of training rows."""
    forest = fit_remote(drawing(), chunks(X), chunks(Y), partitioned=True)
    W = forest.predict_weights(chunks(NEW, 20))
    assert W.chunks == ((20, 20, 10), (150, 150, 100))
    assert isinstance(W.blocks[0, 1].compute(), sp.csr_array)


def test_new_labels_count_in_the_score(threads):
    """A label that was not seen in training is never predicted: the score is the local accuracy."""
    model = drawing(kernel="dirac")
    forest = fit_remote(model, chunks(X), chunks(LABELS), partitioned=True)
    y = np.array(["a", "new", "b", "c"])
    model.fit(X, LABELS)
    for weight in (None, np.arange(4.0) ** 2):
        parts = None if weight is None else chunks(weight, 3)
        score = float(forest.score(chunks(X[:4], 3), chunks(y, 3), parts))
        assert score == pytest.approx(model.score(X[:4], y, weight))
        assert score == pytest.approx(accuracy_score(y, model.predict(X[:4]), sample_weight=weight))


def test_rows_that_do_not_fit_the_score(threads):
    """The error of a classifier has their numbers."""
    forest = fit_remote(drawing(kernel="dirac"), chunks(X), chunks(LABELS), partitioned=True)
    y = chunks(LABELS[:80], 40)
    with pytest.raises(ValueError, match="a partition has 40 rows of X and 1 of y"):
        forest.score(chunks(X[:80], 40), y.map_blocks(lambda part: part[:1])).compute()


def without_second(part):
    """Return rows but those from 80 to 159, which are the second of five partitions."""
    return part[part.index // 80 != 1]


def test_frames_with_categories_and_empty_partitions(threads):
    """Categories come from all partitions; an empty partition takes no part."""
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["colour"] = np.where(frame.index < 200, "red", np.resize(["green", "blue"], len(frame)))
    collection = dd.from_pandas(frame, npartitions=5)
    y = dd.from_pandas(pd.DataFrame(Y), npartitions=5)
    kept = np.r_[0:80, 160:400]
    collection, y = (part.map_partitions(without_second) for part in (collection, y))
    model = drawing(categorical_features=["colour"])
    forest = fit_remote(model, collection, y, partitioned=True)
    assert forest.rows.n_rows.tolist() == [80, 0, 80, 80, 80]
    local = frame.iloc[kept].astype({"colour": object})
    expected = drawing(categorical_features=["colour"]).fit(local, Y[kept])
    assert_same_trees(forest.to_local(), expected, but=("variance",))
    assert forest.to_local().categories_[-1].tolist() == ["blue", "green", "red"]
    assert np.allclose(forest.predict(collection).compute(), expected.predict(local))


def test_partitions_that_some_trees_do_not_draw_from(threads):
    """Rows are joined in their order, whichever tree asks for a partition first."""
    sizes = (1, 3, 5, 1, 190, 200)
    x, y = (da.from_array(values, chunks=(sizes, -1)) for values in (X, Y))
    model = OKRandomForest(24, max_samples=20, random_state=0)
    forest = fit_remote(model, x, y, partitioned=True)
    assert_same_trees(forest.to_local(), model.fit(X, Y), but=("variance",))


def test_sparse_partitions(threads, monkeypatch):
    """Fits and predictions equal local ones; only stored values count as memory."""
    filled = np.where(np.nan_to_num(X) > 0.5, X, 0.0)
    wide = sp.csr_array(np.pad(np.nan_to_num(filled), ((0, 0), (0, 300))))
    x = chunks(wide.toarray()).map_blocks(sp.csr_array)
    sizes = []

    def counted(client, size, most):
        sizes.append(size)
        return 2

    monkeypatch.setattr("okforest.dask.rows.trees_at_a_time", counted)
    model = drawing()
    forest = fit_remote(model, x, chunks(Y), partitioned=True)
    model.fit(wide, Y)
    assert_same_trees(forest.to_local(), model, but=("variance",))
    assert sizes[0].sent < 150 * 8 * (2 * 6 + 3)
    assert np.allclose(forest.predict(x).compute(), model.predict(wide))
    assert float(forest.score(x, chunks(Y))) == pytest.approx(model.score(wide, Y))
    assert np.allclose(predict(model, x).compute(), model.predict(wide))


def test_memory_of_a_sample(threads, monkeypatch):
    """Inputs, outputs and embedded outputs count."""
    seen = []

    def spy(plan, trees, progress):
        seen.append((plan.X.nbytes, plan.outputs.nbytes))
        return grow(plan, trees, progress=progress)

    monkeypatch.setattr("okforest.dask.rows.grow", spy)
    plans = []

    def keep(*arguments):
        plans.append(plan_rows(*arguments))
        return plans[0]

    monkeypatch.setattr("okforest.dask.fitting.plan_rows", keep)
    fit_remote(rbf(embedding="nystrom"), chunks(X), chunks(Y), partitioned=True)
    n_rows = seen[0][0] // (8 * X.shape[1])  # without those that were drawn twice
    size = plans[0].size
    assert size.sent == 150 * 8 * (X.shape[1] + Y.shape[1])
    assert size.embedded == 150 * seen[0][1] // n_rows
    assert size.held == size.sent + size.embedded


def test_a_client_that_is_not_the_default(threads):
    """Lazy results are computed by it."""
    with Client(threads.cluster, set_as_default=False) as other:
        forest = fit_remote(drawing(), chunks(X), chunks(Y), partitioned=True, client=other)
        local = drawing().fit(X, Y)
        found = other.compute(forest.predict(chunks(NEW)), sync=True)
        assert np.allclose(found, local.predict(NEW))
        with other.as_current():
            assert np.array_equal(predict(local, chunks(NEW)).compute(), local.predict(NEW))


def test_without_a_default_client():
    """A client that is passed is the only one that is needed."""
    with (
        LocalCluster(
            n_workers=1, processes=False, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        local = drawing().fit(X, Y)
        assert_same_trees(fit(drawing(), X, Y, client=client), local)
        x, y = chunks(X), chunks(Y)
        for forest in (
            fit_remote(drawing(), x, y, client=client),
            fit_remote(drawing(), x, y, partitioned=True, client=client),
        ):
            assert_same_trees(forest.to_local(), local, but=("variance",))
            found = client.compute(forest.predict(chunks(NEW)), sync=True)
            assert np.allclose(found, local.predict(NEW))
        found = client.compute(predict(local, chunks(NEW), client=client), sync=True)
        assert np.array_equal(found, local.predict(NEW))


def test_what_is_sent_is_logged(threads, caplog):
    """The number of trees at a time and the size of samples are logged."""
    with caplog.at_level(logging.INFO, logger="okforest.dask"):
        fit_remote(drawing(), chunks(X), chunks(Y), partitioned=True)
    assert "growing 5 trees, 2 at a time, each on at most 10.55 kiB of rows" in caplog.text
    assert re.search(r"trees 0 to 1: sending .* kiB of row numbers and .* kiB of rows", caplog.text)


def test_kernels_that_need_a_gram_matrix_are_refused(threads):
    """The error names embeddings that do not need it."""
    for kernel in (RBF(1.0), FromCallable(np.dot, elementwise=True)):
        with pytest.raises(ValueError, match=r"needs the Gram matrix of all 400 outputs.*nystrom"):
            fit_remote(drawing(kernel=kernel), chunks(X), chunks(Y), partitioned=True)
    with pytest.raises(ValueError, match=r"Mahalanobis.* learns its parameters from all outputs"):
        fit_remote(drawing(kernel=Mahalanobis()), chunks(X), chunks(Y), partitioned=True)
    resolved = Mahalanobis().resolve(Linear().check(Y))
    fit_remote(drawing(kernel=resolved), chunks(X), chunks(Y), partitioned=True)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OKExtraTrees(5), "bootstrap=False: every tree is grown on all rows"),
        (drawing(criterion="frobenius"), "criterion='frobenius' needs all outputs at once"),
        (drawing(search_rank=2), "search_rank=2 needs all outputs at once"),
        (drawing(oob_score=True), "oob_score=True needs all outputs at once"),
        (drawing(embedding_rank=2), "embedding_rank=2 has no effect with explicit features"),
        (drawing(min_samples_leaf=-1), "'min_samples_leaf' parameter"),
    ],
)
def test_parameters_that_do_not_fit(threads, model, message):
    """Each is refused before any tree is grown."""
    with pytest.raises(ValueError, match=message):
        fit_remote(model, chunks(X), chunks(Y), partitioned=True)


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        ("auto", r"decoder 'training_set' searches all training outputs.*decoder='support'"),
        (ExpectedLoss(math.dist), "decoder ExpectedLoss.* searches all training outputs"),
        (Sharpened("training_set"), "decoder Sharpened.* searches all training outputs"),
    ],
)
def test_searching_all_outputs_is_refused(threads, monkeypatch, decoder, message):
    """They are in partitions. The error comes before trees grow."""
    model = rbf(embedding="nystrom").set_params(decoder=decoder)
    monkeypatch.delattr("okforest.dask.fitting.grow_parts")
    with pytest.raises(ValueError, match=message):
        fit_remote(model, chunks(X), chunks(Y), partitioned=True)


def test_candidates(threads):
    """They are searched whatever the decoder, by its own loss if it has one."""
    for decoder in ("support", ExpectedLoss(math.dist, Y[:20])):
        model = rbf(embedding="nystrom").set_params(decoder=decoder)
        forest = fit_remote(model, chunks(X, 400), chunks(Y, 400), partitioned=True)
        found = forest.predict(chunks(NEW), candidates=Y[:9]).compute()
        assert np.array_equal(found, model.fit(X, Y).predict(NEW, candidates=Y[:9]))


@pytest.mark.parametrize("partitioned", [False, True])
def test_decoders_to_be_tuned_are_refused(threads, partitioned):
    """They need all trees in one place; the error comes before trees grow."""
    model = drawing(kernel="hamming", decoder=Threshold("macro_f1"))
    with pytest.raises(ValueError, match=r"Threshold.* is tuned from out-of-bag.*tune_decoder"):
        fit_remote(model, chunks(X), chunks(SETS), partitioned=partitioned)


def test_labels_that_a_kernel_would_learn(threads):
    """Those of sets are in all partitions; the advice works."""
    sets = np.array([frozenset("abc"[j] for j in np.flatnonzero(row)) for row in SETS])
    with pytest.raises(
        ValueError, match=r"learns its parameters from all outputs.* Hamming\(labels=\.\.\.\)"
    ):
        fit_remote(drawing(kernel="hamming"), chunks(X), chunks(sets), partitioned=True)
    kernel = Hamming()
    expected = drawing(kernel="hamming").fit(X, sets).predict(NEW)
    for known in (Hamming(labels=list("abc")), kernel.resolve(kernel.check(list(sets)))):
        forest = fit_remote(drawing(kernel=known), chunks(X, 400), chunks(sets, 400), None, True)
        assert np.array_equal(forest.predict(chunks(NEW)).compute(), expected)


def terms(loss, n_rows, mean=0.0):
    """Return what a partition of equal outputs with a square of one each contributes."""
    return Terms(loss, float(n_rows), float(n_rows), n_rows, mean)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([terms(0.5, 1)], np.nan),  # one row has no spread
        ([terms(0.5, 1), terms(0.0, 0)], np.nan),
        ([terms(0.5, 1, 1.0), terms(0.5, 1, -1.0)], 0.5),
        ([terms(0.0, 2), terms(1e-14, 1)], 1.0),  # equal outputs, all of them predicted
        ([terms(0.0, 2), terms(0.1, 1)], 0.0),
    ],
)
def test_few_rows_and_equal_outputs(parts, expected):
    """Equal outputs score one or zero, and a single row has no score."""
    assert np.array_equal(r2(parts, None), expected, equal_nan=True)
    if len(parts) == 2:  # without explicit features: squares, and products of all pairs
        square, centre = 3.0 if parts[0].n_rows == 2 else 2.0, parts[0].mean + parts[1].mean
        products = [square**2 if centre == parts[0].mean * 2 else 0.0]
        assert np.array_equal(r2(parts, products), expected, equal_nan=True)
