"""Kernel ridge regression by the eigenvectors of the Gram matrix, for every penalty at once.

Training rows are multiplied by S = diag(√ω), where ω are their weights. With SΨ = U √Λ Vᵀ, where Ψ
are the features of the training inputs, predictions are F(x) = u(x) (Λ + α)⁻¹ Uᵀ SΦ, where
u(x) = ψ(x)ᵀ V √Λ = k(x, Z) lift.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla

from okforest._typing import Floats
from okforest._warnings import warn

# Negative eigenvalues down to this, times n and relative to the largest entry, are rounding.
ROUNDING = 1e-10
# Negative eigenvalues down to this, relative to the largest eigenvalue, are set to zero with a
# warning: that changes the Gram matrix by at most 1 % in the spectral norm.
CLIPPED = 1e-2


class ScaledRows:
    """The training rows, scaled by the square roots of their weights ω.

    An intercept is one more feature of the inputs, which is 1 for every row and is not penalised.
    After scaling it has the direction u = √ω / ‖√ω‖, and the other features are fitted in the
    orthogonal complement of u. That is the same as subtracting weighted means from all features.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        The weights, all positive.
    intercept : bool
        Whether there is an intercept.
    """

    def __init__(self, weight: Floats, intercept: bool):
        self.scale = np.sqrt(weight)
        self.norm = float(np.linalg.norm(self.scale))
        self.constant = self.scale / self.norm if intercept else None

    def __len__(self) -> int:
        return len(self.scale)

    @property
    def rank(self) -> int:
        """Number of dimensions that are left to fit."""
        return len(self) if self.constant is None else len(self) - 1

    def project(self, columns: Floats) -> Floats:
        """Return the coordinates of columns in the complement of u, of shape (rank, ...)."""
        return columns if self.constant is None else self._reflect(columns)[1:]

    def restore(self, coordinates: Floats) -> Floats:
        """Return columns of shape (n, ...), orthogonal to u, from their coordinates."""
        if self.constant is None:
            return coordinates
        return self._reflect(np.vstack([np.zeros(coordinates.shape[1]), coordinates]))

    def _reflect(self, columns: Floats) -> Floats:
        """Apply the Householder reflection that maps u to the first axis, and back."""
        assert self.constant is not None
        normal = self.constant.copy()
        normal[0] += 1.0
        normal /= np.linalg.norm(normal)
        return columns - np.outer(2.0 * normal, normal @ columns)

    def grams(self, K: Floats) -> tuple[Floats, Floats]:
        """Return SKS, and the same in the complement of u."""
        scaled = self.scale[:, None] * K * self.scale
        return scaled, self.project(self.project(scaled).T)


class Spectrum(NamedTuple):
    """The eigendecomposition of the training inputs' Gram matrix."""

    lift: Floats  # (m, r)
    values: Floats  # (r,): Λ
    vectors: Floats  # (n, r): U

    def solve(self, alpha: float, basis: Floats | None) -> Floats:
        """Return D such that F(x) = k(x, Z) D BᵀSΦ, for an orthonormal B or the identity.

        That holds if B spans U; otherwise predictions are confined to the span of BᵀSΦ.
        """
        coordinates = self.vectors.T if basis is None else self.vectors.T @ basis
        return (self.lift / (self.values + alpha)) @ coordinates

    def with_intercept(self, rows: ScaledRows) -> "Spectrum":
        """Add the direction of the intercept, if there is one.

        No penalty shrinks it, as if its eigenvalue were infinite. It does not depend on x, and has
        no part in ``lift``.
        """
        if rows.constant is None:
            return self
        return Spectrum(
            np.column_stack([self.lift, np.zeros(len(self.lift))]),
            np.append(self.values, np.inf),
            np.column_stack([self.vectors, rows.constant]),
        )


