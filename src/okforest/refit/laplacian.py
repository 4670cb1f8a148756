"""Graph Laplacians, which measure how much predictions differ between similar inputs."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_array

from okforest._utils.arrays import check_sparse

CHOICES = "'knn', a matrix, a function of X that returns one, or None"
SMALL = 1000  # rows up to which eigenvalues are computed exactly
BLOCK_PRODUCTS = 2**30  # multiplications in one search, which cannot be interrupted


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
    check_sparse(X, "X")
    X = check_array(X, accept_sparse="csr", input_name="X")
    n = X.shape[0]
    if not 1 <= n_neighbors < n:
        raise ValueError(
            f"n_neighbors={n_neighbors}; {n} rows have at most {n - 1} neighbours each."
        )
    values: Any = X.data if hasattr(X, "tocsr") else X
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    graph = _neighbor_graph(X / size, n_neighbors)
    # With nearest neighbours at the same place, the width does not matter.
    width = (float(graph.data.mean()) if sigma is None else float(sigma) / size) or 1.0
    graph.data = np.exp(-0.5 * (graph.data / width) ** 2)
    W = graph.maximum(sp.csr_array(graph.T))
    root = 1.0 / np.sqrt(np.maximum(np.asarray(W.sum(axis=1)).ravel(), 1e-300))
    scaled = sp.diags_array(root) @ W @ sp.diags_array(root)
    return sp.csr_array(sp.eye_array(n) - scaled)


def _neighbor_graph(X: Any, n_neighbors: int) -> sp.csr_array:
    """Return the distances to the nearest other rows, searched for some rows at a time."""
    n, p = X.shape
    index = NearestNeighbors(n_neighbors=n_neighbors + 1).fit(X)
    size = max(1, BLOCK_PRODUCTS // (n * p))
    distances, neighbors = np.empty((n, n_neighbors)), np.empty((n, n_neighbors), dtype=np.intp)
    for begin in range(0, n, size):
        found, places = index.kneighbors(X[begin : begin + size])
        other = places != np.arange(begin, begin + len(places))[:, None]
        other[other.all(axis=1), 0] = False  # among many equal rows, the row may not find itself
        distances[begin : begin + size] = found[other].reshape(-1, n_neighbors)
        neighbors[begin : begin + size] = places[other].reshape(-1, n_neighbors)
    starts = np.arange(0, n * n_neighbors + 1, n_neighbors)
    return sp.csr_array((distances.ravel(), neighbors.ravel(), starts), shape=(n, n))


def check_laplacian(laplacian: Any, X: Any, n: int, n_neighbors: int = 7) -> sp.csr_array | None:
    """Return the Laplacian of n rows from a name, a matrix, a function of X, or None."""
    if laplacian is None:
        return None
    if isinstance(laplacian, str):
        if laplacian != "knn":
            raise ValueError(f"laplacian={laplacian!r}; use {CHOICES}.")
        return _knn(X, min(n_neighbors, n - 1))
    given = laplacian(X) if callable(laplacian) else laplacian
    check_sparse(given, "laplacian")
    array: Any = given if sp.issparse(given) else np.asarray(given)
    if len(array.shape) != 2 or array.dtype.kind not in "biuf":
        what = "the function of laplacian returned" if callable(laplacian) else "laplacian is"
        kind = f"an array of shape {array.shape} and type {array.dtype}"
        raise ValueError(f"{what} {kind}, not a matrix of numbers; use {CHOICES}.")
    matrix: Any = sp.csr_array(array, dtype=np.float64)
    if matrix.shape != (n, n):
        raise ValueError(
            f"laplacian has shape {matrix.shape}; expected ({n}, {n}), a row and a column for each "
            "row of X, labelled or not. In cross-validation, pass a function of X that returns it."
        )
    if not np.isfinite(matrix.data).all():
        raise ValueError("laplacian has entries that are NaN or infinite.")
    size = float(np.abs(matrix.data).max(initial=0.0))
    if abs(matrix - matrix.T).max() > 1e-8 * size:
        raise ValueError("laplacian is not symmetric; pass (A + A.T) / 2.")
    smallest = _smallest_eigenvalue(matrix, size)
    if smallest < -1e-6 * size:
        raise ValueError(
            f"laplacian has the negative eigenvalue {smallest:.3g}, so the programme has no "
            "minimum; pass a positive semi-definite matrix, such as D - W for weights W ≥ 0."
        )
    return matrix


def _knn(X: Any, n_neighbors: int) -> sp.csr_array:
    try:
        return knn_laplacian(X, n_neighbors)
    except (TypeError, ValueError) as error:
        reason = error if isinstance(error, ValueError) else "it has categories of text"
        raise ValueError(
            f"laplacian='knn' measures distances, which needs complete numbers in X ({reason}). "
            "Impute and encode X, or pass laplacian=None, a matrix, or a function of X, for "
            "example one that calls okforest.refit.knn_laplacian with some columns."
        ) from error


def _smallest_eigenvalue(matrix: sp.csr_array, size: float) -> float:
    if matrix.shape[0] <= SMALL:
        return float(np.linalg.eigvalsh(matrix.toarray())[0])
    off = np.asarray(abs(matrix).sum(axis=1)).ravel() - np.abs(matrix.diagonal())
    if (matrix.diagonal() >= off - 1e-12 * size).all():  # Gershgorin
        return 0.0
    start = np.ones(matrix.shape[0])
    try:
        values = eigsh(matrix, k=1, which="SA", tol=1e-4, v0=start, maxiter=2000)[0]
    except ArpackNoConvergence as error:
        values = error.eigenvalues
    return float(np.min(np.real(values), initial=0.0))
