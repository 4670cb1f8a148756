"""What decoders declare to need is what they read, and no more."""

import numpy as np
import pytest

from okforest.decode import (
    Candidates,
    ExpectedLoss,
    FixedPoint,
    Medoid,
    Parts,
    SearchDecoder,
    Sharpened,
    as_decoder,
)
from okforest.kernels import Spectrum, Tuples, Wasserstein, as_kernel
from okforest.weights import OutputSet, Span, SummedWeights, as_weights

W = np.array([[0.2, 0.5, 0.3, 0.0, 0.0, 0.0], [0.0, 0.1, 0.1, 0.8, 0.0, 0.0]])
VECTORS = [[0.0, 0.1], [1.0, 0.0], [0.0, 1.0], [3.0, 2.0], [0.4, 0.4], [9.0, 9.0]]
NUMBERS = [0.0, 1.0, 2.0, 3.0, 1.1, 9.0]
LABELS = ["a", "b", "a", "c", "c", "c"]
PAIRS = list(zip(NUMBERS, LABELS, strict=True))
SETS = np.array([[1, 0], [1, 1], [0, 1], [0, 0], [1, 0], [1, 1]])
ORDERS = ["a>b>c", "b>a>c", "c>b>a", "a>c>b", "a>b>c", "c>a>b"]


class FirstThree(SearchDecoder):
    def candidates(self, span):
        return OutputSet(span.kernel, span.outputs[:3])


CASES = {
    "mean of vectors": ("linear", "mean", VECTORS, set()),
    "mean beside another kernel": ("rbf", "mean", VECTORS, {"weights"}),
    "majority": ("dirac", "majority", LABELS, set()),
    "majority beside another kernel": ("linear", "majority", NUMBERS, {"weights"}),
    "training set": ("rbf", "training_set", VECTORS, {"weights", "training_outputs"}),
    "training set with features": ("linear", "training_set", VECTORS, {"training_outputs"}),
    "support": ("linear", "support", VECTORS, {"weights"}),
    "candidates": ("rbf", Candidates(VECTORS[:3]), VECTORS, {"weights"}),
    "candidates with features": ("linear", Candidates(VECTORS[:3]), VECTORS, set()),
    "search of a user": ("linear", FirstThree(), VECTORS, set()),
    "expected loss": (
        "linear",
        ExpectedLoss(lambda a, b: abs(a - b)),
        NUMBERS,
        {"weights", "training_outputs"},
    ),
    "expected loss of candidates": (
        "linear",
        ExpectedLoss(lambda a, b: abs(a - b), [0.0, 5.0]),
        NUMBERS,
        {"weights"},
    ),
    "sharpened mean": ("linear", Sharpened("mean"), VECTORS, {"weights"}),
    "sharpened search": (
        "linear",
        Sharpened("training_set"),
        VECTORS,
        {"weights", "training_outputs"},
    ),
    "parts": (Tuples(["linear", "dirac"]), Parts(), PAIRS, {"weights"}),
    "parts that search": (
        Tuples(["linear", "dirac"]),
        Parts(["training_set", "auto"]),
        PAIRS,
        {"weights", "training_outputs"},
    ),
    "medoid": ("linear", Medoid(), VECTORS, {"weights"}),
    "fixed point": ("rbf", FixedPoint(), VECTORS, {"weights", "training_outputs"}),
    "quantiles": (Wasserstein(n_levels=2), "quantiles", [[0.0, 1.0]] * 6, {"weights"}),
    "threshold": ("hamming", "threshold", SETS, set()),
    "threshold of a linear kernel": ("linear", "threshold", SETS, set()),
    "threshold of Jaccard": ("jaccard", "threshold", SETS, {"weights"}),
    "cardinality": ("hamming", "cardinality", SETS, set()),
    "mode": ("hamming", "mode", SETS, {"weights"}),
    "expected Jaccard": ("hamming", "expected_jaccard", SETS, {"weights"}),
    "expected F1": ("hamming", "expected_f1", SETS, {"weights"}),
    "Borda": ("spearman", "borda", ORDERS, set()),
    "Borda of Kendall": ("kendall", "borda", ORDERS, {"weights"}),
    "Kemeny": ("kendall", "kemeny", ORDERS, {"weights"}),
    "Eulerian path": (
        Spectrum(2),
        "eulerian_path",
        ["forest", "fort", "forte", "rest", "est", "tree"],
        {"weights", "training_outputs"},
    ),
}
SEARCHES = {"training_outputs"}


def case(name):
    kernel, decoder, y, needs = CASES[name]
    kernel = as_kernel(kernel)
    outputs = kernel.check(y)
    span = Span(kernel.resolve(outputs), outputs)
    decoder = as_decoder(decoder, span.kernel)
    decoder.check(span)
    return decoder, span, needs


@pytest.mark.parametrize("name", CASES)
def test_declared_needs(name):
    decoder, span, needs = case(name)
    assert decoder.needs(span) == needs


@pytest.mark.parametrize("name", CASES)
def test_sums_of_features_suffice_without_the_need_of_weights(name):
    decoder, span, needs = case(name)
    if span.features is None:
        assert "weights" in needs
        return
    sums = SummedWeights(as_weights(W).feature_sums(span), W.shape[1])
    if "weights" in needs:
        with pytest.raises((TypeError, ValueError)):  # parts have features of other shapes
            decoder.decode(sums, span)
    else:
        assert np.array_equal(decoder.decode(sums, span), decoder.decode(W, span))


@pytest.mark.parametrize(
    "name", [name for name in CASES if "training_outputs" not in CASES[name][3]]
)
def test_outputs_without_weight_do_not_matter(name):
    decoder, span, _ = case(name)
    used = np.flatnonzero(W.any(axis=0))
    part = Span(span.kernel, span.outputs[used])
    assert np.array_equal(decoder.decode(W[:, used], part), decoder.decode(W, span))
