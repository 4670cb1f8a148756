"""What a refit may change: values of leaves, outputs of training rows, or both.

The adjustments v are scaled, so that the penalty C1‖ΔY‖² + C2‖ΔZ‖² is ‖v‖², and predictions change
by B v with B = (K/√C1, L/√C2).
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats

Adjust = Literal["leaves", "outputs", "both"]


@dataclass(frozen=True)
class Adjustments:
    """The operator B, as products with sparse matrices; K itself is never made.

    Parameters
    ----------
    L : csr_array of shape (n, n_leaves)
        Leaves of the rows.
    A : csr_array of shape (n_leaves, n_outputs)
        Means of leaves.
    C_leaves, C_outputs : float or None
        The penalties C2 and C1; None if this part is not adjusted.
    """

    L: sp.csr_array
    A: sp.csr_array
    C_leaves: float | None
    C_outputs: float | None

    @staticmethod
    def create(
        L: sp.csr_array, A: sp.csr_array, adjust: Adjust, C_leaves: float, C_outputs: float
    ) -> "Adjustments":
        """Return the operator for the parameters of an estimator; C_leaves is M·C2."""
        n_trees = L.indptr[1] - L.indptr[0]
        return Adjustments(
            L,
            A,
            C_leaves / n_trees if adjust != "outputs" else None,
            C_outputs if adjust != "leaves" else None,
        )

    @property
    def size(self) -> int:
        """The number of adjustments."""
        return self._n_outputs + (self.A.shape[0] if self.C_leaves is not None else 0)

    @property
    def _n_outputs(self) -> int:
        return self.A.shape[1] if self.C_outputs is not None else 0

    def leaf_values(self, v: Floats) -> Floats:
        """Return the change of the leaf values, A ΔY + ΔZ."""
        values = np.zeros((self.A.shape[0], *v.shape[1:]))
        if self.C_outputs is not None:
            values += self.A @ (v[: self._n_outputs] / sqrt(self.C_outputs))
        if self.C_leaves is not None:
            values += v[self._n_outputs :] / sqrt(self.C_leaves)
        return values

    def outputs(self, v: Floats) -> Floats:
        """Return the change of the outputs, ΔY."""
        if self.C_outputs is None:
            return np.zeros((self.A.shape[1], *v.shape[1:]))
        return v[: self._n_outputs] / sqrt(self.C_outputs)

    def forward(self, v: Floats) -> Floats:
        """Return B v."""
        return np.asarray(self.L @ self.leaf_values(v))

    def adjoint(self, u: Floats) -> Floats:
        """Return Bᵀ u."""
        on_leaves = self.L.T @ u
        parts = []
        if self.C_outputs is not None:
            parts.append((self.A.T @ on_leaves) / sqrt(self.C_outputs))
        if self.C_leaves is not None:
            parts.append(on_leaves / sqrt(self.C_leaves))
        return np.concatenate(parts)

    def matrix(self) -> sp.csr_array:
        """Return B as a sparse matrix, for general solvers."""
        parts = []
        if self.C_outputs is not None:
            parts.append((self.L @ self.A) / sqrt(self.C_outputs))
        if self.C_leaves is not None:
            parts.append(self.L / sqrt(self.C_leaves))
        return sp.csr_array(sp.hstack(parts))

    def root_penalties(self) -> Floats:
        """Return √C of every adjustment: the norm C‖Δ‖₁ is √C times the norm of v."""
        parts = []
        if self.C_outputs is not None:
            parts.append(np.full(self._n_outputs, sqrt(self.C_outputs)))
        if self.C_leaves is not None:
            parts.append(np.full(self.A.shape[0], sqrt(self.C_leaves)))
        return np.concatenate(parts)
