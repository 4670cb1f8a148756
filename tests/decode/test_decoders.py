"""Pre-images: exact, searched, restricted and ranked."""

import numpy as np
import pytest
import scipy.sparse as sp

import okforest.decode.search as decode_module
import okforest.weights.span as span_module
from okforest.decode import Candidates, Decoder, Majority, Mean, Support, TrainingSet, as_decoder
from okforest.kernels import RBF, Dirac, FromCallable, Linear, Mahalanobis, Precomputed
from okforest.weights import Span, as_weights

rng = np.random.default_rng(0)
Y = rng.normal(size=(30, 2))
SPAN = Span(RBF(1.0), Y)


def weights(density=0.2):
    rng = np.random.default_rng(1)
    W = rng.uniform(size=(9, 30)) * (rng.uniform(size=(9, 30)) < density)
    W[:, 0] += 1e-3
    return sp.csr_array(W / W.sum(axis=1, keepdims=True))


def brute_force(W, candidates, allowed=None):
    """Search k(c, c) − 2 Σ w_i k(y_i, c) one candidate at a time."""
    kernel = RBF(1.0)
    best = []
    for i, w in enumerate(W.toarray()):
        scores = [
            1.0 - 2.0 * w @ kernel(Y, c[None])[:, 0] if allowed is None or allowed[i, j] else np.inf
            for j, c in enumerate(candidates)
        ]
        best.append(candidates[np.argmin(scores)])
    return np.array(best)


def test_mean_and_majority():
    """Closed forms: the weighted mean, and the heaviest label."""
    W = weights()
    np.testing.assert_allclose(Mean().decode(W, Span(Linear(), Y)), W @ Y)
    labels = rng.integers(0, 4, 30).astype(str)
    votes = np.array([W.toarray()[:, labels == c].sum(axis=1) for c in "0123"])
    expected = np.array(list("0123"))[votes.argmax(axis=0)]
    assert (Majority().decode(W, Span(Dirac(), labels)) == expected).all()


def test_majority_of_equals_is_the_first():
    """A tie up to rounding goes to the first label in sorted order."""
    W = sp.csr_array(np.array([[0.1 + 0.2, 0.3, 0.4 - 1e-17]]))
    span = Span(Dirac(), np.array(["b", "a", "c"]))
    assert Majority().decode(W, span)[0] == "c"
    W = sp.csr_array(np.array([[0.3, 0.1 + 0.2]]))
    assert Majority().decode(W, Span(Dirac(), np.array(["a", "b"])))[0] == "a"
    assert Majority().decode(W, Span(Dirac(), np.array(["b", "a"])))[0] == "a"


def test_majority_of_negative_votes():
    """The largest vote wins, also where all are below zero."""
    W = sp.csr_array(np.array([[-0.5, -0.2, -0.3], [-0.1, -0.3, -0.2], [-0.4, 0.0, 0.1]]))
    winners = Majority().decode(W, Span(Dirac(), np.array(["a", "b", "c"])))
    assert winners.tolist() == ["b", "a", "c"]


def test_support_of_negative_and_of_no_weights():
    """Outputs of negative weight are in the support; without any weight, all outputs are."""
    W = np.zeros((2, 30))
    W[0, [3, 7]] = -1.0
    allowed = Support().allowed(sp.csr_array(W))
    assert np.flatnonzero(allowed.toarray()[0]).tolist() == [3, 7]
    assert allowed.toarray()[1].all()


def test_support_ignores_stored_zeros():
    """An explicit zero is not a weight: it neither admits an output nor makes a row non-empty."""
    W = sp.csr_array(np.ones((2, 30)))
    W.data[:] = 0.0
    W.data[4] = 1.0
    allowed = Support().allowed(as_weights(W))
    assert np.flatnonzero(allowed.toarray()[0]).tolist() == [4]
    assert allowed.toarray()[1].all()


def test_signs_of_allowed_candidates_do_not_cancel():
    """Any nonzero entry allows an output, also where equal outputs have opposite entries."""

    class Signed(TrainingSet):
        def allowed(self, W):
            return W.tocsr()

    span = Span(RBF(1.0), np.array([0.0, 0.0, 1.0, 5.0]))
    W = sp.csr_array(np.array([[0.5, -0.5, -0.1, 0.0]]))
    outputs, losses = Signed().top(W, span, 3)
    assert outputs[np.isfinite(losses)].tolist() == [0.0, 1.0]
    assert Signed().decode(W, span).tolist() == [0.0]


@pytest.mark.parametrize("blocks", [False, True], ids=["one block", "many blocks"])
def test_searches_equal_brute_force(blocks, monkeypatch):
    """Training set, support and candidates find the least distance in H, however divided."""
    if blocks:
        monkeypatch.setattr(span_module, "BLOCK_BYTES", 1000)
        monkeypatch.setattr(decode_module, "ROWS", 2)
    W = weights()
    np.testing.assert_array_equal(TrainingSet().decode(W, SPAN), brute_force(W, Y))
    np.testing.assert_array_equal(
        Support().decode(W, SPAN), brute_force(W, Y, allowed=W.toarray() > 0)
    )
    candidates = rng.normal(size=(11, 2))
    np.testing.assert_array_equal(
        Candidates(candidates).decode(W, SPAN), brute_force(W, candidates)
    )


