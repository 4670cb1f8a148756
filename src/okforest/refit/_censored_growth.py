"""Growing a forest for censored outputs: on which rows, and with which outputs."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from okforest._censored import is_exact, is_unlabelled
from okforest._compat import rows_of
from okforest._kaplan_meier import estimate_survival
from okforest._typing import Booleans, Floats, Ints
from okforest._validation import check_weights
from okforest.models._tree_model import TreeModel
from okforest.refit._leaves import LeafExpansion, training_leaves, warn_if_full_grown
from okforest.refit._scales import Scale, ScaleName

Structure = Literal["exact", "all", "km"]


@dataclass(frozen=True)
class GrownForest:
    """A forest before its refit, with the training rows as leaves and intervals.

    Parameters
    ----------
    model : TreeModel
        The forest, grown on outputs on the scale.
    scale : Scale
        The scale.
    expansion : LeafExpansion
        Its leaves.
    leaves : ndarray of shape (n, n_trees)
        Leaves of all rows, as node numbers.
    L : csr_array of shape (n, n_leaves)
        The same, as a matrix.
    values : ndarray of shape (n_leaves,)
        The means of leaves.
    lower, upper : ndarray of shape (n,)
        Intervals on the scale.
    exact : ndarray of shape (n,), bool
        Which outputs are known exactly.
    row_weight : ndarray of shape (n,)
        Weights of the rows.
    """

    model: TreeModel
    scale: Scale
    expansion: LeafExpansion
    leaves: Ints
    L: sp.csr_array
    values: Floats
    lower: Floats
    upper: Floats
    exact: Booleans
    row_weight: Floats


def grow_censored(
    forest: TreeModel,
    X: Any,
    intervals: Floats,
    scale_name: ScaleName,
    structure: Structure,
    sample_weight: Any,
) -> GrownForest:
    """Grow the forest, and express all rows by its leaves."""
    weight = check_weights(sample_weight, intervals)
    used = weight > 0
    scale = Scale.learn(scale_name, intervals[used])
    scaled = scale.forward(intervals)
    rows, targets = _targets(intervals, scale, structure, used)
    own = None if sample_weight is None else weight[rows]
    forest.fit(rows_of(X, np.flatnonzero(rows)), targets[rows], own)
    effect = (
        "the forest reproduces the outputs that it was grown on, and the refit has little to learn"
    )
    warn_if_full_grown(forest.trees_, int(rows.sum()), effect)
    expansion, leaves = LeafExpansion(forest.trees_), training_leaves(forest, X, rows)
    return GrownForest(
        model=forest,
        scale=scale,
        expansion=expansion,
        leaves=leaves,
        L=expansion.rows(leaves),
        values=expansion.means @ targets[rows],
        lower=scaled[:, 0],
        upper=scaled[:, 1],
        exact=is_exact(intervals),
        row_weight=weight,
    )


def _targets(
    intervals: Floats, scale: Scale, structure: Structure, used: Booleans
) -> tuple[Booleans, Floats]:
    """Return the rows that trees are grown on, and their outputs on the scale."""
    exact = is_exact(intervals) & used
    rows = exact.copy() if structure == "exact" else ~is_unlabelled(intervals) & used
    if rows.sum() < 2:
        raise ValueError(
            f"y has {int(exact.sum())} exact outputs among {int(used.sum())} of positive weight; "
            f"structure={structure!r} grows trees on {int(rows.sum())} rows, and needs at least 2. "
            "Use structure='km' or 'all' to grow them on censored rows, too."
        )
    targets = _representatives(scale.forward(intervals))
    if structure == "km":
        censored = rows & ~exact
        targets[censored] = _conditional_means(intervals[censored], intervals[rows], scale)
    return rows, targets


def _representatives(scaled: Floats) -> Floats:
    """Return the middle of finite intervals, and the finite bound of others."""
    lower, upper = scaled.T
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (lower + upper)
    middle = np.where(np.isfinite(lower), np.where(np.isfinite(upper), middle, lower), upper)
    return np.where(np.isfinite(middle), middle, 0.0)


def _conditional_means(censored: Floats, intervals: Floats, scale: Scale) -> Floats:
    """Return the mean, on the scale, of the survival function of all within each interval."""
    estimate = estimate_survival(intervals)
    last = max(estimate.times[-1], intervals[np.isfinite(intervals)].max())
    times = np.append(estimate.times, last)
    mass = -np.diff(np.concatenate([[1.0], estimate.survival, [0.0]]))
    within = (times > censored[:, :1]) & (times <= np.maximum(censored[:, 1:], censored[:, :1]))
    total = (within * mass).sum(axis=1)
    values = scale.forward(times)
    means = np.divide((within * mass) @ values, total, where=total > 0, out=np.zeros(len(total)))
    return np.where(total > 0, means, _representatives(scale.forward(censored)))
