"""From a kernel and outputs to the arrays that trees are grown from, exactly and cheaply.

A node of n samples costs n·rank per feature with a factor Φ of the Gram matrix K = ΦΦᵀ, and n²
with K itself; the trees are the same. Approximate factors are there for outputs whose K does not
fit in memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.linalg.lapack as lapack

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu, to_host
from okforest._utils.distinct import Positions, distinct
from okforest._utils.resources import (
    blocks_with_sums,
    check_memory,
    empty_lines,
    gram_product,
    row_blocks,
)
from okforest.embedding.low_rank import DEFAULT_RANK, LowRankKind, low_rank_factor
from okforest.kernels import Linear, OutputKernel
from okforest.kernels.base import describe_kernel
from okforest.kernels.precomputed import check_gram

EmbeddingKind = Literal["features", "gram", "factor"] | LowRankKind
LOW_RANK_KINDS = get_args(LowRankKind)

# A factor of the Gram matrix pays off if its rank is at most this fraction of N.
LOW_RANK = 0.25
# A Gram matrix is computed from explicit features if their dimension is at most this multiple of N.
FEATURES = 4
# Equal outputs may have kernel values that differ by this fraction of the diagonal.
ENTRY_ERROR = 4 * np.finfo(np.float64).eps
# Squared norms that trees can be grown from. Growth squares sums over rows, whose weights it scales
# to at most 2: with up to 2³¹ rows, results stay within 1e308, and differences of 16 digits above
# the smallest normal number. The Frobenius criterion squares kernel values, too.
SCALE = (1e-280, 1e280)
FROBENIUS_SCALE = (1e-140, 1e140)
# The centre of vectors is computed from at most about this number of them. It is so near to that of
# all that squared norms, and so rounding errors, are hardly larger.
CENTRE_SAMPLE = 1024
# What to do if the Gram matrix does not fit in memory.
APPROXIMATE = (
    "Use embedding='cholesky', 'nystrom' or 'fourier', which approximate it by embedding_rank "
    "columns, or a kernel with explicit features."
)


@dataclass(frozen=True)
class Embedding:
    """Outputs as numbers, centred: trees do not depend on the mean, and rounding is smaller.

    Parameters
    ----------
    kind : {"features", "gram", "factor", "cholesky", "nystrom", "fourier"}
        The form of ``values``.
    values : ndarray of shape (n, rank), or (n, n) for "gram", or (n,) for classes
        Explicit features or a factor of the Gram matrix, or that matrix; C-contiguous. Numbers of
        classes stand for features that indicate them.
    residual : float
        What an approximate factor leaves out; see :mod:`okforest.embedding.low_rank`.
    errors : ndarray of shape (n,), optional
        By how much equal outputs may differ because of rounding, as squared distances. Without
        them, equal outputs are equal vectors.
    n_classes : int
        The number of classes, if values are their numbers.
    """

    kind: EmbeddingKind
    values: npt.NDArray[Any]
    residual: float = 0.0
    errors: Floats | None = None
    n_classes: int = 0

    @property
    def rank(self) -> int:
        """Number of columns of the factor or Gram matrix."""
        return self.n_classes or int(self.values.shape[1])

    def as_matrix(self) -> "Embedding":
        """Return the embedding with features instead of numbers of classes."""
        if not self.n_classes:
            return self
        features = np.zeros((len(self.values), self.n_classes))
        features[np.arange(len(self.values)), self.values] = 1.0
        return Embedding(self.kind, features)


def embed(
    kernel: OutputKernel,
    y: Outputs,
    kind: EmbeddingKind | Literal["auto"] = "auto",
    rank: int | None = None,
    seed: int = 0,
    weight: Floats | None = None,
) -> Embedding:
    """Embed outputs, exactly unless an approximate factor is asked for.

    With "auto", explicit features are used if the kernel has them and their dimension is at most
    the number of outputs; else the Gram matrix, or its factor if its rank is low. Approximate
    factors have at most ``rank`` columns, and depend on the seed. Outputs on a GPU are embedded
    there, except by "cholesky". Outputs of weight zero do not move the centre.
    """
    if kind != "auto" and kind in LOW_RANK_KINDS:
        diag = kernel.diag(y)
        _check_scale(diag, is_zero=lambda: not diag.any())
        factor, residual = low_rank_factor(kernel, y, kind, rank, seed)
        return replace(centred_factor(kind, factor, diag, weight), residual=residual)
    if rank is not None:
        raise ValueError(
            f"embedding_rank={rank} has no effect with embedding={kind!r}, which is exact; use "
            "embedding='cholesky', 'nystrom' or 'fourier', or embedding_rank=None."
        )
    dim = kernel.feature_dim(y)
    if kind == "features" and dim is None:
        raise ValueError(
            "embedding='features' needs a kernel with explicit features, which "
            f"{describe_kernel(kernel)} lacks; use 'auto', 'gram' or 'factor'."
        )
    if dim is not None and (kind == "features" or dim <= FEATURES * len(y)):
        features = centred_features(kernel.features(y), weight)
        # Features are a factor: if there are few, no square matrix is needed.
        if kind == "features" or (kind != "gram" and dim <= len(y)):
            return Embedding("factor" if kind == "factor" else "features", features)
        # Centred first: outputs far from the origin then keep their digits.
        _check_gram_memory(len(y))
        K = gram_product(features, features)
        scales = to_host(K.diagonal().copy())
    else:
        K, scales = _centred_gram(kernel, y, weight)
    if kind == "factor" or (kind == "auto" and _may_have_low_rank(K, scales)):
        exact = _exact_factor(K, scales, len(K) if kind == "factor" else int(LOW_RANK * len(K)))
        if exact is not None:
            factor, least = exact
            return Embedding("factor", factor, errors=_errors_along(least, scales))
    return Embedding("gram", K, errors=ENTRY_ERROR * scales)


def as_factor(embedding: Embedding) -> Embedding:
    """Return a Gram matrix as an exact factor of it; other embeddings are vectors already."""
    if embedding.kind != "gram" or embedding.errors is None:
        return embedding
    scales = embedding.errors / ENTRY_ERROR
    exact = _exact_factor(embedding.values, scales, len(scales))
    assert exact is not None  # no rank exceeds the number of outputs
    factor, least = exact
    return Embedding("factor", factor, errors=_errors_along(least, scales))


def embedding_bytes(
    kernel: OutputKernel, y: Outputs, kind: EmbeddingKind | Literal["auto"], rank: int | None
) -> int:
    """Return the memory that outputs and their embedding take, with what is computed on the way."""
    n, dim = len(y), kernel.feature_dim(y)
    if kind in LOW_RANK_KINDS:
        columns = 3 * min(n, DEFAULT_RANK if rank is None else rank)
    elif dim is not None and (kind == "features" or (kind != "gram" and dim <= n)):
        columns = 4 * dim
    else:
        columns = 5 * n
    return 3 * int(y.nbytes) + 8 * n * columns


def centred_factor(
    kind: EmbeddingKind, factor: Floats, diag: Floats, weight: Floats | None = None
) -> Embedding:
    """Return an approximate factor around its centre, given the diagonal of the Gram matrix."""
    errors = factor_errors(factor, to_host(diag))
    factor = centred_features(factor, weight)
    if float(np.vdot(factor, factor)) < 1e-28 * float(diag.sum()):  # equal outputs, up to rounding
        factor[:] = 0.0
    return Embedding(kind, factor, errors=errors)


def factor_errors(factor: Floats, scales: Floats) -> Floats:
    """Return by how much equal outputs may differ in a factor of K, as squared distances.

    ``scales`` are the diagonal of K before centring, to which its rounding errors are relative.
    """
    lengths = np.einsum("ij,ij->j", factor, factor) / len(factor)
    shortest = float(lengths.min()) if len(lengths) else 0.0
    return _errors_along(shortest / scales.mean() if shortest > 0.0 else 1.0, scales)


def _errors_along(least: float, scales: Floats) -> Floats:
    """Return these errors, given the squared length of the shortest direction relative to K.

    An error of K, four times to be safe, is divided by the length of a direction, and squared.
    """
    return min(ENTRY_ERROR, (4 * ENTRY_ERROR) ** 2 / least) * scales


def _check_gram_memory(n: int, advice: str = APPROXIMATE) -> None:
    """Raise a MemoryError if a Gram matrix, not made yet, would be too large for the machine."""
    check_memory(8 * n * n, f"the Gram matrix of {n} outputs", advice)


def centred_features(features: Floats, weight: Floats | None = None) -> Floats:
    """Return features of φ(y) around their centre; indicators of classes as they are."""
    xp = namespace(features)
    features = xp.ascontiguousarray(features)  # sums do not depend on the order in memory
    if (
        xp.count_nonzero(features[:1]) == 1
        and xp.count_nonzero(features) == len(features)
        and (features.max(axis=1) == 1.0).all()
    ):
        return features  # the engine counts classes
    used = _used(len(features), weight)
    if len(used) > CENTRE_SAMPLE:  # at random: the order of outputs may be periodic
        used = used[np.random.default_rng(0).integers(len(used), size=CENTRE_SAMPLE)]
    some = features[xp.asarray(used)]
    centre = some[_nearest(Linear().diag(some - some.mean(axis=0)))].mean(axis=0)
    empty = xp.empty if on_gpu(features) else empty_lines
    centred = np.subtract(features, centre, out=empty(features.shape))
    _check_scale(Linear().diag(centred), is_zero=lambda: not (features != features[:1]).any())
    return centred


def gram_of(
    kernel: OutputKernel, y: Outputs, advice: str = APPROXIMATE, *, frobenius: bool = False
) -> Floats:
    """Return the Gram matrix of the outputs, checked, uncentred and C-contiguous.

    ``advice`` tells users what to do if it does not fit in memory; ``frobenius`` is the criterion
    that squares its entries.
    """
    if not on_gpu(y):
        _check_gram_memory(len(y), advice)
    K = namespace(y).ascontiguousarray(_kernel_matrix(kernel, y))
    if not kernel.known_psd:
        check_gram(K, f"the Gram matrix of {describe_kernel(kernel)}")
    _check_scale(K.diagonal(), is_zero=lambda: not K.diagonal().any(), frobenius=frobenius)
    return K


def _kernel_matrix(kernel: OutputKernel, y: Outputs) -> Floats:
    """Return the Gram matrix; equal vectors have equal rows, to the last bit."""
    if not (kernel.numeric and kernel.known_psd and y.dtype.kind in "fiub"):
        return _complete(kernel(y), kernel, len(y))
    different = distinct(y)
    K = kernel(y[different.first])  # a copy, whose order in memory is not that of y
    return K if len(different) == len(y) else K[different.group[:, None], different.group]


def _complete(K: Floats, kernel: OutputKernel, n: int) -> Floats:
    """Return the Gram matrix of n outputs; raise an error if a user's kernel returned another."""
    shape = getattr(K, "shape", None)
    if shape != (n, n):
        what = type(K).__name__ if shape is None else f"an array of shape {shape}"
        raise ValueError(
            f"{describe_kernel(kernel)} returned {what} for the Gram matrix of {n} outputs; it "
            f"must return an array of shape {(n, n)}."
        )
    if not bool(namespace(K).isfinite(K).all()):
        raise ValueError(
            f"{describe_kernel(kernel)} returned a Gram matrix with NaN or infinite entries; all "
            "must be finite."
        )
    return K


