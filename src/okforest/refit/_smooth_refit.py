"""The refit of a SemiSupervisedForest: its programme, handed to the solver that suits it."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._progress import progress_of
from okforest._typing import Floats
from okforest.kernels import Linear
from okforest.refit._adjustments import Adjustments
from okforest.refit._convex import Programme, solve
from okforest.refit._labelled_growth import LabelledForest, base_weights, completed_means
from okforest.refit._leaves import leaves_of
from okforest.refit._manifold import solve_smooth
from okforest.refit._points import gather_constraints
from okforest.refit._solution import Solution
from okforest.refit.laplacian import check_laplacian


def refit_labelled(
    model: Any, X: Any, grown: LabelledForest, kernel: Any, features: Floats
) -> tuple[Solution, Floats]:
    """Return the solution for a model, and the adjustments of leaves as rows of features."""
    L, rows, n = grown.L, np.flatnonzero(grown.labelled), grown.L.shape[0]
    if len(model.priors):
        _check_for_priors(model, kernel)
    laplacian = check_laplacian(model.laplacian, X, n, model.n_neighbors)
    smoothness = None if laplacian is None else sp.csr_array(model.C * laplacian)
    centre = np.average(features, axis=0, weights=grown.weight[rows])
    targets = np.zeros((n, features.shape[1]))
    targets[rows] = features
    if model.adjust == "outputs":
        known, A = completed_means(grown)
        guess = base_weights(sp.csr_array(L[~grown.labelled]), grown.means) @ features
        base = np.asarray(known @ features + A @ guess)
        B, f0 = Adjustments(L, A, None, model.C_outputs), L @ base
    else:
        base = np.zeros((grown.expansion.n_leaves, features.shape[1]))
        B = Adjustments.create(L, grown.means, "leaves", _leaf_penalty(model), model.C_outputs)
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
    if isinstance(model.C_leaves, str):
        return 100.0 if len(model.priors) else 0.01
    return float(model.C_leaves)


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
        B=Adjustments.create(L, grown.means, "leaves", _leaf_penalty(model), model.C_outputs),
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
