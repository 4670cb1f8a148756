"""Graph Laplacians, which measure how much predictions differ between similar inputs."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.validation import check_array

SMALL = 1000  # rows up to which eigenvalues are computed exactly


def knn_laplacian(X: Any, n_neighbors: int = 7, sigma: float | None = None) -> sp.csr_array:
    """Return the normalised Laplacian of the graph of nearest neighbours.

    Two inputs are linked if one is among the nearest neighbours of the other, with the weight
    exp(−d² / 2σ²) of their distance d. The Laplacian is I − D^(−1/2) W D^(−1/2), with the weights W
    and their sums D.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Numbers, on comparable scales.
    n_neighbors : int, default=7
        Number of neighbours; fewer, if classes are small.
    sigma : float, optional
        The width; by default the mean distance to the neighbours.

    Returns
    -------
    laplacian : csr_array of shape (n, n)
        Symmetric and positive semi-definite.

    Examples
    --------
    >>> from okforest.refit import knn_laplacian
    >>> knn_laplacian([[0.0], [1.0], [5.0]], n_neighbors=1).toarray().round(2)
    array([[ 1.  , -0.93,  0.  ],
           [-0.93,  1.  , -0.36],
           [ 0.  , -0.36,  1.  ]])
    """
    X = check_array(X, accept_sparse="csr", input_name="X")
    n = X.shape[0]
    if not 1 <= n_neighbors < n:
        raise ValueError(
            f"n_neighbors={n_neighbors}; {n} rows have at most {n - 1} neighbours each."
        )
    graph = sp.csr_array(kneighbors_graph(X, n_neighbors, mode="distance"))
    width = float(graph.data.mean()) if sigma is None else float(sigma)
    graph.data = np.exp(-(graph.data**2) / (2.0 * max(width, 1e-300) ** 2))
    W = graph.maximum(sp.csr_array(graph.T))
    root = 1.0 / np.sqrt(np.maximum(np.asarray(W.sum(axis=1)).ravel(), 1e-300))
    scaled = sp.diags_array(root) @ W @ sp.diags_array(root)
    return sp.csr_array(sp.eye_array(n) - scaled)


def check_laplacian(laplacian: Any, X: Any, n: int) -> sp.csr_array | None:
    """Return the Laplacian of n rows from a name, a matrix, a function of X, or None."""
    if laplacian is None:
        return None
    if isinstance(laplacian, str):
        if laplacian != "knn":
            raise ValueError(
                f"laplacian={laplacian!r}; use 'knn', a matrix, a function of X that returns one, "
                "or None."
            )
        return knn_laplacian(X, min(7, n - 1))
    given = laplacian(X) if callable(laplacian) else laplacian
    matrix = sp.csr_array(given, dtype=np.float64)
    if matrix.shape != (n, n):
        raise ValueError(
            f"laplacian has shape {matrix.shape}; expected ({n}, {n}), a row and a column for each "
            "row of X, labelled or not."
        )
    if not np.isfinite(matrix.data).all():
        raise ValueError("laplacian has entries that are NaN or infinite.")
    size = float(np.abs(matrix.data).max(initial=0.0))
    if abs(matrix - matrix.T).max() > 1e-8 * size:
        raise ValueError("laplacian is not symmetric; pass (A + A.T) / 2.")
    smallest = _smallest_eigenvalue(matrix)
    if smallest < -1e-6 * size:
        raise ValueError(
            f"laplacian has the negative eigenvalue {smallest:.3g}, so the programme has no "
            "minimum; pass a positive semi-definite matrix, such as D - W for weights W ≥ 0."
        )
    return matrix


def _smallest_eigenvalue(matrix: sp.csr_array) -> float:
    if matrix.shape[0] <= SMALL:
        return float(np.linalg.eigvalsh(matrix.toarray())[0])
    off = np.asarray(abs(matrix).sum(axis=1)).ravel() - np.abs(matrix.diagonal())
    if (matrix.diagonal() >= off - 1e-12).all():  # Gershgorin
        return 0.0
    start = np.ones(matrix.shape[0])
    try:
        values = eigsh(matrix, k=1, which="SA", tol=1e-4, v0=start, maxiter=2000)[0]
    except ArpackNoConvergence as error:
        values = error.eigenvalues
    return float(np.min(np.real(values), initial=0.0))
