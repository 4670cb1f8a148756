"""The outputs of a model: checks of what kernels and decoders return, names, classes or numbers.

Kernels and decoders may be classes of a user. Decoders are tuned on out-of-bag predictions.
"""

from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from okforest._utils.arrays import Floats, Outputs, on_gpu, to_host
from okforest._utils.frames import frame_of, is_frame
from okforest.decode import Decoder
from okforest.decode.base import HeldOut
from okforest.kernels import Dirac, FromCallable, OutputKernel, as_kernel
from okforest.kernels.outputs import Form
from okforest.weights import Span, SparseWeights

AS_OBJECTS = ": outputs = np.empty(len(y), dtype=object); outputs[:] = values, a list."


def check_outputs(estimator: BaseEstimator, kernel: OutputKernel, X: Any, y: Any) -> Outputs:
    """Return the outputs of X's rows in the kernel's canonical form."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    outputs = to_host(kernel.check(y))  # models hold arrays of NumPy
    name = type(kernel).__name__
    if not isinstance(outputs, np.ndarray):
        raise ValueError(
            f"{name}.check returned an object of type {type(outputs).__name__}; return an array "
            f"with one output per entry{AS_OBJECTS}"
        )
    if outputs.dtype == object and outputs.ndim != 1:
        raise ValueError(
            f"{name}.check returned an array of objects of shape {outputs.shape}, as NumPy makes "
            f"of tuples and lists of one length; return an array of shape ({len(outputs)},)"
            f"{AS_OBJECTS}"
        )
    check_consistent_length(X, outputs)
    return outputs


def check_kernel(kernel: OutputKernel, outputs: Outputs) -> None:
    """Raise a ValueError if a kernel, which may be a user's, returns a matrix of a wrong shape."""
    if kernel.known_psd or isinstance(kernel, FromCallable):  # which checks every matrix itself
        return
    a, b = outputs[:2], outputs[:1]
    shape, expected = np.shape(kernel(a, b)), (len(a), len(b))
    if shape != expected:
        raise ValueError(
            f"{type(kernel).__name__}.__call__ returned an array of shape {shape} for {len(a)} and "
            f"{len(b)} outputs; the shape must be {expected}."
        )


def check_decoded(decoder: Any, decoded: Any, n: int) -> Outputs:
    """Return what a decoder, which may be a user's, returned: one output for each row."""
    if on_gpu(decoded):
        return decoded
    if not isinstance(decoded, np.ndarray) or decoded.ndim < 1 or len(decoded) != n:
        returned = f"an object of type {type(decoded).__name__}"
        if isinstance(decoded, np.ndarray):
            returned = f"an array of shape {decoded.shape}"
        raise ValueError(
            f"{type(decoder).__name__}.decode returned {returned} for {n} rows of weights; return "
            "an array with one output for each row."
        )
    return decoded


def output_names(kernel: OutputKernel, y: Any, outputs: Outputs) -> list[Any] | None:
    """Return the columns of a frame of vectors; None if outputs are not its rows, unchanged.

    Curves that are resampled, and samples of numbers, have other coordinates than the frame. Label
    sets and ranks have their own names: the labels of their kernels. Names that a saved model
    cannot hold, such as dates, are left out.
    """
    if not kernel.numeric or not is_frame(y) or outputs.shape != y.shape:
        return None
    if not np.array_equal(outputs, y):
        return None
    return list(y.columns) if all(map(_is_plain, y.columns)) else None


def _is_plain(name: Any) -> bool:
    if isinstance(name, tuple):
        return all(map(_is_plain, name))
    return name is None or isinstance(name, str | int | float)


def with_names(outputs: Any, names: list[Any] | None, form: Form) -> Any:
    """Return predicted vectors in a frame of their library, if their coordinates have names."""
    if names is None:
        return outputs
    outputs = to_host(outputs)
    if not isinstance(outputs, np.ndarray) or outputs.shape[1:] != (len(names),):
        return outputs
    return frame_of(outputs, names, form)


def has_classes(model: Any) -> bool:
    """Return whether the outputs of a model are classes: whether its kernel is the Dirac kernel."""
    return isinstance(_kernel(model), Dirac)


@cache
def _named(kernel: str) -> OutputKernel:
    return as_kernel(kernel)  # which no model shares


def accuracy(true: Outputs, predicted: Any, sample_weight: Floats) -> float:
    """Return the weighted fraction of rows whose class is predicted."""
    return float(np.average(to_host(predicted) == true, weights=sample_weight))


def has_numbers(model: Any) -> bool:
    """Return whether the outputs of a model are numbers or vectors of numbers."""
    kernel = _kernel(model)
    return kernel is not None and kernel.numeric


def _kernel(model: Any) -> Any:
    try:
        kernel = model.kernel
        return _named(kernel) if isinstance(kernel, str) else as_kernel(kernel)
    except ValueError:  # fit raises an error that explains it
        return None


def tune_out_of_bag(decoder: Decoder, W: sp.csr_array, span: Span) -> Decoder:
    """Return a decoder tuned on out-of-bag predictions."""
    known = np.diff(W.indptr) > 0
    if not known.any():
        raise ValueError(
            f"no training row has an out-of-bag prediction to tune {decoder!r} with; grow more "
            "trees."
        )
    return decoder.tune([HeldOut(SparseWeights(W[known]), span, span.outputs[known])], span)


def tune_later(model: Any, decoder: Decoder) -> Decoder:
    """Return a decoder tuned on the out-of-bag weights that a fitted model has kept."""
    weights = getattr(model, "oob_weights_", None)
    if weights is None:
        raise ValueError(
            f"{decoder!r} is not tuned, and this {type(model).__name__} has no out-of-bag weights "
            "to tune it with; fit it again, with this decoder or with oob_score=True, or pass "
            f"decoder=okforest.tune_decoder(model, X, y, {decoder!r})."
        )
    decoder.check(model.span_)
    return tune_out_of_bag(decoder, weights, model.span_)
