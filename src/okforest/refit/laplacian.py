"""Predictions that are smooth on a graph: its Laplacian, and the refit of a SemiSupervisedForest.

The Laplacian measures how much predictions differ between similar inputs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_array

from okforest._utils.arrays import Booleans, Floats, Progress, check_sparse
from okforest._utils.compat import rows_of
from okforest._utils.inputs import check_weights
from okforest._utils.progress import progress_of
from okforest.kernels import Linear
from okforest.models.tree_model import TreeModel
from okforest.refit.convex import Programme, Solution, gather_constraints, solve
from okforest.refit.leaves import Adjustments, LeafExpansion, leaves_of
from okforest.weights import ProductWeights, Span

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
    matrix: Any = laplacian(X) if callable(laplacian) else laplacian
    check_sparse(matrix, "laplacian")
    array: Any = matrix if sp.issparse(matrix) else np.asarray(matrix)
    if len(array.shape) != 2 or array.dtype.kind not in "biuf":
        what = "the function of laplacian returned" if callable(laplacian) else "laplacian is"
        kind = f"an array of shape {array.shape} and type {array.dtype}"
        raise ValueError(f"{what} {kind}, not a matrix of numbers; use {CHOICES}.")
    matrix = sp.csr_array(array, dtype=np.float64)
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


@dataclass(frozen=True)
class LabelledForest:
    """A forest before its refit, with the training rows as leaves.

    Parameters
    ----------
    model : TreeModel
        The forest.
    expansion : LeafExpansion
        Its leaves.
    L : csr_array of shape (n, n_leaves)
        Leaves of all rows.
    means : csr_array of shape (n_leaves, n_labelled)
        Weights of the labelled outputs in the means of leaves.
    labelled : ndarray of shape (n,), bool
        Which rows have an output.
    weight : ndarray of shape (n,)
        Weights of the losses of rows; zero without an output.
    """

    model: TreeModel
    expansion: LeafExpansion
    L: sp.csr_array
    means: sp.csr_array
    labelled: Booleans
    weight: Floats


def grow_labelled(
    forest: TreeModel, X: Any, known: Any, labelled: Booleans, sample_weight: Any
) -> LabelledForest:
    """Grow the forest on the labelled rows, or on all if it does not use outputs."""
    weight = check_weights(sample_weight, labelled)
    rows = np.flatnonzero(labelled)
    if forest._uses_outputs:
        forest.fit(rows_of(X, rows), known, None if sample_weight is None else weight[rows])
    else:
        forest.fit(X, None)
    expansion = LeafExpansion(forest.trees_)
    L = expansion.rows(leaves_of(forest, X))
    if forest._uses_outputs:
        means = expansion.means
    else:
        means = expansion.means_over(sp.csr_array(L[rows]), weight[rows])
    return LabelledForest(forest, expansion, L, means, labelled, weight * labelled)


def base_weights(L: sp.csr_array, means: sp.csr_array) -> ProductWeights:
    """Return the forest's weights, renormalised where leaves have no labelled rows.

    A row without any labelled row in its leaves has equal weights.
    """
    sums = L @ np.asarray(means.sum(axis=1)).ravel()
    empty = sums <= 1e-12
    L = sp.csr_array(sp.diags_array(np.where(empty, 0.0, 1.0 / np.where(empty, 1.0, sums))) @ L)
    if empty.any():  # one more leaf, which holds all labelled rows
        n_labelled = means.shape[1]
        everything = sp.csr_array(np.full((1, n_labelled), 1.0 / n_labelled))
        L = sp.csr_array(sp.hstack([L, sp.csr_array(empty[:, None].astype(np.float64))]))
        means = sp.csr_array(sp.vstack([means, everything]))
    return ProductWeights(L, means)


def completed_means(grown: LabelledForest) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the operators from labelled and from unlabelled outputs to means over both in leaves.

    Labelled rows count as in the forest, by bootstrap samples and weights; an unlabelled row counts
    as an average one.
    """
    trees, rows = grown.expansion.trees, np.flatnonzero(grown.labelled)
    members = sp.csc_array((grown.L > 0).T, dtype=np.float64)
    others = sp.csr_array(members[:, ~grown.labelled])
    if grown.model._uses_outputs:
        known, row_weight = trees.weight[grown.expansion.nodes], trees.row_weight
    else:
        known, row_weight = members[:, rows] @ grown.weight[rows], grown.weight[rows]
    unit = float(row_weight[row_weight > 0].mean())
    total = np.maximum(known + unit * np.asarray(others.sum(axis=1)).ravel(), 1e-300)
    return (
        sp.csr_array(sp.diags_array(known / total) @ grown.means),
        sp.csr_array(sp.diags_array(unit / total) @ others),
    )


def solution_columns(span: Span) -> tuple[Floats, Floats]:
    """Return the columns to solve for, and the weights of outputs that stand for each.

    With explicit features Φ these are Φ and its pseudo-inverse: every solution is a combination of
    rows of Φ. Otherwise they are indicators of the outputs.
    """
    if span.features is None:
        return np.eye(len(span)), np.eye(len(span))
    return span.features, np.asarray(np.linalg.pinv(span.features), dtype=np.float64)


DENSE = 1000  # rows up to which the system is solved directly


