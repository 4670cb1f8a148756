"""Completion of a kernel: its values for new objects, predicted from their features."""

from typing import Any, Literal

import numpy as np

from okforest._sparse import check_sparse
from okforest._typing import Floats
from okforest.kernels import Precomputed
from okforest.metrics.losses import unwrap
from okforest.network._models import new_model, predicted_weights


def complete_kernel(
    K_known: Any,
    X_known: Any,
    X_new: Any,
    estimator: Any = None,
    scheme: Literal["convolve", "average"] = "convolve",
) -> Floats:
    """Complete a Gram matrix: predict its entries for new objects from their features.

    The values among known objects do not change. In the feature space of the kernel, a known object
    is φ_i and a new one is its prediction F(x), so that k̂(i, x) = ⟨φ_i, F(x)⟩ and
    k̂(x, z) = ⟨F(x), F(z)⟩. The result is positive semi-definite if K_known is.

    Parameters
    ----------
    K_known : array-like of shape (n, n)
        The Gram matrix of the known objects.
    X_known : array-like, frame or sparse matrix of shape (n, p)
        Features of the known objects.
    X_new : array-like, frame or sparse matrix of shape (m, p)
        Features of the new objects.
    estimator : estimator, optional
        A model of okforest, or a pipeline that ends with one; its ``kernel`` is replaced. By
        default ``OKExtraTrees(100, max_features=0.25, min_samples_split=5)``.
    scheme : {"convolve", "average"}, default="convolve"
        How trees predict the kernel between new objects: see
        :meth:`okforest.OKExtraTrees.predict_kernel`.

    Returns
    -------
    K : ndarray of shape (n + m, n + m)
        The Gram matrix of all objects, known ones first.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import complete_kernel
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> K = np.exp(-((X - X.T) ** 2))
    >>> known = np.arange(50) % 5 > 0
    >>> completed = complete_kernel(K[np.ix_(known, known)], X[known], X[~known])
    >>> bool(np.abs(completed[:40, 40:] - K[np.ix_(known, ~known)]).max() < 0.1)
    True
    """
    check_sparse(X_known, "X_known")
    check_sparse(X_new, "X_new")
    K = np.asarray(K_known)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"K_known has shape {K.shape}; pass the square Gram matrix of the known objects."
        )
    model = new_model(estimator, Precomputed(K), scheme).fit(X_known, np.arange(len(K)))
    final, X_final = unwrap(model, X_new)
    across = predicted_weights(final, X_final) @ K
    new = final.predict_kernel(X_final, scheme=scheme)
    return np.block([[K, across.T], [across, new]])