def test_top_is_ranked_by_distance():
    """The k nearest candidates come with ‖φ(c) − F‖², ascending."""
    W = weights()
    outputs, losses = TrainingSet().top(W, SPAN, 4)
    assert outputs.shape == (9, 4, 2)
    np.testing.assert_array_equal(outputs[:, 0], TrainingSet().decode(W, SPAN))
    assert (np.diff(losses, axis=1) >= 0).all()
    for j in range(4):
        np.testing.assert_allclose(losses[:, j], SPAN.losses(W, outputs[:, j]))
    with pytest.raises(
        ValueError, match="there are 30 different candidates, so pass an integer from 1 to 30"
    ):
        TrainingSet().top(W, SPAN, 31)


def test_top_has_no_output_twice():
    """Repeated training outputs are one candidate."""
    labels = np.repeat(["a", "b", "c"], 10)
    outputs, losses = TrainingSet().top(weights(), Span(Dirac(np.unique(labels)), labels), 3)
    assert all(set(row) == {"a", "b", "c"} for row in outputs)
    assert (np.diff(losses, axis=1) >= 0).all()
    objects = np.empty(30, dtype=object)
    objects[:] = [frozenset({i % 4}) for i in range(30)]
    kernel = FromCallable(lambda a, b: len(a & b), elementwise=True)
    outputs, _ = TrainingSet().top(weights(), Span(kernel, objects), 4)
    assert all(len(set(row)) == 4 for row in outputs)
    for k in (2.5, True):
        with pytest.raises(ValueError, match=f"'k' parameter of top .* Got {k}"):
            TrainingSet().top(weights(), SPAN, k)


def test_top_of_a_small_support():
    """Where the support has fewer than k outputs, the rest is infinitely far."""
    W = sp.csr_array(np.eye(3, 30))
    _, losses = Support().top(W, SPAN, 2)
    assert np.isfinite(losses[:, 0]).all()
    assert np.isinf(losses[:, 1]).all()


@pytest.mark.parametrize("decoder", [TrainingSet(), Support()], ids=repr)
def test_top_does_not_depend_on_blocks(decoder, monkeypatch):
    """Repeated outputs, signed weights and supports across blocks change nothing."""
    span = Span(RBF(1.0), np.concatenate([Y[:10], Y[5:15], Y[:10]]))
    W = weights(0.1)
    W.data *= np.where(rng.uniform(size=W.nnz) < 0.3, -1.0, 1.0)
    outputs, losses = decoder.top(W, span, 6)
    monkeypatch.setattr(span_module, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(decode_module, "ROWS", 2)
    divided, divided_losses = decoder.top(W, span, 6)
    np.testing.assert_allclose(divided_losses, losses)
    finite = np.isfinite(losses)
    np.testing.assert_array_equal(divided[finite], outputs[finite])
    if isinstance(decoder, Support):
        assert not finite.all()


def test_auto_takes_the_closed_form():
    """Mean for inner products, majority for labels, else the training set."""
    for kernel, kind in (
        (Linear(), Mean),
        (2.0 * Linear(), Mean),
        (Mahalanobis(), Mean),
        (Dirac(), Majority),
        (RBF(), TrainingSet),
        (Linear() + RBF(), TrainingSet),
        (Precomputed(np.eye(2)), TrainingSet),
    ):
        assert type(as_decoder("auto", kernel)) is kind
    assert type(as_decoder("support", RBF())) is Support
    with pytest.raises(ValueError, match="decoder='nearest' is not known; use 'auto', 'majority'"):
        as_decoder("nearest", RBF())


def test_closed_forms_refuse_other_outputs():
    """The mean of labels and the majority of vectors are errors."""
    with pytest.raises(ValueError, match="needs numeric outputs"):
        Mean().check(Span(Dirac(), np.array(["a"] * 30)))
    with pytest.raises(ValueError, match="needs one label per row, got outputs of shape"):
        Majority().check(SPAN)
    with pytest.raises(ValueError, match="candidates is None; pass at least one"):
        Candidates(None).check(SPAN)
    with pytest.raises(ValueError, match="candidates is empty"):
        Candidates(np.empty(0, int)).decode(weights(), Span(Precomputed(np.eye(30)), np.arange(30)))


def test_a_decoder_of_ones_own():
    """A subclass with one method is a decoder."""

    class Heaviest(Decoder):
        def decode(self, W, span):
            return span.outputs[W.toarray().argmax(axis=1)]

    W = weights()
    decoder = Heaviest()
    assert as_decoder(decoder, RBF()) is decoder
    assert decoder.decode(W, SPAN).shape == (9, 2)


@pytest.mark.parametrize(
    ("kernel", "outputs"),
    [(Precomputed(np.eye(3)), np.arange(3)), (Dirac(), np.array([0, 1, 2]))],
    ids=["positions", "labels"],
)
def test_integers_that_are_not_numbers_have_no_mean(kernel, outputs):
    """Positions and labels are not averaged."""
    with pytest.raises(ValueError, match="treats the integers in y as positions or labels"):
        Mean().check(Span(kernel.resolve(outputs), outputs))


def test_candidates_that_the_kernel_refuses():
    """The message is about candidates."""
    with pytest.raises(ValueError, match="the candidates are not valid outputs: y"):
        Candidates(["a"]).check(SPAN)
    with pytest.raises(ValueError, match="candidates is empty"):
        Candidates([]).check(SPAN)
