"""Kernel ridge regression by eigenvectors, for every penalty at once.

Rows are scaled by S = diag(√ω), ω being their weights. With SΨ = U √Λ Vᵀ, Ψ the training inputs'
features, predictions are F(x) = u(x) (Λ + α)⁻¹ Uᵀ SΦ, where u(x) = ψ(x)ᵀ V √Λ = k(x, Z) lift.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from scipy.sparse.linalg import LinearOperator, eigsh

from okforest._typing import Floats, Outputs
from okforest.embedding import Span
from okforest.kernels import OutputKernel

# Relative to the largest: eigenvalues between it and minus it are rounding.
TOLERANCE = 1e-10


class Spectrum(NamedTuple):
    """The training inputs, seen by their kernel."""

    lift: Floats  # (m, r)
    values: Floats  # (r,): Λ
    vectors: Floats  # (n, r): U

    def solve(self, alpha: float, basis: Floats | None) -> Floats:
        """Return D such that F(x) = k(x, Z) D BᵀSΦ, for an orthonormal B or the identity.

        That holds where B spans U; otherwise predictions are confined to the span of BᵀSΦ.
        """
        coordinates = self.vectors.T if basis is None else self.vectors.T @ basis
        return (self.lift / (self.values + alpha)) @ coordinates


def solve_exactly(K: Floats, scale: Floats, alpha: float, basis: Floats | None) -> Floats:
    """Return the same as the exact spectrum's ``solve``, for one penalty, in less time."""
    scaled = scale[:, None] * K * scale
    scaled[np.diag_indices_from(scaled)] += alpha
    try:
        factor = sla.cho_factor(scaled, lower=True, overwrite_a=True)
    except sla.LinAlgError:
        raise ValueError(
            f"the input kernel's Gram matrix and alpha={alpha:g} on its diagonal are not positive "
            "definite; use a larger alpha, or another kernel."
        ) from None
    right = np.eye(len(K)) if basis is None else basis
    return scale[:, None] * sla.cho_solve(factor, right)


def exact_spectrum(K: Floats, scale: Floats) -> Spectrum:
    """Return the spectrum of all training rows, whose Gram matrix is K."""
    values, vectors = _eigen(scale[:, None] * K * scale)
    return Spectrum(scale[:, None] * vectors, np.maximum(values, 0.0), vectors)


def landmark_spectrum(K: Floats, landmarks: Any, scale: Floats) -> Spectrum:
    """Return that of features K_mm^(-1/2) k(Z, x), Z being the landmarks; K is k(X, Z)."""
    values, vectors = _eigen(K[landmarks])
    known = values > len(values) * np.finfo(float).eps * values[-1]
    known[-1] = True  # of inputs that are all zero, one coordinate, which is zero
    root = vectors[:, known] / np.sqrt(np.maximum(values[known], np.finfo(float).tiny))
    U, singular, Vt = sla.svd(scale[:, None] * (K @ root), full_matrices=False)
    return Spectrum(root @ Vt.T * singular, singular**2, U)


def _eigen(K: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, ascending, and eigenvectors of a Gram matrix of inputs."""
    values, vectors = sla.eigh(K)
    if values[0] < -TOLERANCE * len(K) * max(values[-1], 0.0):
        raise ValueError(
            f"the input kernel is indefinite: its Gram matrix has an eigenvalue {values[0]:.3g}, "
            "and a kernel has none below zero. Use another."
        )
    return values, vectors


class ScaledOutputs:
    """The training outputs' features SΦ, known by their inner products."""

    def __init__(self, kernel: OutputKernel, outputs: Outputs, scale: Floats):
        self.span = Span(kernel, outputs)
        self.scale = scale

    @property
    def factor(self) -> Floats | None:
        """SΦ itself, where the kernel has few features."""
        features = self.span.features
        return None if features is None else self.scale[:, None] * features

    def squares(self) -> Floats:
        """Return the squared norms of the rows of SΦ."""
        return self.scale**2 * self.span.kernel.diag(self.span.outputs)

    def gram_times(self, V: Floats) -> Floats:
        """Return SΦ(SΦ)ᵀV, by blocks of the Gram matrix."""
        W: Any = (self.scale[:, None] * V).T
        return self.scale[:, None] * self.span.inner(W, self.span.outputs).T

    def principal(self, n_components: int, *, square: bool) -> Floats:
        """Return orthonormal P such that PPᵀSΦ has the leading principal directions of SΦ.

        Where ``square`` says that a square matrix is too large, the kernel is evaluated anew in
        each step of the Lanczos method.
        """
        n = len(self.scale)
        if self.factor is not None:
            return sla.svd(self.factor, full_matrices=False)[0][:, :n_components]
        if n_components >= n:
            return np.eye(n)
        if square:
            gram = self.gram_times(np.eye(n))
            return sla.eigh(gram, subset_by_index=[n - n_components, n - 1])[1]
        operator = LinearOperator(
            (n, n),
            matvec=lambda v: self.gram_times(v.reshape(n, 1))[:, 0],
            matmat=self.gram_times,
            dtype=np.float64,
        )
        return eigsh(operator, k=n_components, v0=np.ones(n))[1]


def leave_one_out(
    spectrum: Spectrum, outputs: ScaledOutputs, alphas: Floats, principal: Floats | None = None
) -> Floats:
    """Return for each penalty Σ_i ω_i ‖φ(y_i) − F₋ᵢ(x_i)‖², F₋ᵢ being fitted without row i.

    The residual of a row that is left out is (SΦ − H SΦ)_i / (1 − H_ii), where H = U Λ(Λ + α)⁻¹ Uᵀ.
    Landmarks and the principal directions that predictions are confined to stay as they are.
    """
    _, values, U = spectrum
    complete = U.shape[0] == U.shape[1]  # then nothing is outside the span of U
    factor, beside = outputs.factor, 0.0
    if principal is not None:
        variance = np.einsum("ij,ij->j", principal, outputs.gram_times(principal))
        factor = principal * np.sqrt(np.maximum(variance, 0.0))
        beside = max(float(outputs.squares().sum() - variance.sum()), 0.0)
    residual_squares = (
        _squares_by_gram(outputs, U, complete)
        if factor is None
        else _squares_by_factor(factor, U, complete)
    )
    U_squares = U**2
    free = 0.0 if complete else np.maximum(1.0 - U_squares.sum(axis=1), 0.0)
    losses = []
    for alpha in alphas:
        kept = alpha / (values + alpha)  # of each coordinate in the residual
        losses.append((residual_squares(kept) / (free + U_squares @ kept) ** 2).sum() + beside)
    return np.array(losses)


def _squares_by_factor(factor: Floats, U: Floats, complete: bool) -> Callable[[Floats], Floats]:
    """Return a function of ``kept`` that gives the squared norms of the residuals' rows."""
    coordinates = U.T @ factor
    outside = 0.0 if complete else factor - U @ coordinates
    return lambda kept: ((outside + (U * kept) @ coordinates) ** 2).sum(axis=1)


def _squares_by_gram(
    outputs: ScaledOutputs, U: Floats, complete: bool
) -> Callable[[Floats], Floats]:
    """Return the same from inner products alone."""
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
