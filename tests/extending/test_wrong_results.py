"""What a kernel, decoder or loss of the user returns is checked, and the error names it."""

import numpy as np
import pytest

from okforest import OKBoost, OKRandomForest, tune_decoder
from okforest.decode import Decoder, ExpectedLoss, Threshold
from okforest.kernels import OutputKernel

X = np.random.default_rng(0).normal(size=(60, 2))
PAIRS = [(float(row[0]), 1.0) for row in X]


class Pairs(OutputKernel):
    def __init__(self, read=None, shape=None):
        self.read = read
        self.shape = shape

    def check(self, y):
        return self.read(y)

    def __call__(self, y, z=None):
        z = y if z is None else z
        K = np.array([[float(np.dot(u, v)) for v in z] for u in y])
        return K if self.shape is None else K.reshape(self.shape)


class Decoded(Decoder):
    def __init__(self, outputs=None):
        self.outputs = outputs

    def decode(self, W, span):
        return self.outputs(W, span)


class Addresses(OutputKernel):
    """Texts such as "3.7", which the canonical form replaces by numbers."""

    known_psd = True

    def __init__(self, strict=False):
        self.strict = strict

    def check(self, y):
        if self.strict:
            return np.array([float(text.split()[0]) for text in y])
        return np.array([float(text) for text in y])

    def __call__(self, y, z=None):
        return np.multiply.outer(y, y if z is None else z)

    def features(self, y):
        return y[:, None]

    def as_given(self, outputs):
        return np.array([f"{number:g}" for number in outputs.ravel()]).reshape(outputs.shape)


def test_predictions_have_the_form_of_as_given():
    model = forest(kernel=Addresses()).fit(X, [f"{number}" for number in range(60)])
    assert model.predict(X[:3]).dtype.kind == model.predict_top(X[:3], 2)[0].dtype.kind == "U"


def test_features_need_no_dimension():
    """Trees are grown from the features of a kernel that does not count them."""
    kernel = Addresses()
    assert kernel.feature_dim(np.arange(3.0)) == 1
    model = forest(kernel=kernel, embedding="features").fit(X, [f"{i}" for i in range(60)])
    assert model.embedding_ == "features"
    assert Pairs().feature_dim(np.arange(3.0)) is None


def test_check_must_accept_what_it_returned():
    model = forest(kernel=Addresses(strict=True)).fit(X, [f"{number}" for number in range(60)])
    message = r"method check must accept what it has returned \(AttributeError: .*no attribute"
    with pytest.raises(ValueError, match=message):
        model.check_state()


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (lambda K: K[:, :3], r"returned an array of shape \(60, 3\) .* of 60 outputs"),
        (lambda K: K.tolist(), "returned list for the Gram matrix of 60 outputs"),
        (lambda K: np.where(K[5, 5] == K, np.nan, K), "Gram matrix with NaN or infinite entries"),
    ],
)
def test_wrong_gram_matrices(gram, message):
    class Wrong(Pairs):
        def __call__(self, y, z=None):
            K = super().__call__(y, z)
            return gram(K) if len(K) == 60 else K

    with pytest.raises(ValueError, match=message):
        forest(kernel=Wrong(one_each)).fit(X, PAIRS)


def one_each(y):
    outputs = np.empty(len(y), dtype=object)
    outputs[:] = y
    return outputs


def forest(**parameters):
    return OKRandomForest(5, random_state=0, **parameters)


def test_tuples_are_outputs():
    assert forest(kernel=Pairs(one_each)).fit(X, PAIRS).predict(X[:2]).shape == (2,)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            Pairs(lambda y: np.array(y, dtype=object)),
            r"Pairs.check returned an array of objects of shape \(60, 2\).*np.empty\(len\(y\)",
        ),
        (Pairs(list), r"Pairs.check returned an object of type list; return an array"),
        (
            Pairs(one_each, shape=-1),
            r"Pairs.__call__ returned an array of shape \(2,\) for 2 and 1 outputs; the shape must",
        ),
    ],
)
def test_wrong_kernels(kernel, message):
    with pytest.raises(ValueError, match=message):
        forest(kernel=kernel).fit(X, PAIRS)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (lambda W, span: span.outputs, r"Decoded.decode returned an array of shape \(60,\) for 2"),
        (lambda W, span: [0.0, 1.0], "Decoded.decode returned an object of type list"),
    ],
)
def test_wrong_decoders(outputs, message):
    model = forest(decoder=Decoded(outputs)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=message):
        model.predict(X[:2])


def test_a_loss_of_two_single_outputs():
    def longer(true, predicted):
        return float(predicted[1] - true[1])

    pairs = one_each(PAIRS)
    kernel = Pairs(one_each)
    with pytest.raises(ValueError, match=r"takes two single outputs.*elementwise=True"):
        forest(kernel=kernel, decoder=ExpectedLoss(longer, elementwise=False)).fit(X, pairs)
    forest(kernel=kernel, decoder=ExpectedLoss(longer)).fit(X, pairs).predict(X[:2])

    def fails(true, predicted):
        raise KeyError("of its own")

    with pytest.raises(KeyError, match="of its own"):
        forest(kernel=kernel, decoder=ExpectedLoss(fails, elementwise=False)).fit(X, pairs)


def test_the_advice_on_tuning_works_literally():
    Y = (np.c_[X, X.sum(axis=1)] > 0).astype(int)
    model = OKBoost(5, kernel="hamming", random_state=0)
    advice = r"tune_decoder\(model, X, y, Threshold\(threshold='macro_f1'\)\)"
    with pytest.raises(ValueError, match=advice):
        model.set_params(decoder=Threshold("macro_f1")).fit(X, Y)
    decoder = tune_decoder(model.set_params(decoder="auto"), X, Y, Threshold("macro_f1"))
    assert model.set_params(decoder=decoder).fit(X, Y).predict(X).shape == Y.shape


def test_errors_name_the_kernels_of_text_and_sets():
    with pytest.raises(ValueError, match=r"for strings, Spectrum\(\), EditDistance\(\)"):
        forest().fit(X, ["abc", "abcd"] * 30)
    with pytest.raises(ValueError, match="kernel='hamming', 'jaccard' or 'dice'"):
        forest().fit(X, [{"a"}, {"b"}] * 30)
