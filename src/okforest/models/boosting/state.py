"""Checks of the fitted attributes of a boosted model; see :meth:`OKModel.check_state`."""

from typing import Any

import numpy as np

from okforest.models._state import check_feature_count, check_floats, check_length
from okforest.models.base import OKModel
from okforest.models.boosting.directions import DirectionBase


def check_rounds(model: Any) -> None:
    """Check what all boosted models have: weights of rows, scales and losses of rounds."""
    check_feature_count(model)
    n_rounds = model.n_estimators_
    if type(n_rounds) is not int or n_rounds < 1:
        raise ValueError(f"n_estimators_ is {n_rounds!r}")
    if hasattr(model, "trees_") == hasattr(model, "bases_"):
        raise ValueError("there are both trees_ and bases_, or neither")
    check_floats(model, "row_weight_", 1)
    if not (np.isfinite(model.row_weight_) & (model.row_weight_ >= 0)).all():
        raise ValueError("row_weight_ has entries that are not numbers ≥ 0")
    if not model.row_weight_.any():
        raise ValueError("row_weight_ has no positive entry")
    check_floats(model, "scales_", 1, (n_rounds,))
    for name in ("train_loss_", "validation_loss_", "oob_improvement_"):
        if hasattr(model, name):
            check_floats(model, name, 1, (n_rounds,))
    for name in ("outputs_", "held_out_"):
        check_length(model, name, len(model.row_weight_))


def check_leaves(model: Any) -> None:
    """Check that leaves, rows and what is kept of leaves match the trees, which are valid."""
    trees, n_rows = model.trees_, len(model.row_weight_)
    if len(trees) != model.n_estimators_ or len(trees.row_weight) != n_rows:
        raise ValueError("trees_ do not match n_estimators_ and row_weight_")
    leaf, tree = trees.leaves_by_tree()
    first = np.diff(tree, prepend=-1) > 0
    begin = np.where(first, 0, np.roll(trees.end[leaf], 1))
    last_ends = trees.end[leaf][np.roll(first, -1)]
    if (begin != trees.begin[leaf]).any() or (last_ends != np.diff(trees.member_offsets)).any():
        raise ValueError("the leaves of a tree do not partition its members")
    n_leaves = np.bincount(tree)
    numbers = model.training_leaves_
    if not isinstance(numbers, np.ndarray) or numbers.dtype.kind != "u":
        raise ValueError("training_leaves_ is not an array of unsigned integers")
    if numbers.shape != (len(trees), n_rows) or (numbers >= n_leaves[:, None]).any():
        raise ValueError("training_leaves_ does not hold a leaf of each tree for every row")
    if hasattr(model, "leaf_coefficients_"):
        check_floats(model, "leaf_coefficients_", 2, (n_leaves.sum(), n_rows))
    if hasattr(model, "leaf_means_"):
        n_features = model.kernel_.feature_dim(model.outputs_)
        check_floats(model, "leaf_means_", 2, (n_leaves.sum(), n_features))


def check_bases(model: Any) -> None:
    """Check the base learners, and that they were fitted to the training rows."""
    n_rows = len(model.row_weight_)
    check_floats(model, "inputs_", 2, (n_rows, model.n_features_in_))
    if not isinstance(model.bases_, list):
        raise ValueError("bases_ is not a list")
    check_length(model, "bases_", model.n_estimators_)
    for base in model.bases_:
        if not callable(getattr(base, "predict_weights", None)):
            raise ValueError(
                f"a base learner is of type {type(base).__name__}, which has no predict_weights"
            )
        if hasattr(base, "check_state"):
            base.check_state()
        if isinstance(base, OKModel):
            check_length(base, "outputs_", n_rows)
        if isinstance(base, DirectionBase):
            check_length(base, "coefficients_", n_rows)
