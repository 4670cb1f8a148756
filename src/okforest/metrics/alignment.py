"""How similar two kernels are on the same rows."""

from typing import Any

import numpy as np

from okforest._typing import Floats


def kernel_alignment(K: Any, L: Any) -> float:
    """Return the centred alignment of two Gram matrices: the cosine of the angle between them.

    Of two output kernels, the one that is better aligned with a kernel of the inputs is easier to
    learn from them. This needs no fit and no decoding, and is a filter for many kernels; it does
    not see what a loss of your own would, so choose between the best by cross-validation.

    Parameters
    ----------
    K, L : array-like of shape (n, n)
        Gram matrices of two kernels on the same n rows.

    Returns
    -------
    alignment : float
        ⟨K, L⟩ / (‖K‖ ‖L‖) of the centred matrices: 1 if one is a multiple of the other, 0 if they
        have nothing in common; 0 also for the kernel of a constant.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh, "Algorithms for learning kernels based on centered
    alignment", JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import RBF, Dirac
    >>> from okforest.metrics import kernel_alignment
    >>> x = np.array([0.0, 0.1, 5.0, 5.1])
    >>> round(kernel_alignment(RBF(1.0)(x), Dirac()(np.array(["a", "a", "b", "b"]))), 3)
    1.0
    >>> abs(kernel_alignment(RBF(1.0)(x), Dirac()(np.array(["a", "b", "a", "b"])))) < 0.01
    True
    """
    first, second = _centred(K, "K"), _centred(L, "L")
    if first.shape != second.shape:
        raise ValueError(
            f"K has shape {first.shape} and L {second.shape}; pass the Gram matrices of two "
            "kernels on the same rows."
        )
    norms = np.linalg.norm(first) * np.linalg.norm(second)
    return float(np.vdot(first, second) / norms) if norms > 0 else 0.0


def _centred(K: Any, name: str) -> Floats:
    matrix: Floats = np.asarray(K, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} has shape {matrix.shape}; a Gram matrix is square.")
    means = matrix.mean(axis=0)
    centred = matrix - means - matrix.mean(axis=1)[:, None] + means.mean()
    # What rounding leaves of a constant is not a kernel.
    size = np.abs(matrix).max() * len(matrix)
    return centred if np.linalg.norm(centred) > 1e-13 * size else np.zeros_like(centred)
