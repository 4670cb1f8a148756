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
from okforest._warnings import warn
from okforest.models._tree_model import TreeModel
from okforest.refit._leaves import LeafExpansion, training_leaves, warn_if_full_grown
from okforest.refit._scales import Scale, ScaleName

Structure = Literal["exact", "all", "km"]

# Chosen on data sets: benchmarks/results/survival_defaults.md.
FEW_EXACT = 0.4  # below this fraction of exact outputs, trees are grown on all rows


@dataclass(frozen=True)
class GrownForest:
    """A forest before its refit, with the training rows as leaves and intervals.

    Parameters
    ----------
    model : TreeModel
        The forest, grown on outputs on the scale.
    structure : {"exact", "all", "km"}
        The rows that it was grown on.
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
    structure: Structure
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
    structure: Structure | Literal["auto"],
    sample_weight: Any,
) -> GrownForest:
    """Grow the forest, and express all rows by its leaves."""
    weight = check_weights(sample_weight, intervals)
    used = weight > 0
    scale = Scale.learn(scale_name, intervals[used])
    scaled = scale.forward(intervals)
    if structure == "auto":
        structure = _structure_for(intervals[used])
    rows, targets = _targets(intervals, scale, structure, used)
    own = None if sample_weight is None else weight[rows]
    forest.fit(rows_of(X, np.flatnonzero(rows)), targets[rows], own)
    effect = (
        "the forest reproduces the outputs that it was grown on, and the refit has little to learn"
    )
    warn_if_full_grown(forest.trees_, int(rows.sum()), effect)
    _warn_if_constant(forest, structure, intervals[used], int(rows.sum()))
    expansion, leaves = LeafExpansion(forest.trees_), training_leaves(forest, X, rows)
    return GrownForest(
        model=forest,
        structure=structure,
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


def _structure_for(intervals: Floats) -> Structure:
    """Return what "auto" stands for: few exact outputs leave too few rows to grow trees on."""
    known = ~is_unlabelled(intervals)
    return "km" if is_exact(intervals).sum() < FEW_EXACT * known.sum() else "exact"


def _warn_if_constant(
    forest: TreeModel, structure: Structure, intervals: Floats, n_grown: int
) -> None:
    """Warn if no tree has a split, and name a remedy."""
    if (forest.trees_.left >= 0).any() or (intervals == intervals[0]).all():
        return
    other = " structure='km', which grows them on all rows, or" if structure == "exact" else ""
    warn(
        f"predictions are the same for all inputs: the trees, grown on {n_grown} of "
        f"{len(intervals)} rows with at least {forest.min_samples_leaf_} in a leaf, have no "
        f"split. Use{other} a smaller min_samples_leaf of the estimator.",
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
