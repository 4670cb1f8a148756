"""The kernel R² or the accuracy of lazy predictions, as a reduction over partitions."""

from typing import Any, NamedTuple

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.compat import check_sample_weight
from okforest.dask._blocks import with_blocks
from okforest.dask._cluster import require
from okforest.kernels import OutputKernel
from okforest.weights import Span, WeightMatrix


class Truth(NamedTuple):
    """The true outputs of a partition, and their weights."""

    outputs: Outputs
    weight: Floats


class Terms(NamedTuple):
    """Weighted sums over the rows of a partition."""

    loss: float  # of ‖φ(y) − F(x)‖²
    square: float  # of ‖φ(y)‖²
    weight: float
    n_rows: int


def score(kernel: OutputKernel, predicted: list[Any], truths: list[list[Any]]) -> Any:
    """Return the kernel R² as a lazy array without axes; truths are outputs, or with weights."""
    dask, array = require("dask"), require("dask.array")
    shared = dask.delayed(kernel, traverse=False)
    lose = dask.delayed(_terms, pure=False)
    true = [with_blocks(_truth, own, shared) for own in truths]
    terms = [lose(*pair) for pair in zip(predicted, true, strict=True)]
    spread = _spread(kernel, shared, true)
    ratio = dask.delayed(_r2, pure=False)(terms, spread)
    return array.from_delayed(ratio, shape=(), dtype=np.float64)


def accuracy(kernel: OutputKernel, predicted: list[Any], truths: list[list[Any]]) -> Any:
    """Return the share of rows whose class is predicted as a lazy array without axes."""
    dask, array = require("dask"), require("dask.array")
    shared = dask.delayed(kernel, traverse=False)
    count = dask.delayed(_right, pure=False)
    true = [with_blocks(_truth, own, shared) for own in truths]
    terms = [count(*pair) for pair in zip(predicted, true, strict=True)]
    return array.from_delayed(dask.delayed(_share, pure=False)(terms), shape=(), dtype=np.float64)


def _spread(kernel: OutputKernel, shared: Any, true: list[Any]) -> Any:
    """Return the spread of all true outputs around their mean, lazily."""
    dask = require("dask")
    if kernel.feature_dim(np.zeros((1, 1))) is None:
        pairs = dask.delayed(_pair_sum, pure=False)
        products = [pairs(shared, a, b) for a in true for b in true]
        squares = [dask.delayed(_square_sum, pure=False)(shared, part) for part in true]
        return dask.delayed(_spread_of_products, pure=False)(products, squares, true)
    sums, mean, around = (
        dask.delayed(f, pure=False) for f in (_feature_sum, _mean, _spread_around)
    )
    centre = mean([sums(shared, part) for part in true])
    return dask.delayed(sum, pure=False)([around(shared, part, centre) for part in true])


def _truth(kernel: OutputKernel, y: Any, weight: Any = None) -> Truth:
    if len(y) == 0:
        return Truth(np.empty(0), np.empty(0))
    outputs = kernel.check(y)
    return Truth(outputs, check_sample_weight(weight, outputs, ensure_non_negative=True))


def _terms(predicted: tuple[Span, WeightMatrix], true: Truth) -> Terms:
    span, W = predicted
    _check_rows(W.shape[0], true)
    if len(true.outputs) == 0:
        return Terms(0.0, 0.0, 0.0, 0)
    losses = span.losses(W, true.outputs)
    squares = span.kernel.diag(true.outputs)
    weight = true.weight
    return Terms(float(weight @ losses), float(weight @ squares), float(weight.sum()), len(losses))


def _right(predicted: Outputs, true: Truth) -> tuple[float, float]:
    """Return the weight of the rows whose class is predicted, and that of all rows."""
    _check_rows(len(predicted), true)
    right = np.asarray(predicted == true.outputs, dtype=np.float64)
    return float(true.weight @ right), float(true.weight.sum())


def _share(terms: list[tuple[float, float]]) -> Floats:
    right, total = np.sum(terms, axis=0)
    return np.array(right / total if total > 0 else np.nan)


def _check_rows(n_rows: int, true: Truth) -> None:
    if len(true.outputs) != n_rows:
        raise ValueError(f"a partition has {n_rows} rows of X and {len(true.outputs)} of y.")


def _feature_sum(kernel: OutputKernel, true: Truth) -> tuple[Any, float]:
    if len(true.outputs) == 0:
        return 0.0, 0.0
    return true.weight @ kernel.features(true.outputs), float(true.weight.sum())


def _mean(sums: list[tuple[Any, float]]) -> Any:
    total = sum(weight for _, weight in sums)
    return sum(part for part, _ in sums) / total if total > 0 else 0.0


def _spread_around(kernel: OutputKernel, true: Truth, centre: Any) -> float:
    if len(true.outputs) == 0:
        return 0.0
    return float(true.weight @ ((kernel.features(true.outputs) - centre) ** 2).sum(axis=1))


def _square_sum(kernel: OutputKernel, true: Truth) -> float:
    return float(true.weight @ kernel.diag(true.outputs)) if len(true.outputs) else 0.0


def _pair_sum(kernel: OutputKernel, a: Truth, b: Truth) -> float:
    """Return Σ ω_i ω_j k(y_i, y_j), some rows at a time."""
    if len(a.outputs) == 0 or len(b.outputs) == 0:
        return 0.0
    blocks = Span(kernel, a.outputs).blocks(len(a.outputs), len(b.outputs))
    return float(
        sum(a.weight[rows] @ kernel(a.outputs[rows], b.outputs) @ b.weight for rows in blocks)
    )


def _spread_of_products(products: list[float], squares: list[float], true: list[Truth]) -> float:
    square, weight = sum(squares), sum(float(part.weight.sum()) for part in true)
    spread = square - sum(products) / weight if weight > 0 else 0.0
    return spread if spread > 1e-13 * square else 0.0


def _r2(terms: list[Terms], spread: float) -> Floats:
    """Return 1 − loss / spread as :func:`okforest.metrics.kernel_r2` does, as an array."""
    loss, square = sum(part.loss for part in terms), sum(part.square for part in terms)
    if sum(part.n_rows for part in terms) < 2:
        return np.array(np.nan)
    if spread <= 1e-28 * square:
        return np.array(1.0 if loss <= 1e-13 * square else 0.0)
    return np.array(1.0 - loss / spread)
