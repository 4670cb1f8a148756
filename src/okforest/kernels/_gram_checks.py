"""Checks of matrices that okforest did not compute itself."""

import numpy as np
import scipy.linalg as sla

from okforest._typing import Floats

# Relative to the largest entry: smaller asymmetries and negative eigenvalues are rounding errors.
TOLERANCE = 1e-8
# Larger matrices are tested on an evenly spaced principal block of this size.
LARGEST_TESTED = 2048


def check_gram(K: Floats, name: str) -> None:
    """Raise a ValueError unless K is finite, symmetric and positive semi-definite."""
    check_symmetric(K, name)
    _check_pairs(K, name)
    if len(K) > LARGEST_TESTED:
        some = np.linspace(0, len(K) - 1, LARGEST_TESTED).astype(int)
        K = K[np.ix_(some, some)]
    scale = np.abs(K).max()
    try:
        # Succeeds if and only if no eigenvalue is below minus the shift.
        sla.cholesky(K + len(K) * TOLERANCE * max(scale, 1e-300) * np.eye(len(K)))
    except sla.LinAlgError:
        smallest = sla.eigvalsh(K, subset_by_index=[0, 0])[0]
        raise ValueError(
            f"{name} is indefinite: its smallest eigenvalue is {smallest:.3g}, but a kernel is "
            f"positive semi-definite. Add {-smallest:.3g} to the diagonal, or set negative "
            "eigenvalues to zero."
        ) from None


def _check_pairs(K: Floats, name: str) -> None:
    """Check every 2 × 2 principal block: k_ii ≥ 0 and k_ij² ≤ k_ii k_jj."""
    diag = np.diagonal(K)
    tolerance = TOLERANCE * max(float(np.abs(diag).max(initial=0.0)), 1e-300)
    if diag.min(initial=0.0) < -tolerance:
        i = int(diag.argmin())
        raise ValueError(f"{name} is indefinite: entry ({i}, {i}) is {diag[i]:.3g}, below zero.")
    norm = np.sqrt(np.maximum(diag, 0.0))
    for i in range(0, len(K), 256):
        excess = np.abs(K[i : i + 256]) - np.outer(norm[i : i + 256], norm)
        if excess.max(initial=0.0) > tolerance:
            row, column = np.unravel_index(excess.argmax(), excess.shape)
            raise ValueError(
                f"{name} is indefinite: entry ({i + row}, {column}) is too large for entries "
                f"({i + row}, {i + row}) and ({column}, {column}); a kernel satisfies "
                "k(a, b)² ≤ k(a, a) k(b, b)."
            )


def check_symmetric(K: Floats, name: str, symbol: str = "K") -> None:
    """Raise a ValueError, which calls K by its symbol, unless it is finite and symmetric."""
    scale = 0.0
    for i in range(0, len(K), 256):  # by blocks, to avoid a second N × N array
        block = K[i : i + 256].astype(float)
        if not np.isfinite(block).all():
            raise ValueError(f"{name} has NaN or infinite entries; all entries must be finite.")
        scale = max(scale, float(np.abs(block).max(initial=0.0)))
    for i in range(0, len(K), 256):
        difference = np.abs(K[i : i + 256].astype(float) - K[:, i : i + 256].T)
        if difference.max(initial=0.0) > TOLERANCE * scale:
            row, column = np.unravel_index(difference.argmax(), difference.shape)
            raise ValueError(
                f"{name} is asymmetric: entries ({i + row}, {column}) and ({column}, {i + row}) "
                f"differ by {difference[row, column]:.3g}. If it should be symmetric, "
                f"use ({symbol} + {symbol}.T) / 2."
            )
