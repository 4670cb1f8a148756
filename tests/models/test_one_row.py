"""One row costs one row: kernel evaluations, kept results, interrupts, memory."""

import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import okforest._utils.resources as memory_module
from okforest import OKExtraTrees, OKModel, OKNeighbors, OKRandomForest
from okforest.decode import Candidates, TrainingSet
from okforest.kernels import RBF, FromCallable

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2]])
NEW = rng.normal(size=(5, 4))


class Evaluations:
    """The number of evaluations of a kernel."""

    count = 0


def fitted(decoder="auto", y=Y, **params):
    evaluations = Evaluations()

    def function(a, b):
        evaluations.count += 1
        return float(np.exp(-((a - b) ** 2).sum() / 2))

    kernel = FromCallable(function, elementwise=True)
    forest = OKExtraTrees(20, kernel=kernel, decoder=decoder, random_state=0, **params)
    forest.fit(X, y)
    assert evaluations.count > 0
    evaluations.count = 0
    return forest, evaluations


def test_one_row_evaluates_support_times_candidates():
    """The kernel is evaluated between the support and the candidates only."""
    forest, evaluations = fitted()
    support = forest.predict_weights(NEW[:1]).nnz
    assert support < 100
    forest.predict(NEW[:1])
    assert 0 < evaluations.count <= support * len(Y)
    evaluations.count = 0
    forest.predict(NEW[:1])
    assert evaluations.count == 0  # kept since the first call


def test_candidates_and_the_support_decoder():
    """Fewer candidates cost fewer evaluations."""
    forest, evaluations = fitted()
    support = forest.predict_weights(NEW[:1]).nnz
    forest.predict(NEW[:1], candidates=Y[:7])
    assert 0 < evaluations.count <= (support + 1) * 7  # with the norms of the candidates
    forest, evaluations = fitted("support")
    forest.predict(NEW[:1])
    assert 0 < evaluations.count <= support**2


def test_kernels_between_predictions_cost_their_supports():
    """predict_kernel of one row is a sum over its support."""
    forest, evaluations = fitted()
    support = forest.predict_weights(NEW[:1]).nnz
    forest.predict_kernel(NEW[:1])
    assert 0 < evaluations.count <= support**2


def test_equal_outputs_are_merged():
    """A few different outputs among many rows cost as few evaluations."""
    classes = np.round(Y)[:, :1]
    n_classes = len(np.unique(classes))
    forest, evaluations = fitted(y=classes)
    forest.predict(X)
    assert 0 < evaluations.count <= n_classes**2


@pytest.mark.parametrize("decoder", ["auto", "support"])
@pytest.mark.parametrize("params", [{}, {"min_samples_leaf": 30}, {"max_depth": 1}])
def test_rows_one_by_one_equal_rows_together(decoder, params):
    """Whatever is merged, left out or kept, predictions are the same."""
    y = np.repeat(Y[::3], 3, axis=0)
    forest = OKRandomForest(20, kernel=RBF(1.0), decoder=decoder, random_state=0, **params)
    forest.fit(X, y)
    together = forest.predict(NEW)
    alone = np.concatenate([forest.predict(NEW[i : i + 1]) for i in range(len(NEW))])
    np.testing.assert_array_equal(alone, together)
    outputs, losses = forest.predict_top(NEW, 3)
    for i in range(len(NEW)):
        one, loss = forest.predict_top(NEW[i : i + 1], 3)
        np.testing.assert_allclose(loss[0], losses[i], atol=1e-12)
        np.testing.assert_array_equal(one[0, 0], outputs[i, 0])


