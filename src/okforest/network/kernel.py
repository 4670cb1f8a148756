"""Completion of a kernel: its values for new objects, from inputs."""

from typing import Any, Literal

import numpy as np

from okforest._typing import Floats
from okforest.kernels import Precomputed
from okforest.metrics.losses import unwrap
from okforest.network._models import new_model


def complete_kernel(
    K_known: Any,
    X_known: Any,
    X_new: Any,
    estimator: Any = None,
    scheme: Literal["convolve", "average"] = "convolve",
) -> Floats:
    """Complete a Gram matrix that is known on some objects, from inputs of all.

    Known objects stay what they are, φ_i, and new ones are F(x), predicted: k̂(i, x) = ⟨φ_i, F(x)⟩
    and k̂(x, z) = ⟨F(x), F(z)⟩. The result is positive semi-definite if K_known is.

    Parameters
    ----------
    K_known : array-like of shape (n, n)
        The kernel among known objects.
    X_known : array-like, frame or sparse matrix of shape (n, p)
        Their inputs.
    X_new : array-like, frame or sparse matrix of shape (m, p)
        Inputs of new objects.
    estimator : estimator, optional
        A model of okforest, or a pipeline that ends with one; its ``kernel`` is set. By default
        ``OKExtraTrees(100, max_features=0.25, min_samples_split=5)``.
    scheme : {"convolve", "average"}, default="convolve"
        How trees predict the kernel among new objects: see
        :meth:`okforest.OKExtraTrees.predict_kernel`.

    Returns
    -------
    K : ndarray of shape (n + m, n + m)
        The kernel among all objects, known ones first.

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
    K = np.asarray(K_known)
    model = new_model(estimator, Precomputed(K), scheme).fit(X_known, np.arange(len(K)))
    final, X_final = unwrap(model, X_new)
    across = final._weights(X_final) @ K
    new = final.predict_kernel(X_final, scheme=scheme)
    return np.block([[K, across.T], [across, new]])
