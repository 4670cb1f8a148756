"""The refit of a CensoredForest: its programme, handed to the solver that suits it."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._progress import progress_of
from okforest._typing import Floats
from okforest.refit._adjustments import Adjustments
from okforest.refit._censored_growth import GrownForest
from okforest.refit._convex import Programme, solve
from okforest.refit._leaves import leaves_of
from okforest.refit._newton import IntervalLoss, minimise
from okforest.refit._points import gather_constraints
from okforest.refit._solution import Solution
from okforest.refit.laplacian import check_laplacian


def refit_intervals(
    model: Any,
    X: Any,
    grown: GrownForest,
    C_leaves: float | None = None,
    start: Floats | None = None,
) -> Solution:
    """Solve the programme of a model, for another penalty or from a first guess if given."""
    C = model.C_leaves if C_leaves is None else C_leaves
    A, L, f0 = grown.expansion.means, grown.L, grown.L @ grown.values
    centre = float(f0.mean())
    laplacian = check_laplacian(model.laplacian, X, L.shape[0], model.n_neighbors)
    smoothness = None if laplacian is None else sp.csr_array(model.C_laplacian * laplacian)
    weight = grown.row_weight * np.where(grown.exact, model.C_exact, model.C_censored)
    if model.norm == "l2" and not len(model.priors):
        B = Adjustments.create(L, A, model.adjust, C, model.C_outputs)
        loss = IntervalLoss(grown.lower, grown.upper, weight, smoothness, centre)
        progress = progress_of(0, model.max_iter, model.verbose, None, label="refit steps")
        try:
            return minimise(
                B,
                f0,
                loss,
                tol=model.tol,
                max_iter=model.max_iter,
                start=start,
                progress=progress,
            )
        finally:
            progress.close()

    def leaf_rows(points: Any) -> sp.csr_array:
        return grown.expansion.rows(leaves_of(grown.model, points))

    rows, constraints = gather_constraints(model.priors, X, L, leaf_rows, scale=grown.scale.place)
    programme = Programme(
        B=Adjustments.create(rows, A, model.adjust, C, model.C_outputs),
        f0=(rows @ grown.values)[:, None],
        lower=grown.lower[:, None],
        upper=grown.upper[:, None],
        weight=weight[:, None],
        smoothness=smoothness,
        centre=centre,
        constraints=constraints,
        norm=model.norm,
    )
    return solve(programme, tol=model.tol, max_iter=model.max_iter, verbose=model.verbose)
