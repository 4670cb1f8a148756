"""Predictions of a fitted boosted model, after all rounds or after each."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Booleans, Floats, Inputs, Ints, Outputs
from okforest._utils.frames import Categories
from okforest._utils.inputs import TrainingInputs, check_inputs, check_numbers
from okforest._utils.parameters import is_integer
from okforest._utils.state import (
    Maybe,
    check_declared,
    check_feature_count,
    check_floats,
    check_length,
)
from okforest.decode import as_decoder
from okforest.engine import Trees
from okforest.kernels import OutputKernel
from okforest.metrics.losses import check_score_weight, check_truth, loss_r2
from okforest.models.base import OKModel
from okforest.models.boosting.bases import BaseRounds, DirectionBase
from okforest.models.boosting.rounds import BoostedWeights, FeatureWeights, Rounds
from okforest.models.boosting.trees import LeafSums, TreeRounds, leaves_of_members
from okforest.models.outputs import accuracy, has_classes
from okforest.models.tree_methods import TreeMethods
from okforest.weights import Span, WeightMatrix


def check_rounds(model: Any) -> None:
    """Check what all boosted models have: weights of rows, scales and losses of rounds."""
    check_feature_count(model)
    n_rounds = model.n_estimators_
    if n_rounds < 1:
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
    if not hasattr(model, "training_leaves_") and not _all_are_members(trees):
        raise ValueError("training_leaves_ is missing")
    numbers = getattr(model, "training_leaves_", np.zeros((len(trees), n_rows), dtype=np.uint8))
    if numbers.dtype.kind != "u":
        raise ValueError("training_leaves_ is not an array of unsigned integers")
    if numbers.shape != (len(trees), n_rows) or (numbers >= n_leaves[:, None]).any():
        raise ValueError("training_leaves_ does not hold a leaf of each tree for every row")
    if hasattr(model, "leaf_coefficients_"):
        check_floats(model, "leaf_coefficients_", 2, (n_leaves.sum(), n_rows))
    if hasattr(model, "leaf_means_"):
        n_features = model.kernel_.feature_dim(model.outputs_)
        check_floats(model, "leaf_means_", 2, (n_leaves.sum(), n_features))


def _all_are_members(trees: Trees) -> bool:
    """Return whether every tree was grown on all rows: members of trees differ."""
    return len(trees.members) == len(trees) * len(trees.row_weight)


def check_bases(model: Any) -> None:
    """Check the base learners, and that they were fitted to the training rows."""
    n_rows = len(model.row_weight_)
    check_floats(model, "inputs_", 2, (n_rows, model.n_features_in_))
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


class BoostedModel(TreeMethods):
    """A sum of rounds, of trees (``trees_``) or of other base learners (``bases_``)."""

    base: Any

    kernel_: OutputKernel
    outputs_: Outputs
    row_weight_: Floats
    embedding_: str
    embedding_rank_: int
    embedding_residual_: float
    train_loss_: Floats
    validation_loss_: Maybe[Floats]
    oob_improvement_: Maybe[Floats]
    held_out_: Booleans
    n_estimators_: int
    scales_: Floats
    # with trees
    trees_: Maybe[Trees]
    categories_: Maybe[Categories]
    has_missing_: Maybe[Booleans]
    training_leaves_: Maybe[npt.NDArray[np.integer]]
    leaf_means_: Maybe[Floats]
    leaf_coefficients_: Maybe[Floats]
    # with other base learners
    bases_: Maybe[list[Any]]
    inputs_: Maybe[Inputs]

    def weight_matrix(self, X: Any) -> WeightMatrix:
        """Return the weights of the training outputs, in a form that computes them when needed.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : okforest.weights.WeightMatrix of shape (n, n_train)
            Row i holds w(x_i), with sum one. Weights may be negative, and few of them are zero.
        """
        rounds, coordinates = self._rounds_at(X)
        return rounds.weights(coordinates, self.span_)

    def _weights_of(self, X: Any) -> WeightMatrix:
        """Return the weights; where sums of leaf means predict, they are computed when needed."""
        span = self.span_
        overridden = type(self).weight_matrix is not BoostedModel.weight_matrix
        if overridden or not hasattr(self, "leaf_means_") or span.features is None:
            return self.weight_matrix(X)
        X = check_inputs(self, X)
        n_threads = self._prediction_threads(X.shape[0])

        def weights() -> BoostedWeights:
            rounds = self._rounds()
            return BoostedWeights(rounds, rounds.coordinates(X, n_threads))

        def sums_of(values: Floats) -> Floats:
            return self._sums_of(values, span)(X, n_threads)

        return FeatureWeights(weights, span, self._leaf_sums(span)(X, n_threads), sums_of)

    def _sums_of(self, values: Floats, span: Span) -> LeafSums:
        """Return what adds up means of other values that the span keeps, as long as it does."""
        kept: dict[int, LeafSums] = span.kept("sums of values", dict)
        found = kept.get(id(values))
        if found is None or found.vectors.trees is not self.trees_:
            rounds = self._rounds()
            start = rounds.initial @ values
            vectors = np.concatenate([*rounds.follow(values - start)])
            kept[id(values)] = found = LeafSums.of(self.trees_, vectors, start)
        return found

    def _leaf_sums(self, span: Span) -> LeafSums:
        """Return what adds up means of leaves, which the span keeps for later predictions."""
        kept: LeafSums = span.kept("leaf sums", lambda: self._make_leaf_sums(span))
        if kept.vectors.trees is not self.trees_ or kept.vectors.vectors is not self.leaf_means_:
            return self._make_leaf_sums(span)  # attributes were set after the fit
        return kept

    def _make_leaf_sums(self, span: Span) -> LeafSums:
        assert span.features is not None
        start = self.row_weight_ / self.row_weight_.sum() @ span.features
        return LeafSums.of(self.trees_, self.leaf_means_, start)

    def staged_weights(self, X: Any) -> Iterator[sp.csr_array]:
        """Yield the weights after each round.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Yields
        ------
        W : csr_array of shape (n, n_train)
            Weights as in :meth:`predict_weights`. Without ``leaf_coefficients_`` this takes an
            n_train × n_train matrix.
        """
        rounds, coordinates = self._rounds_at(X)
        return (W.tocsr() for W in rounds.staged_dense_weights(coordinates))

    def staged_predict(self, X: Any, candidates: Any = None, step: int = 1) -> Iterator[Outputs]:
        """Yield the predicted outputs after each round, or after some of the rounds.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        candidates : array-like, optional
            Outputs to choose from; by default ``decoder`` decides.
        step : int, default=1
            Predict after every ``step`` rounds, and after the last round.

        Yields
        ------
        y : ndarray of n outputs
            Outputs as in :meth:`predict`. Without ``leaf_means_`` or ``leaf_coefficients_`` this
            takes an n_train × n_train matrix.
        """
        if not is_integer(step) or step < 1:
            raise ValueError(
                f"step={step!r}; use a positive integer, such as step=10 to predict after every "
                "tenth round and the last."
            )
        span = self.span_
        decoder = as_decoder(self.decoder, span.kernel)
        if candidates is not None:
            decoder = decoder.with_candidates(candidates)
        rounds, coordinates = self._rounds_at(X)
        return (
            self._decoded(decoder, W, span)
            for m, W in enumerate(rounds.staged_weights(coordinates, span), start=1)
            if m % step == 0 or m == len(rounds)
        )

    def staged_losses(self, X: Any, y: Any) -> Iterator[Floats]:
        """Yield the losses in feature space after each round, which need no predicted outputs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like
            Their true outputs.

        Yields
        ------
        losses : ndarray of shape (n,)
            ‖φ(y) − F(x)‖² of each row. If the kernel has no explicit features, this takes an
            n_train × n_train matrix.
        """
        return self._staged_losses(X, check_truth(self.span_, X, y))

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the kernel R² after each round, or the accuracy of a classifier.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like
            Their true outputs.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Yields
        ------
        score : float
            The score as in :meth:`score`.
        """
        outputs = check_truth(self.span_, X, y)
        weight = check_score_weight(sample_weight, outputs)
        if has_classes(self):
            return (accuracy(outputs, predicted, weight) for predicted in self.staged_predict(X))
        return (
            loss_r2(self.kernel_, losses, outputs, weight)
            for losses in self._staged_losses(X, outputs)
        )

    def compact(self) -> Self:
        """Return a smaller copy of the model; this one does not change.

        The kernel is restricted to the training outputs, as in other models. Besides,
        ``leaf_coefficients_`` are dropped: weights are then computed from the rounds, which takes
        longer.

        Returns
        -------
        model : estimator
            The smaller model. Its predictions are the same up to rounding.
        """
        model = super().compact()
        model._forget("leaf_coefficients_")
        return model

    @property
    def feature_importances_(self) -> Floats:
        """Each feature's share of the total variance reduction, summing to one."""
        if hasattr(self, "bases_"):
            raise AttributeError(
                f"feature_importances_ needs trees, but this model was fitted with "
                f"base={self.base!r}; use base='tree', or "
                "sklearn.inspection.permutation_importance."
            )
        return super().feature_importances_

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        check_declared(self)
        check_rounds(self)
        if self._has_trees():
            super().check_state()
            check_leaves(self)
        else:
            OKModel.check_state(self)
            check_bases(self)

    def _leaves(self, X: Any) -> Ints:
        if hasattr(self, "bases_"):
            raise ValueError(
                f"this model was fitted with base={self.base!r}, which has no leaves; use "
                "base='tree'."
            )
        return super()._leaves(X)

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        if "training_leaves_" in state and _all_are_members(self.trees_):
            del state["training_leaves_"]  # it follows from the members
        return state

    def __setstate__(self, state: Any) -> None:
        if "trees_" in state and "training_leaves_" not in state:
            state = state | {"training_leaves_": leaves_of_members(state["trees_"])}
        super().__setstate__(state)

    def _has_trees(self) -> bool:
        """Return whether the rounds of a fitted model are trees."""
        check_is_fitted(self, "n_estimators_")
        return hasattr(self, "trees_")

    def _rounds(self) -> Rounds:
        initial = self.row_weight_ / self.row_weight_.sum()
        if not self._has_trees():
            return BaseRounds(self.bases_, self.inputs_, self.scales_, initial)
        return TreeRounds(
            self.trees_,
            self.training_leaves_,
            self.scales_,
            initial,
            leaf_means=getattr(self, "leaf_means_", None),
            leaf_coefficients=getattr(self, "leaf_coefficients_", None),
        )

    def _rounds_at(self, X: Any) -> tuple[Rounds, list[Any]]:
        """Return the rounds, and the coordinates of inputs in each."""
        X = check_inputs(self, X) if self._has_trees() else check_numbers(self, X)
        rounds = self._rounds()
        return rounds, rounds.coordinates(X, self._prediction_threads(X.shape[0]))

    def _staged_losses(self, X: Any, outputs: Outputs) -> Iterator[Floats]:
        rounds, coordinates = self._rounds_at(X)
        return rounds.staged_losses(coordinates, self.span_, outputs)

    def _splits_differ(self, inputs: TrainingInputs) -> bool:
        return self._has_trees() and super()._splits_differ(inputs)

    def _rows_in_leaves(self, inputs: TrainingInputs) -> Inputs:
        return inputs.X

    def _has_seen(self, X: Inputs) -> bool:
        if self._has_trees():
            return super()._has_seen(X)
        if sp.issparse(X) or sp.issparse(self.inputs_):
            return bool(abs(sp.csr_array(X) - sp.csr_array(self.inputs_)).sum() == 0)
        return np.array_equal(X, self.inputs_, equal_nan=True)