def test_matrices_of_weights_that_do_not_fit_are_refused(monkeypatch):
    """Before it is made, the size of the matrix is estimated."""
    forest = OKExtraTrees(5, max_depth=1, random_state=0).fit(X, Y)
    neighbors = OKNeighbors(3).fit(X, Y)
    monkeypatch.setattr(memory_module, "machine_memory", lambda: 2 * 12 * 300 * 50)
    many = rng.normal(size=(100, 4))
    with pytest.raises(MemoryError, match=r"100 predictions over 300 .* call weight_matrix"):
        forest.predict_weights(many)
    assert forest.predict_weights(many[:20]).shape == (20, 300)
    assert forest.weight_matrix(many).shape == (100, 300)
    assert neighbors.predict_weights(many).nnz == 300
    assert forest.predict(many).shape == (100, 2)


def test_sizes_are_estimated_from_some_rows(monkeypatch):
    """Leaves of many trees overlap: the bound on the number of entries is too large."""
    forest = OKExtraTrees(100, min_samples_leaf=20, random_state=0).fit(X, Y)
    W = forest.weight_matrix(X)
    monkeypatch.setattr(memory_module, "ESTIMATED", 0)
    estimate, exact = memory_module.csr_bytes(W), 12 * W.tocsr().nnz
    assert estimate == pytest.approx(exact, rel=0.2)


def test_models_forget_what_they_keep_in_files(tmp_path):
    """Kept results are not pickled, and do not change the state that scikit-learn compares."""
    forest = OKExtraTrees(5, kernel=RBF(1.0), random_state=0).fit(X, Y)
    size = len(pickle.dumps(forest))
    before = dict(vars(forest))
    forest.predict(X)
    assert vars(forest) == before
    assert len(pickle.dumps(forest)) == size
    same = pickle.loads(pickle.dumps(forest))
    assert same.span_ is same.span_
    np.testing.assert_array_equal(same.predict(NEW), forest.predict(NEW))


@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({"kernel": "dirac", "decoder": "mean"}, np.repeat(["a", "b"], 150), "numeric outputs"),
        ({"decoder": "majority"}, Y, "one label per row, got outputs of shape"),
        ({"decoder": Candidates(Y[:, :1])}, Y, "candidates has 1 values in each output"),
        ({"decoder": TrainingSet}, Y, r"decoder=TrainingSet is a class; pass an object"),
    ],
)
def test_decoders_are_checked_in_fit(params, y, message):
    """A decoder that cannot return such outputs is refused before anything is learnt."""
    for model in (OKExtraTrees(2, **params), OKNeighbors(**params)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)


PROGRAM = """
import numpy as np
from okforest import OKExtraTrees
from okforest.kernels import RBF
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(6000, 3)), rng.normal(size=(6000, 8))
forest = OKExtraTrees(
    20, kernel=RBF(1.0), embedding="nystrom", min_samples_leaf=200, random_state=0
).fit(X, Y)
print("ready", flush=True)
try:
    while True:
        {call}
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.parametrize(
    "call", ["forest.predict(X)", "forest.predict_weights(X)", "forest.predict_kernel(X)"]
)
def test_ctrl_c_stops_predictions(call):
    """An interrupt ends a long prediction as a KeyboardInterrupt."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(call=call)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "stopped\n"
    finally:
        process.kill()


def test_weights_of_a_users_model_are_checked():
    """Arrays are accepted; a wrong number of columns is named."""

    class Uniform(OKModel):
        def __init__(self, kernel="linear", decoder="auto", n_columns=300):
            self.kernel = kernel
            self.decoder = decoder
            self.n_columns = n_columns

        def fit(self, X, y, sample_weight=None):
            self.store_outputs(*self.validate_outputs(X, y))
            return self

        def weight_matrix(self, X):
            return np.full((len(X), self.n_columns), 1 / self.n_columns)

    np.testing.assert_allclose(Uniform().fit(X, Y).predict(NEW), np.tile(Y.mean(axis=0), (5, 1)))
    assert Uniform().fit(X, Y).predict_weights(NEW).shape == (5, 300)
    with pytest.raises(ValueError, match="returned 7 columns; expected one for each of the 300"):
        Uniform(n_columns=7).fit(X, Y).predict(NEW)