def _centred_gram(kernel: OutputKernel, y: Outputs, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the Gram matrix of φ(y) around their centre, and the scales of its rounding errors."""
    K = gram_of(kernel, y)
    diag = K.diagonal().copy()
    used = namespace(K).asarray(_used(len(K), weight))
    # Squared distances to the mean of these outputs, up to a constant.
    central = used[_nearest((diag - 2.0 * _mean_of_rows(K, used))[used])]
    inner = _mean_of_rows(K, central)
    square = inner[central].mean()  # of the norm of the centre
    half = inner - square / 2.0
    for part, sums in blocks_with_sums(K, half, half):
        part -= sums
    return K, to_host(np.maximum(diag, abs(square)))


def _used(n: int, weight: Floats | None) -> Positions:
    """Return the positions of outputs of positive weight."""
    return np.arange(n) if weight is None else np.flatnonzero(weight)


def _mean_of_rows(K: Floats, rows: Positions) -> Floats:
    """Return the mean of some rows, in which entries that are equal in all of them stay equal."""
    share = namespace(K).zeros(len(K))
    share[rows] = 1.0 / len(rows)
    # Not a product with K, whose entries for equal outputs may differ in the last digit.
    mean: Floats = np.einsum("i,ij->j", share, K)
    return mean


def _nearest(squares: Floats) -> Positions:
    """Return the positions of the half of the outputs with the least distances to their mean.

    Their own mean is the centre, so that a few outliers do not move it away from all the others.
    """
    return squares.argsort()[: len(squares) // 2 + 1]


def _check_scale(squares: Floats, *, is_zero: Callable[[], bool], frobenius: bool = False) -> None:
    """Raise a ValueError if squared norms are too large, or too small, to grow trees from.

    ``is_zero`` returns whether they are zero without rounding; it is called if they are tiny.
    """
    largest = float(squares.max()) if len(squares) else 0.0
    smallest, limit = FROBENIUS_SCALE if frobenius else SCALE
    if smallest <= largest <= limit or (largest < smallest and is_zero()):
        return
    if frobenius and SCALE[0] <= largest <= SCALE[1]:
        raise ValueError(
            f"outputs have squared norms of up to {largest:.3g}; criterion='frobenius' squares "
            f"them, and needs a largest one between {smallest:g} and {limit:g}. Rescale the "
            "outputs, or use criterion='variance'."
        )
    raise ValueError(
        f"outputs have squared norms of up to {largest:.3g}, at the limit of float64; rescale them."
    )


def _may_have_low_rank(K: Floats, scales: Floats) -> bool:
    """Return whether the rank of K may be low, judged from a block at a fraction of the cost."""
    n = len(K)
    some = np.linspace(0, n - 1, int(LOW_RANK * n) + 2).astype(int)
    if len(some) > n // 2:  # too few outputs for a factor to pay off
        return False
    there = namespace(K).asarray(some)
    block = to_host(K[there[:, None], there])
    return _exact_factor(block, scales[some], len(some) - 1) is not None


def _exact_factor(K: Floats, scales: Floats, most: int) -> tuple[Floats, float] | None:
    """Return Φ with rank(K) columns and ΦΦᵀ = K up to rounding, by pivoted Cholesky.

    Rounding errors are relative to the scales of rows, so that a large output does not hide what is
    between small ones. Also return the squared length of the shortest direction, relative to
    them. Return None if the rank exceeds ``most``. On a GPU, which has no pivoted Cholesky
    decomposition, Φ comes from eigenvectors.
    """
    xp = namespace(K)
    scales = np.maximum(scales, to_host(np.diagonal(K)))
    # Powers of two change no digits.
    unit = xp.asarray(np.exp2(np.round(np.log2(np.where(scales > 0, scales, 1.0)) / 2)))
    scaled = xp.empty_like(K)
    for rows in row_blocks(K):
        np.divide(K[rows], unit, out=scaled[rows])
        scaled[rows] /= unit[rows, None]
    eps = np.finfo(np.float64).eps
    if on_gpu(K):
        values, vectors = np.linalg.eigh(scaled)
        sound = values > len(K) * eps * values[-1]
        if int(sound.sum()) > most:
            return None
        vectors *= unit[:, None]
        least = float(values[sound][:1].sum())
        return xp.ascontiguousarray(vectors[:, sound] * np.sqrt(values[sound])), least or 1.0
    factor, pivots, rank, _ = lapack.dpstrf(
        scaled.T, lower=1, tol=(64 + most / 4) * eps, overwrite_a=True
    )
    if rank > most:
        return None
    phi = np.empty((len(K), rank))
    phi[pivots - 1] = np.tril(factor[:, :rank])
    least = float(np.diagonal(factor)[:rank].min(initial=1.0)) ** 2
    return phi * unit[:, None], least
