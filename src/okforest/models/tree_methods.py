"""Growing output kernel trees: the parameters, and what follows from grown trees."""

from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Booleans, Floats, Inputs, Ints, Outputs, like, to_host
from okforest._utils.codings import (
    CategoricalEncoding,
    Codings,
    check_codings,
    column_starts,
)
from okforest._utils.compat import CallbackSupportMixin, Interval, RealNotInt, StrOptions
from okforest._utils.frames import Categories
from okforest._utils.inputs import TrainingInputs, check_inputs, column_category_counts
from okforest._utils.resources import thread_count
from okforest._utils.state import Maybe, check_feature_count, check_length
from okforest.embedding import EmbeddingKind, SearchRank
from okforest.engine import DeviceName, GrowthRules, Trees, apply
from okforest.engine.plan import UNLIMITED
from okforest.kernels import OutputKernel, as_kernel
from okforest.models.base import OKModel


class TreeMethods(CallbackSupportMixin, OKModel):
    """A model that grows output kernel trees: their rules, leaves, kernel and importances.

    A subclass exposes some of the attributes below as parameters and fixes the others.
    """

    n_estimators: int = 1
    splitter: Literal["best", "random"] = "best"
    criterion: Literal["variance", "frobenius"] = "variance"
    max_features: Any = None
    ignore_constant: bool = False
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float | Literal["auto"] = 1
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    ccp_alpha: float = 0.0
    bootstrap: bool = False
    max_samples: float | None = None
    categorical_features: Any = "from_dtype"
    categorical_encoding: CategoricalEncoding = "auto"
    embedding: EmbeddingKind | Literal["auto"] = "auto"
    embedding_rank: int | None = None
    search_rank: SearchRank = None
    random_state: Any = None
    warm_start: bool = False
    n_jobs: int | None = None
    device: DeviceName = "cpu"
    verbose: int = 0
    callback: Any = None
    _uses_outputs: ClassVar[bool] = True  # whether the trees' structure depends on the outputs

    trees_: Trees
    kernel_: Maybe[OutputKernel]  # and outputs are absent if trees were grown without y
    outputs_: Maybe[Outputs]
    seed_: int
    has_missing_: Booleans
    categories_: Categories
    codings_: Maybe[Codings]
    n_features_in_: int
    row_weight_: Maybe[Floats]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "kernel": "no_validation",  # as_kernel has better messages
        "splitter": [StrOptions({"best", "random"})],
        "criterion": [StrOptions({"variance", "frobenius"})],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "ignore_constant": ["boolean"],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="neither"),
        ],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
        "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
        "bootstrap": ["boolean"],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            None,
        ],
        "oob_score": ["boolean"],
        "categorical_features": "no_validation",  # learn_categories has better messages
        "categorical_encoding": [StrOptions({"auto", "subsets", "target"})],
        "embedding": [
            StrOptions({"auto", "features", "gram", "factor", "cholesky", "nystrom", "fourier"})
        ],
        "embedding_rank": [Interval(Integral, 1, None, closed="left"), None],
        "search_rank": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="neither"),
            StrOptions({"auto"}),
            None,
        ],
        "decoder": "no_validation",  # as_decoder has better messages
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "device": [StrOptions({"cpu", "cuda", "auto"})],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))

    def _rules(
        self, n_features: int, n_samples: float, n_columns: int | None = None
    ) -> GrowthRules:
        n_drawn = _n_candidate_features(self.max_features, n_features)
        if n_columns is not None:  # with coordinates, a feature is drawn as often as without
            n_drawn = round(n_drawn * n_columns / n_features)
        return GrowthRules(
            random_splits=self.splitter == "random",
            frobenius=self.criterion == "frobenius",
            max_features=n_drawn,
            ignore_constant=self.ignore_constant,
            order="depth" if self.max_leaf_nodes is None else "gain",
            max_depth=_limit(self.max_depth),
            max_leaf_nodes=_limit(self.max_leaf_nodes),
            min_samples_split=max(2, _amount(self.min_samples_split, n_samples)),
            min_samples_leaf=_amount(self._smallest_leaf(), n_samples),
            min_impurity_decrease=self.min_impurity_decrease,
            stop_when_pure=self._uses_outputs,
        )

    def _smallest_leaf(self) -> float:
        if isinstance(self.min_samples_leaf, str):
            return as_kernel(self.kernel).default_min_samples_leaf
        return self.min_samples_leaf

    def _leaves(self, X: Any) -> Ints:
        check_is_fitted(self, "trees_")
        X = check_inputs(self, X, on_device=self._uses_device())
        return apply(self.trees_, X, self._prediction_threads(X.shape[0]), self.device)

    def _uses_device(self) -> bool:
        """Whether inputs on a GPU stay there."""
        return False

    def _prediction_threads(self, n_rows: int) -> int:
        # Starting a thread costs as much as predicting a few hundred rows.
        return min(thread_count(self.n_jobs), ceil(n_rows / 256))

    def _check_same_rows(
        self, inputs: TrainingInputs, outputs: Outputs | None, weight: Floats
    ) -> None:
        """Check that these are the rows that the model was fitted to."""
        what = None
        if inputs.X.shape[0] != len(self._training_weight()):
            what = f"X has {inputs.X.shape[0]} rows and"
        elif outputs is not None and not np.array_equal(outputs, getattr(self, "outputs_", ())):
            what = "y"
        elif not np.array_equal(weight, self._training_weight()):
            what = "sample_weight"
        elif self._splits_differ(inputs):
            what = "X or categorical_encoding"
        elif not self._has_seen(self._rows_in_leaves(inputs)):
            what = "X"
        if what:
            raise ValueError(changed(what))

    def _check_same_kernel(self, kernel: OutputKernel, outputs: Outputs) -> None:
        """Check that the kernel agrees with that of the previous fit on some of the outputs."""
        some = outputs[:: max(1, len(outputs) // 100)]
        if not np.array_equal(kernel(some), self.kernel_(some)):
            raise ValueError(changed("kernel"))

    def _training_weight(self) -> Floats:
        if hasattr(self, "row_weight_"):
            return self.row_weight_
        return self.trees_.row_weight  # loaded from a file of an earlier version

    def _splits_differ(self, inputs: TrainingInputs) -> bool:
        """Return whether categories are not encoded as in the previous fit."""
        return inputs.n_categories.tolist() != self.trees_.n_categories.tolist()

    def _rows_in_leaves(self, inputs: TrainingInputs) -> Inputs:
        """Return the training rows as they are in the leaves of trees."""
        return inputs.X if inputs.coded is None else inputs.coded.values

    def _has_seen(self, X: Inputs) -> bool:
        """Return whether X may be the training inputs: members reach the leaves they are in."""
        kept = self.trees_
        leaves = to_host(apply(kept, X))[kept.members, kept.member_trees]
        return np.array_equal(leaves, kept.member_leaves)

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        check_feature_count(self)
        check_length(self, "categories_", self.n_features_in_)
        check_length(self, "has_missing_", self.n_features_in_)
        codings = getattr(self, "codings_", None)
        if codings is not None:
            check_codings(codings, self.categories_)
        counts = column_category_counts(self.categories_, codings)
        if counts.tolist() != self.trees_.n_categories.tolist():
            raise ValueError("categories_ and the trees' n_categories differ")
        for name in ("outputs_", "row_weight_"):
            check_length(self, name, len(self.trees_.row_weight))

    def tree_kernel(self, X: Any, Z: Any = None) -> Floats:
        """Return the input kernel that the trees have learnt.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        Z : array-like, frame or sparse matrix of shape (m, p), optional
            Other inputs; by default X.

        Returns
        -------
        K : ndarray of shape (n, m)
            The mean over trees of 1 / (weight of the leaf) where x and z share a leaf, else 0. With
            Z the training inputs, these are the weights of :meth:`predict_weights`, if trees were
            grown on all rows, equally weighted.
        """
        leaves = to_host(self._leaves(X))
        A = self.trees_.leaf_indicator(leaves)
        B = A.copy() if Z is None else self.trees_.leaf_indicator(to_host(self._leaves(Z)))
        A.data /= self.trees_.weight[A.indices] * len(self.trees_)
        return like((A @ B.T).toarray(), X)

    def apply(self, X: Any) -> Ints:
        """Return the leaves that inputs reach.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        leaves : ndarray of shape (n, n_estimators)
            Node numbers, which count from 0 in each tree.
        """
        return like(self._leaves(X), X)

    @property
    def feature_importances_(self) -> Floats:
        """Each feature's share of the total variance reduction, summing to one."""
        check_is_fitted(self, "trees_")
        reduction = np.maximum(variance_reduction(self, self.trees_), 0.0)
        total = reduction.sum()
        return reduction / total if total > 0 else reduction

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def variance_reduction(model: Any, trees: Trees) -> Floats:
    """Return the total variance reduction of splits on each feature, in trees of the model.

    The coordinates of a category are summed.
    """
    reduction = trees.variance_reduction(len(trees.n_categories))
    codings = getattr(model, "codings_", None)
    return reduction if codings is None else np.add.reduceat(reduction, column_starts(codings)[:-1])


def changed(what: str) -> str:
    """Return the message that trees or rounds cannot be added since a fit has changed."""
    return (
        f"{what} differs from the previous fit; warm_start=True continues on the same training "
        "set. Set it to False to fit from scratch."
    )


def sample_count(weight: Floats) -> float:
    """Return the number of samples: a row counts as its weight, and as at least one."""
    return float(np.maximum(weight, 1.0)[weight > 0].sum())


def _limit(value: int | None) -> int:
    return UNLIMITED if value is None else min(int(value), UNLIMITED)


def _amount(value: float, total: float) -> float:
    return float(value) if isinstance(value, Integral) else float(ceil(value * total))


def _n_candidate_features(max_features: Any, n_features: int) -> int:
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    if isinstance(max_features, Integral):
        return min(int(max_features), n_features)
    return max(1, int(max_features * n_features))
