"""Approximate factors Φ of the Gram matrix, in memory of N·rank: ΦΦᵀ ≈ K, which is never made.

Each function returns Φ and what it leaves out. Pivoted Cholesky and Nyström factors are projections
of the outputs, so that the residual trace Σ_i (k_ii − ‖Φ_i‖²) / Σ_i k_ii, from 0 to 1, says it all.
Random Fourier features err to both sides; theirs is ‖K − ΦΦᵀ‖ / ‖K‖ (Frobenius) over pairs of a
sample.
"""

from typing import Literal

import numpy as np
import scipy.linalg as sla
import scipy.linalg.lapack as lapack

from okforest._typing import Floats, Outputs
from okforest.kernels import OutputKernel
from okforest.kernels._checks import TOLERANCE as INDEFINITE
from okforest.kernels._checks import check_gram

LowRankKind = Literal["cholesky", "nystrom", "fourier"]

DEFAULT_RANK = 256
# Residual trace, and eigenvalues, that are rounding.
TOLERANCE = 1e-12
PIVOTS = 32  # columns of K computed at a time
FAIR = 0.05  # part of the largest residual that makes a candidate a pivot
SAMPLE = 512  # outputs on which the approximation, or a kernel of unknown kind, is tested
ROWS = 4096  # rows of K_nm computed at a time


def low_rank_factor(
    kernel: OutputKernel, y: Outputs, kind: str, rank: int | None, seed: int
) -> tuple[Floats, float]:
    """Return Φ with at most ``rank`` columns (256 if None), and the residual."""
    if not kernel.known_psd:
        check_gram(kernel(_sample(y)), f"the Gram matrix of {kernel!r}")
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

    An output is drawn with a chance in proportion to its residual (Chen, Epperly, Tropp and Webber,
    "Randomly pivoted Cholesky", 2025), which leaves less than the largest residual does: that goes
    for outliers. Columns of K are computed for several candidates at a time, and a candidate
    becomes a pivot if those before it leave it a fair part of the largest residual among them.
    """
    diag = kernel.diag(y)
    residual, trace = diag.copy(), diag.sum()
    phi = np.zeros((len(y), rank))
    rng = np.random.default_rng(seed)
    done = 0
    while done < rank and residual.sum() > TOLERANCE * trace:
        chance = residual / residual.sum()
        n_tried = min(PIVOTS, int(np.count_nonzero(chance)))
        tried = rng.choice(len(y), n_tried, replace=False, p=chance)
        columns = kernel(y, y[tried]) - phi[:, :done] @ phi[tried, :done].T
        if not np.isfinite(columns).all():
            raise ValueError(f"{kernel!r} has NaN or infinite values; a kernel has none.")
        lower, order, n_sound, _ = lapack.dpstrf(
            columns[tried], lower=1, tol=FAIR * residual[tried].max()
        )
        n_new = min(n_sound, rank - done)
        if n_new == 0:  # what is left is rounding
            break
        pivots = order[:n_new] - 1
        new = sla.solve_triangular(lower[:n_new, :n_new], columns[:, pivots].T, lower=True).T
        phi[:, done : done + n_new] = new
        residual -= np.einsum("ij,ij->i", new, new)
        if residual.min() < -INDEFINITE * diag.max():
            raise ValueError(
                f"{kernel!r} is indefinite: a residual of its Cholesky decomposition is "
                f"{residual.min():.3g}, and a kernel has none below zero."
            )
        residual[tried[pivots]] = 0.0
        np.maximum(residual, 0.0, out=residual)
        done += n_new
    return np.ascontiguousarray(phi[:, :done]), _share(residual.sum(), trace)


def nystrom(kernel: OutputKernel, y: Outputs, rank: int, seed: int) -> tuple[Floats, float]:
    """Return K_nm K_mm^(−1/2) for m landmarks, drawn without replacement."""
    landmarks = y[np.random.default_rng(seed).choice(len(y), rank, replace=False)]
    values, vectors = np.linalg.eigh(kernel(landmarks))
    sound = values > TOLERANCE * values[-1]
    roots = vectors[:, sound] / np.sqrt(values[sound])
    phi = np.empty((len(y), roots.shape[1]))
    for i in range(0, len(y), ROWS):
        phi[i : i + ROWS] = kernel(y[i : i + ROWS], landmarks) @ roots
    trace = kernel.diag(y).sum()
    return phi, _share(trace - np.vdot(phi, phi), trace)


def fourier(kernel: OutputKernel, y: Outputs, rank: int, seed: int) -> tuple[Floats, float]:
    """Return cosines and sines at random frequencies."""
    n_frequencies = rank // 2
    if n_frequencies == 0:
        raise ValueError(
            "embedding='fourier' has a cosine and a sine for every frequency; embedding_rank must "
            "be at least 2."
        )
    phases = kernel.phases(y, n_frequencies, np.random.default_rng(seed))
    phi = np.empty((len(y), 2 * n_frequencies))
    np.cos(phases, out=phi[:, :n_frequencies])
    np.sin(phases, out=phi[:, n_frequencies:])
    phi /= np.sqrt(n_frequencies)
    K, some = kernel(_sample(y)), _sample(phi)
    error = K - some @ some.T  # zero on the diagonal, whatever the frequencies
    np.fill_diagonal(K, 0.0)
    return phi, _share(float(np.linalg.norm(error)), float(np.linalg.norm(K)))


def _sample(values: Outputs) -> Outputs:
    """Return some outputs, evenly spread."""
    return values[np.linspace(0, len(values) - 1, min(len(values), SAMPLE)).astype(int)]


def _share(part: float, whole: float) -> float:
    return max(0.0, float(part / whole)) if whole > 0 else 0.0
