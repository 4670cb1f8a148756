"""Priors at the points of an ensemble: their leaves, and constraints on all rows together."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats
from okforest.refit.convex import Constraint
from okforest.refit.points import check_points
from okforest.refit.priors import Prior

LeafRows = Callable[[Any], sp.csr_array]


def gather_constraints(
    priors: Sequence[Prior],
    X: Any,
    L: sp.csr_array,
    leaf_rows: LeafRows,
    n_outputs: int = 1,
    scale: Callable[[Floats], Floats] = np.asarray,
) -> tuple[sp.csr_array, list[Constraint]]:
    """Return the leaves of training rows and of the points of priors, and the constraints on them.

    ``leaf_rows(X)`` returns the leaves of inputs.
    """
    rows, found = [L], []
    for prior in priors:
        if prior.points is not None:
            check_points(prior.points, X, f"the points of {type(prior).__name__} have")
        found.append(prior.constraints(X, n_outputs, scale))
        if found[-1].points is not None:
            rows.append(leaf_rows(found[-1].points))
    n_all = sum(part.shape[0] for part in rows)
    constraints, end = [], L.shape[0]
    for prior, own in zip(priors, found, strict=True):
        size = own.matrix.shape[1] // n_outputs
        first = 0 if own.points is None else end
        end += 0 if own.points is None else size
        before = sp.csr_array((own.matrix.shape[0], first * n_outputs))
        after = sp.csr_array((own.matrix.shape[0], (n_all - first - size) * n_outputs))
        matrix = sp.csr_array(sp.hstack([before, own.matrix, after]))
        constraints.append(Constraint(str(prior), matrix, own.lower, own.upper))
    return sp.csr_array(sp.vstack(rows)), constraints


def check_priors(priors: Any) -> Sequence[Prior]:
    """Return priors, or raise a TypeError if something else was passed."""
    if isinstance(priors, Prior) or not isinstance(priors, Sequence):
        raise TypeError(f"priors is of type {type(priors).__name__}; pass a list of priors.")
    for prior in priors:
        if not isinstance(prior, Prior):
            raise TypeError(
                f"priors holds {prior!r}; pass objects of okforest.refit, such as Monotone(0)."
            )
    return priors
