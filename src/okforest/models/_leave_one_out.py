"""The leave-one-out loss of kernel ridge regression, in closed form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as sla
from scipy.sparse.linalg import LinearOperator, eigsh

from okforest._typing import Floats, Outputs
from okforest.kernels import OutputKernel
from okforest.models._spectrum import ScaledRows, Spectrum
from okforest.weights import Span


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

        With an intercept they are those of the outputs around their mean. None means all. Unless
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
