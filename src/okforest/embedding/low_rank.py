"""Approximate factors Φ of the Gram matrix K ≈ ΦΦᵀ, in N·rank memory; K itself is never stored.

Each function returns Φ and its error. Pivoted Cholesky and Nyström factors are projections of the
outputs, and their error is the relative residual trace Σ_i (k_ii − ‖Φ_i‖²) / Σ_i k_ii, from 0 to 1.
Random Fourier features may be too large as well as too small; their error is ‖K − ΦΦᵀ‖ / ‖K‖
(Frobenius) over the pairs of a sample.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.linalg as sla
import scipy.linalg.lapack as lapack

from okforest._utils.arrays import Floats, Outputs, namespace
from okforest._utils.distinct import distinct
from okforest.kernels import OutputKernel
from okforest.kernels.base import describe_kernel
from okforest.kernels.precomputed import TOLERANCE as INDEFINITE
from okforest.kernels.precomputed import check_gram

LowRankKind = Literal["cholesky", "nystrom", "fourier"]

DEFAULT_RANK = 256
# A smaller residual trace, or eigenvalue, is rounding, relative to the whole trace or the largest.
TOLERANCE = 1e-12
PIVOTS = 32  # columns of K computed at a time
FAIR = 0.05  # a pivot has at least this share of the largest residual among the candidates
SAMPLE = 512  # outputs on which an approximation, or a user's kernel, is tested
ROWS = 4096  # rows of K_nm computed at a time


def low_rank_factor(
    kernel: OutputKernel, y: Outputs, kind: str, rank: int | None, seed: int
) -> tuple[Floats, float]:
    """Return Φ with at most ``rank`` columns (256 if None), and its error."""
    if not kernel.known_psd:
        check_gram(kernel(_sample(y)), f"the Gram matrix of {describe_kernel(kernel)}")
    rank = min(DEFAULT_RANK if rank is None else rank, len(y))
    if kind == "cholesky":
        return pivoted_cholesky(kernel, y, rank, seed)
    if kind == "nystrom":
        return nystrom(kernel, y, rank, seed)
    return fourier(kernel, y, rank, seed)


def pivoted_cholesky(
    kernel: OutputKernel, y: Outputs, rank: int, seed: int
) -> tuple[Floats, float]:
    """Return the factor of an incomplete Cholesky decomposition with random pivots.

    An output is drawn with probability proportional to its residual (Chen, Epperly, Tropp and
    Webber, "Randomly pivoted Cholesky", 2025). The residual trace is smaller than if the output
    with the largest residual were taken, which may be an outlier. Columns of K are computed for
    several candidates at a time. A candidate becomes a pivot if its residual, given the pivots
    before it, is at least the share ``FAIR`` of the largest among the candidates.
    """
    diag = kernel.diag(y)
    residual, trace = diag.copy(), diag.sum()
    phi = np.zeros((len(y), rank))
    rng = np.random.default_rng(seed)
    done = 0
    while done < rank and residual.sum() > TOLERANCE * trace:
        probability = residual / residual.sum()
        n_tried = min(PIVOTS, int(np.count_nonzero(probability)))
        tried = rng.choice(len(y), n_tried, replace=False, p=probability)
        columns = kernel(y, y[tried]) - phi[:, :done] @ phi[tried, :done].T
        if not np.isfinite(columns).all():
            raise ValueError(
                f"{describe_kernel(kernel)} has NaN or infinite values; they must be finite."
            )
        lower, order, n_accepted, _ = lapack.dpstrf(
            columns[tried], lower=1, tol=FAIR * residual[tried].max()
        )
        n_new = min(n_accepted, rank - done)
        if n_new == 0:  # the rest is rounding
            break
        pivots = order[:n_new] - 1
        new = sla.solve_triangular(lower[:n_new, :n_new], columns[:, pivots].T, lower=True).T
        phi[:, done : done + n_new] = new
        residual -= np.einsum("ij,ij->i", new, new)
        if residual.min() < -INDEFINITE * diag.max():
            raise ValueError(
                f"{describe_kernel(kernel)} is indefinite: its Cholesky decomposition has a "
                f"negative residual, {residual.min():.3g}. Use a positive semi-definite kernel."
            )
        residual[tried[pivots]] = 0.0
        np.maximum(residual, 0.0, out=residual)
        done += n_new
    return np.ascontiguousarray(phi[:, :done]), _share(residual.sum(), trace)


def nystrom(kernel: OutputKernel, y: Outputs, rank: int, seed: int) -> tuple[Floats, float]:
    """Return K_nm K_mm^(−1/2) for m random landmarks, and its error."""
    landmarks = y[namespace(y).asarray(nystrom_landmarks(len(y), rank, seed))]
    phi = nystrom_features(kernel, y, landmarks, nystrom_roots(kernel, landmarks))
    return phi, nystrom_residual(kernel, y, phi)


def nystrom_landmarks(n: int, rank: int, seed: int) -> npt.NDArray[np.intp]:
    """Return the positions of random landmarks among n outputs."""
    return np.random.default_rng(seed).choice(n, rank, replace=False)


def nystrom_roots(kernel: OutputKernel, landmarks: Outputs) -> Floats:
    """Return K_mm^(−1/2), without the directions of tiny eigenvalues."""
    values, vectors = np.linalg.eigh(kernel(landmarks))
    sound = values > TOLERANCE * values[-1]
    roots: Floats = vectors[:, sound] / np.sqrt(values[sound])
    return roots


def nystrom_features(kernel: OutputKernel, y: Outputs, landmarks: Outputs, roots: Floats) -> Floats:
    """Return K_nm K_mm^(−1/2) of any outputs, given the landmarks and the roots."""
    phi = namespace(y).empty((len(y), roots.shape[1]))
    for i in range(0, len(y), ROWS):
        phi[i : i + ROWS] = kernel(y[i : i + ROWS], landmarks) @ roots
    return phi


def nystrom_residual(kernel: OutputKernel, y: Outputs, phi: Floats) -> float:
    """Return the relative residual trace of the features of some outputs."""
    trace = kernel.diag(y).sum()
    return _share(trace - np.vdot(phi, phi), trace)


def fourier(kernel: OutputKernel, y: Outputs, rank: int, seed: int) -> tuple[Floats, float]:
    """Return cosines and sines of random frequencies, and their error."""
    phi = fourier_features(kernel, y, rank, seed)
    return phi, fourier_error(kernel, _sample(y), _sample(phi))


def fourier_features(kernel: OutputKernel, y: Outputs, rank: int, seed: int) -> Floats:
    """Return cosines and sines of random frequencies, which depend on the seed alone."""
    n_frequencies = rank // 2
    if n_frequencies == 0:
        raise ValueError(
            "embedding='fourier' has a cosine and a sine for every frequency: embedding_rank must "
            "be at least 2."
        )
    # Only once for equal outputs: a product of matrices may round equal rows differently.
    different = distinct(y)
    phases = kernel.phases(y[different.first], n_frequencies, np.random.default_rng(seed))
    if len(different) < len(y):
        phases = phases[different.group]
    phi = namespace(phases).empty((len(y), 2 * n_frequencies))
    np.cos(phases, out=phi[:, :n_frequencies])
    np.sin(phases, out=phi[:, n_frequencies:])
    phi /= np.sqrt(n_frequencies)
    return phi


def fourier_error(kernel: OutputKernel, y: Outputs, phi: Floats) -> float:
    """Return the relative error of the kernel between different outputs."""
    K = kernel(y)
    error = K - phi @ phi.T  # zero on the diagonal for all frequencies
    np.fill_diagonal(K, 0.0)
    return _share(float(np.linalg.norm(error)), float(np.linalg.norm(K)))


def sample_positions(n: int) -> npt.NDArray[np.intp]:
    """Return the positions of a sample of n outputs, evenly spread."""
    return np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.intp)


def _sample(values: Outputs) -> Outputs:
    return values[namespace(values).asarray(sample_positions(len(values)))]


def _share(part: float, whole: float) -> float:
    return max(0.0, float(part / whole)) if whole > 0 else 0.0