def solve_smooth(
    B: Adjustments,
    f0: Floats,
    targets: Floats,
    weight: Floats,
    smoothness: sp.csr_array | None,
    *,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
) -> Solution:
    """Return the adjustments, of shape (size, q) for targets (n, q)."""
    Q = sp.csr_array(sp.diags_array(weight))
    if smoothness is not None:
        Q = sp.csr_array(Q + smoothness)
    force = weight[:, None] * targets - Q @ f0
    if len(f0) <= DENSE:
        matrix = B.matrix()
        G = (matrix @ matrix.T).toarray()
        alpha = sla.solve(np.eye(len(f0)) + Q @ G, force)
        v, steps = B.adjoint(alpha), 1
    else:
        v, steps = _conjugate_gradients(B, Q, B.adjoint(force), tol, max_iter, progress)
    change = B.forward(v)
    residual = v - B.adjoint(force - Q @ change)
    scale = max(float(np.linalg.norm(B.adjoint(force))), 1e-300)
    f = f0 + change
    objective = 0.5 * float((v**2).sum() + (weight[:, None] * (f - targets) ** 2).sum())
    if smoothness is not None:
        objective += 0.5 * float((f * (smoothness @ f)).sum())
    gap = float(np.linalg.norm(residual)) / scale
    return Solution(v, objective, gap, steps, gap <= max(tol, 1e-10))


def _conjugate_gradients(
    B: Adjustments,
    Q: sp.csr_array,
    right: Floats,
    tol: float,
    max_iter: int,
    progress: Progress | None,
) -> tuple[Floats, int]:
    """Solve (I + BᵀQB) v = right, all columns side by side."""
    v = np.zeros_like(right)
    residual = right.copy()
    d = residual.copy()
    squares = (residual**2).sum(axis=0)
    target = 0.1 * tol**2 * squares.sum()
    for step in range(max_iter):
        if squares.sum() <= target:
            return v, step
        Hd = d + B.adjoint(Q @ B.forward(d))
        length = squares / np.maximum((d * Hd).sum(axis=0), 1e-300)
        v += length * d
        residual -= length * Hd
        previous, squares = squares, (residual**2).sum(axis=0)
        d = residual + squares / np.maximum(previous, 1e-300) * d
        if progress is not None:
            progress(step + 1)
    return v, max_iter


def refit_labelled(
    model: Any, X: Any, grown: LabelledForest, kernel: Any, features: Floats
) -> tuple[Solution, Floats]:
    """Return the solution for a model, and the adjustments of leaves as rows of features."""
    L, rows, n = grown.L, np.flatnonzero(grown.labelled), grown.L.shape[0]
    if len(model.priors):
        _check_for_priors(model, kernel)
    laplacian = check_laplacian(model.laplacian, X, n, model.n_neighbors)
    smoothness = None if laplacian is None else sp.csr_array(model.laplacian_penalty * laplacian)
    centre = np.average(features, axis=0, weights=grown.weight[rows])
    targets = np.zeros((n, features.shape[1]))
    targets[rows] = features
    if model.adjust == "outputs":
        known, A = completed_means(grown)
        guess = base_weights(sp.csr_array(L[~grown.labelled]), grown.means) @ features
        base = np.asarray(known @ features + A @ guess)
        B, f0 = Adjustments(L, A, None, model.output_penalty), L @ base
    else:
        base = np.zeros((grown.expansion.n_leaves, features.shape[1]))
        B = Adjustments.create(L, grown.means, "leaves", _leaf_penalty(model), model.output_penalty)
        f0 = base_weights(L, grown.means) @ features
    if len(model.priors):
        solution = _solve_with_priors(model, X, grown, features, targets, smoothness, centre)
        return solution, base + B.leaf_values(solution.v)
    progress = progress_of(0, model.max_iter, model.verbose, None, label="refit iterations")
    try:
        solution = solve_smooth(
            B,
            f0 - centre,
            targets - centre,
            grown.weight,
            smoothness,
            tol=model.tol,
            max_iter=model.max_iter,
            progress=progress,
        )
    finally:
        progress.close()
    return solution, base + B.leaf_values(solution.v)


def _leaf_penalty(model: Any) -> float:
    if isinstance(model.leaf_penalty, str):
        return 100.0 if len(model.priors) else 0.01
    return float(model.leaf_penalty)


def _check_for_priors(model: Any, kernel: Any) -> None:
    if model.adjust == "outputs":
        raise ValueError("priors need adjust='leaves'.")
    if not isinstance(kernel, Linear):
        raise ValueError(
            f"priors are about numbers, and the kernel is {type(kernel).__name__}; use an "
            "estimator with kernel='linear', such as SemiSupervisedForest(OKExtraTrees())."
        )


def _solve_with_priors(
    model: Any,
    X: Any,
    grown: LabelledForest,
    features: Floats,
    targets: Floats,
    smoothness: sp.csr_array | None,
    centre: Floats,
) -> Solution:
    def leaf_rows(points: Any) -> sp.csr_array:
        return grown.expansion.rows(leaves_of(grown.model, points))

    L, constraints = gather_constraints(model.priors, X, grown.L, leaf_rows, features.shape[1])
    known = grown.labelled[:, None]
    programme = Programme(
        B=Adjustments.create(L, grown.means, "leaves", _leaf_penalty(model), model.output_penalty),
        f0=base_weights(L, grown.means) @ features,
        lower=np.where(known, targets, -np.inf),
        upper=np.where(known, targets, np.inf),
        weight=np.broadcast_to(grown.weight[:, None], targets.shape),
        smoothness=smoothness,
        centre=centre,
        constraints=constraints,
        norm="l2",
    )
    return solve(programme, tol=model.tol, max_iter=model.max_iter, verbose=model.verbose)