def solve_exactly(K: Floats, rows: ScaledRows, alpha: float, basis: Floats | None) -> Floats | None:
    """Return the same as ``exact_spectrum(K, rows).solve(alpha, basis)``, in less time.

    Return None if K has negative eigenvalues, for which that function is needed.
    """
    whole, gram = rows.grams(K)
    if not _is_positive_definite(gram, _rounding(whole)):
        return None
    gram[np.diag_indices_from(gram)] += alpha
    try:
        factor = sla.cho_factor(gram, lower=True, overwrite_a=True)
    except sla.LinAlgError:
        raise ValueError(
            f"alpha={alpha:g} is too small: the Gram matrix of the input kernel with alpha on its "
            "diagonal is numerically singular. Use a larger alpha."
        ) from None
    right = rows.project(np.eye(len(rows)) if basis is None else basis)
    return rows.scale[:, None] * rows.restore(sla.cho_solve(factor, right))


def exact_spectrum(K: Floats, rows: ScaledRows) -> Spectrum:
    """Return the spectrum of all training rows, whose Gram matrix is K."""
    values, vectors = _eigen(*rows.grams(K))
    vectors = rows.restore(vectors)
    # A direction whose eigenvalue is set to zero has no part in predictions either.
    lift = rows.scale[:, None] * np.where(values > 0, vectors, 0.0)
    return Spectrum(lift, np.maximum(values, 0.0), vectors).with_intercept(rows)


def landmark_spectrum(K: Floats, landmarks: Any, rows: ScaledRows) -> Spectrum:
    """Return that of the features K_mm^(-1/2) k(Z, x), for landmarks Z; K is k(X, Z)."""
    block = K[landmarks]
    values, vectors = _eigen(block, block)
    # Eigenvalues no larger than a negative one are as uncertain; dividing by them adds noise.
    known = values > max(len(values) * np.finfo(float).eps * values[-1], -values[0])
    known[-1] = True  # inputs that are all zero keep one coordinate, which is zero
    root = vectors[:, known] / np.sqrt(np.maximum(values[known], np.finfo(float).tiny))
    features = rows.project(rows.scale[:, None] * (K @ root))
    U, singular, Vt = sla.svd(features, full_matrices=False)
    spectrum = Spectrum(root @ Vt.T * singular, singular**2, rows.restore(U))
    return spectrum.with_intercept(rows)


def _rounding(K: Floats) -> float:
    return ROUNDING * len(K) * float(np.abs(K).max())


def _is_positive_definite(gram: Floats, shift: float) -> bool:
    """Return whether no eigenvalue is below minus the shift."""
    shifted = gram.copy()
    shifted[np.diag_indices_from(shifted)] += max(shift, np.finfo(float).tiny)
    try:
        sla.cholesky(shifted, lower=True, overwrite_a=True)
    except sla.LinAlgError:
        return False
    return True


def _eigen(whole: Floats, gram: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, ascending, and eigenvectors of a Gram matrix, which may be centred.

    Negative eigenvalues are judged by the largest of the whole matrix: to subtract a large mean
    does not make similarities worse.
    """
    values, vectors = sla.eigh(gram)
    smallest = float(values[0])
    if smallest >= -_rounding(whole):
        return values, vectors
    last = len(whole) - 1
    largest = max(float(sla.eigvalsh(whole, subset_by_index=[last, last])[0]), 0.0)
    if smallest < -CLIPPED * largest:
        raise ValueError(
            f"the Gram matrix of the input kernel is indefinite: its eigenvalues range from "
            f"{smallest:.3g} to {largest:.3g}. Negative ones may be at most {CLIPPED:.0%} of the "
            f"largest. Use a positive semi-definite kernel, or compute the matrix, add "
            f"{-smallest:.3g} to its diagonal, and use input_kernel='precomputed'."
        )
    warn(
        f"the Gram matrix of the input kernel is slightly indefinite: its smallest eigenvalue is "
        f"{smallest:.3g}, its largest {largest:.3g}. Negative eigenvalues are set to zero.",
    )
    return values, vectors
