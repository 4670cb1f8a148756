"""Kernel ridge regression by the eigenvectors of a Gram matrix, and its leave-one-out loss."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from scipy.sparse.linalg import LinearOperator, eigsh

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.errors import warn
from okforest.kernels import OutputKernel
from okforest.weights import Span

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
    """Return the spectrum of the features K_mm^(-1/2) k(Z, x), for landmarks Z; K is k(X, Z)."""
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


class ScaledOutputs:
    """The training outputs' features SΦ, known by their inner products.

    Parameters
    ----------
    kernel : OutputKernel
        The kernel, resolved.
    outputs : ndarray
        The training outputs.
    rows : ScaledRows
        Their scale S, and whether there is an intercept.
    """

    def __init__(self, kernel: OutputKernel, outputs: Outputs, rows: ScaledRows):
        self.span = Span(kernel, outputs)
        self.rows = rows

    @property
    def factor(self) -> Floats | None:
        """SΦ itself, if the kernel has few features."""
        features = self.span.features
        return None if features is None else self.rows.scale[:, None] * features

    def squares(self) -> Floats:
        """Return the squared norms of the rows of SΦ."""
        return self.rows.scale**2 * self.span.kernel.diag(self.span.outputs)

    def gram_times(self, V: Floats) -> Floats:
        """Return SΦ(SΦ)ᵀV, computed from blocks of the Gram matrix."""
        W: Any = (self.rows.scale[:, None] * V).T
        return self.rows.scale[:, None] * self.span.inner(W, self.span.outputs).T

    def principal(self, n_components: int, *, square: bool) -> Floats | None:
        """Return orthonormal B such that BBᵀSΦ has the leading principal directions of SΦ.

        With an intercept, outputs count from their mean. None means all directions. Unless
        ``square`` allows a square matrix, each step of the Lanczos method evaluates the kernel
        again.
        """
        rows = self.rows
        if n_components >= rows.rank:
            return None
        if self.factor is not None:
            left = sla.svd(rows.project(self.factor), full_matrices=False)[0]
            return rows.restore(left[:, :n_components])
        if square:
            gram = rows.project(rows.project(self.gram_times(np.eye(len(rows)))).T)
            leading = [rows.rank - n_components, rows.rank - 1]
            return rows.restore(sla.eigh(gram, subset_by_index=leading)[1])

        def times(V: Floats) -> Floats:
            return rows.project(self.gram_times(rows.restore(V)))

        operator = LinearOperator(
            (rows.rank, rows.rank),
            matvec=lambda v: times(v.reshape(-1, 1))[:, 0],
            matmat=times,
            dtype=np.float64,
        )
        return rows.restore(eigsh(operator, k=n_components, v0=np.ones(rows.rank))[1])

    def outside(self, part: Floats) -> float:
        """Return the leave-one-out loss in the directions that predictions do not have.

        There the prediction is the intercept alone, the mean of the other outputs, or else zero.
        ``part`` holds the scaled outputs in the directions that predictions do have.
        """
        constant, factor, squares = self.rows.constant, self.factor, self.squares()
        left = np.ones(len(self.rows))  # 1 − H_ii, where H is the projection on the constant
        if constant is not None:
            left -= constant**2
            if factor is not None:
                squares = ((factor - np.outer(constant, constant @ factor)) ** 2).sum(axis=1)
            else:
                product = self.gram_times(constant[:, None])[:, 0]
                squares += constant * (constant * (constant @ product) - 2.0 * product)
        unexplained = np.maximum(squares - (part**2).sum(axis=1), 0.0)
        return float((unexplained / left**2).sum())


def leave_one_out(
    spectrum: Spectrum, outputs: ScaledOutputs, alphas: Floats, principal: Floats | None = None
) -> Floats:
    """Return for each penalty Σ_i ω_i ‖φ(y_i) − F₋ᵢ(x_i)‖², where F₋ᵢ is fitted without row i.

    The residual of a row that is left out is (SΦ − H SΦ)_i / (1 − H_ii), where H = U Λ(Λ + α)⁻¹ Uᵀ.
    U includes the direction of the intercept, whose eigenvalue is infinite. Landmarks and the
    principal directions that predictions are confined to stay as they are.
    """
    _, values, U = spectrum
    complete = U.shape[0] == U.shape[1]  # then nothing is outside the span of U
    factor, outside = outputs.factor, 0.0
    if principal is not None:
        variance = np.einsum("ij,ij->j", principal, outputs.gram_times(principal))
        factor = principal * np.sqrt(np.maximum(variance, 0.0))
        outside = outputs.outside(factor)
    residual_squares = (
        _squares_by_gram(outputs, U, complete)
        if factor is None
        else _squares_by_factor(factor, U, complete)
    )
    U_squares = U**2
    free = 0.0 if complete else np.maximum(1.0 - U_squares.sum(axis=1), 0.0)
    losses = []
    for alpha in alphas:
        kept = alpha / (values + alpha)  # the share of each coordinate that stays in the residual
        losses.append((residual_squares(kept) / (free + U_squares @ kept) ** 2).sum() + outside)
    return np.array(losses)


def _squares_by_factor(factor: Floats, U: Floats, complete: bool) -> Callable[[Floats], Floats]:
    """Return a function of ``kept`` that gives the squared norms of the rows of residuals."""
    coordinates = U.T @ factor
    outside = 0.0 if complete else factor - U @ coordinates
    return lambda kept: ((outside + (U * kept) @ coordinates) ** 2).sum(axis=1)


def _squares_by_gram(
    outputs: ScaledOutputs, U: Floats, complete: bool
) -> Callable[[Floats], Floats]:
    """Return the same function, from inner products alone."""
    product = outputs.gram_times(U)
    inner = U.T @ product

    def within(kept: Floats) -> Floats:
        part = U * kept
        return np.einsum("ij,ij->i", part @ inner, part)

    if complete:
        return within
    across = product - U @ inner
    outside = outputs.squares() - np.einsum("ij,ij->i", product + across, U)
    return lambda kept: np.maximum(outside + 2.0 * (across * U) @ kept + within(kept), 0.0)
