"""Trees and forests: fitting in three steps, and the weights of their predictions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Outputs, like, on_gpu, to_host
from okforest._utils.codings import coded_columns
from okforest._utils.compat import StrOptions, fit_context, with_callbacks
from okforest._utils.errors import warn
from okforest._utils.inputs import (
    TrainingInputs,
    check_inputs,
    check_weights,
    code_categories,
    continue_inputs,
    learn_inputs,
)
from okforest._utils.progress import progress_of
from okforest._utils.resources import thread_count
from okforest._utils.state import Maybe
from okforest.embedding import (
    LOW_RANK_KINDS,
    Embedding,
    embed_for_search,
    embedding_bytes,
    gram_of,
    leading_coordinates,
)
from okforest.engine import (
    DeviceName,
    GrowthPlan,
    Trees,
    apply,
    grow_function,
    move_members,
    prediction_device,
    prune,
)
from okforest.kernels import OutputKernel
from okforest.models.tree_methods import TreeMethods, changed, sample_count
from okforest.weights import LeafWeights, WeightMatrix

GrowFunction = Callable[..., Trees]  # okforest.engine.grow, or another with its signature

EMBEDDING_SHARE = 0.4  # of the free memory of a GPU; trees take the rest
FROBENIUS_ADVICE = "Use criterion='variance', which does not need it, or fewer rows."


class Target(NamedTuple):
    """The outputs of a fit, and what trees are grown from."""

    kernel: OutputKernel
    outputs: Outputs
    embedding: Embedding
    search: Embedding  # in which splits are searched
    search_variance: float


@dataclass(frozen=True)
class FitPlan:
    """A fit before its trees are grown.

    Parameters
    ----------
    inputs : TrainingInputs
        The validated inputs.
    target : Target or None
        The validated and embedded outputs; None without y.
    growth : GrowthPlan
        What the engine needs.
    trees : range
        Numbers of the trees to grow.
    """

    inputs: TrainingInputs
    target: Target | None
    growth: GrowthPlan
    trees: range


class TreeModel(TreeMethods):
    """A tree or forest: the prediction is the mean of the training outputs in its leaves."""

    min_samples_leaf_: Maybe[int]
    embedding_: Maybe[str]
    embedding_rank_: Maybe[int]
    embedding_residual_: Maybe[float]
    search_rank_: Maybe[int]
    search_variance_: Maybe[float]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TreeMethods._parameter_constraints,
        "min_samples_leaf": [
            *TreeMethods._parameter_constraints["min_samples_leaf"],
            StrOptions({"auto"}),
        ],
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TreeModel":
        """Grow the trees.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs, of at least two rows; float32, float64 and uint8 arrays are not copied. NaN is a
            missing value; every split learns which side it goes to.
        y : array-like of n outputs
            Outputs, of the type that the kernel takes: numbers, vectors, labels, a list of any
            objects, or positions in a precomputed Gram matrix.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, of which at least two must be positive. A row of weight 3 equals
            three copies of it, also in ``min_samples_leaf``, unlike in scikit-learn. Exceptions are
            what a kernel learns from the outputs (``sigma="median"`` counts a row once) and the
            draws of ``bootstrap=True``.

        Returns
        -------
        self : object
            The fitted model.
        """
        return self.fit_by(self._grow_on_device, X, y, sample_weight)

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit_by(self, grow: GrowFunction, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model with trees that another function grows, such as one on a cluster.

        For developers: :func:`okforest.dask.fit` calls it.

        Parameters
        ----------
        grow : callable
            It has the signature of :func:`okforest.engine.grow`, and returns the same trees.
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like of n outputs
            Outputs.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted model.
        """
        device = self.device if grow == self._grow_on_device else "cpu"
        plan = self._plan(X, y, sample_weight, device)
        self._finish(plan, self._grow(plan, grow))
        return self

    def _grow_on_device(self, plan: GrowthPlan, trees: range, **options: Any) -> Trees:
        # The device is read only now, when parameters have been validated.
        return grow_function(self.device)(plan, trees, **options)

    def _uses_device(self) -> bool:
        return self.device != "cpu"

    def _continues(self) -> bool:
        """Return whether trees are added to those of the previous fit."""
        return self.warm_start and hasattr(self, "trees_")

    def _plan(self, X: Any, y: Any, sample_weight: Any, device: DeviceName = "cpu") -> "FitPlan":
        """Validate the data, embed the outputs and fix the seed: all that the trees depend on.

        With another device than the CPU, the arrays of the plan may be there.
        """
        if self._continues():
            X = check_inputs(self, X, on_device=device != "cpu", coded=False)
            inputs, seed = continue_inputs(self, X), self.seed_
        else:
            inputs = learn_inputs(self, X, sample_weight, on_device=device != "cpu")
            seed = self._draw_seed()
        weight = check_weights(sample_weight, inputs.X)
        n_draws = self._n_draws(weight)
        target = self._embed(inputs, y, weight, seed, device)
        inputs = self._code(inputs, target, weight, seed)
        growth = GrowthPlan(
            X=inputs.X,
            outputs=np.empty((len(weight), 0)) if target is None else target.search.values,
            gram=target is not None and target.search.kind == "gram",
            rules=self._rules(
                inputs.n_features, n_draws or sample_count(weight), inputs.X.shape[1]
            ),
            row_weight=weight,
            n_categories=inputs.n_categories,
            seed=seed,
            n_draws=n_draws,
            row_errors=None if target is None else target.search.errors,
        )
        first = self._check_continuing(inputs, weight, target) if self._continues() else 0
        return FitPlan(inputs, target, growth, range(first, self.n_estimators))

    def _code(
        self, inputs: TrainingInputs, target: "Target | None", weight: Floats, seed: int
    ) -> TrainingInputs:
        """Return inputs whose categories with many levels are coordinates."""
        if target is None:
            return inputs
        encoding, outputs = self.categorical_encoding, target.embedding
        return code_categories(
            inputs, encoding, lambda: leading_coordinates(outputs, weight, seed), weight, seed
        )

    def _grow(self, plan: "FitPlan", grow: GrowFunction) -> Trees | None:
        """Grow the trees of a plan; None if there is nothing to add."""
        if not plan.trees:
            return None
        first, last = plan.trees.start, plan.trees.stop
        threads = thread_count(self.n_jobs)
        with progress_of(first, last, self.verbose, self.callback, estimator=self) as progress:
            grown = grow(plan.growth, plan.trees, n_threads=threads, progress=progress)
        if self.ccp_alpha > 0:
            grown = prune(grown, self.ccp_alpha)
        if plan.inputs.coded is None:
            return grown
        # New rows have the coordinates that all rows give. Training rows with the same coordinates
        # share their leaves: a test row meets all rows of its levels, and leaves are not noise.
        return move_members(grown, apply(grown, plan.inputs.coded.values, threads))

    def _finish(self, plan: "FitPlan", grown: Trees | None) -> None:
        """Store what was learnt."""
        if grown is not None:
            self.trees_ = Trees.join([self.trees_, grown]) if plan.trees.start else grown
        self.seed_ = plan.growth.seed
        self.row_weight_ = plan.growth.row_weight
        self.min_samples_leaf_ = int(plan.growth.rules.min_samples_leaf)
        self.categories_ = plan.inputs.categories
        self.has_missing_ = plan.inputs.has_missing
        if plan.inputs.coded is not None:
            self.codings_ = plan.inputs.coded.codings
        target = plan.target
        if target is None:
            return
        self.store_outputs(target.kernel, target.outputs)
        self.embedding_ = target.embedding.kind
        self.embedding_rank_ = target.embedding.rank
        self.embedding_residual_ = target.embedding.residual
        self.search_rank_ = target.search.rank
        self.search_variance_ = target.search_variance

    def _check_continuing(
        self, inputs: TrainingInputs, weight: Floats, target: "Target | None"
    ) -> int:
        """Return how many trees there are, after checking that more can be added."""
        if self.bootstrap != (len(self.trees_.times) > 0):
            raise ValueError(changed("bootstrap"))
        outputs = None if target is None else target.outputs
        self._check_same_rows(inputs, outputs, weight)
        if target is not None:
            self._check_same_kernel(target.kernel, target.outputs)
            self._check_same_embedding(target)
        n_trees = len(self.trees_)
        if self.n_estimators < n_trees:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {n_trees} trees grown so far; "
                "with warm_start=True it can only increase."
            )
        if self.n_estimators == n_trees:
            warn("warm_start=True without a larger n_estimators grows no trees.")
        return n_trees

    def _check_same_embedding(self, target: "Target") -> None:
        """Check that splits are searched in the same outputs; exact forms give the same trees."""
        kinds = {self.embedding_, target.embedding.kind}
        approximate = not kinds.isdisjoint(LOW_RANK_KINDS)
        if approximate and (len(kinds) > 1 or self.embedding_rank_ != target.embedding.rank):
            raise ValueError(changed("embedding or embedding_rank"))
        before = self.search_rank_ if self.search_rank_ < self.embedding_rank_ else None
        reduced = target.search.rank < target.embedding.rank
        if before != (target.search.rank if reduced else None):
            raise ValueError(changed("search_rank"))

    def _embed(
        self, inputs: TrainingInputs, y: Any, weight: Floats, seed: int, device: DeviceName
    ) -> "Target | None":
        """Return the kernel, the outputs, and the arrays to grow from."""
        kernel, outputs = self.validate_outputs(inputs.X, y, weight)
        if self.criterion == "frobenius":
            self._check_frobenius(inputs)
            K = gram_of(kernel, outputs, FROBENIUS_ADVICE, frobenius=True)
            embedding = Embedding("gram", K)
            return Target(kernel, outputs, embedding, embedding, 1.0)
        placed = self._place_outputs(kernel, y, outputs, device)
        options = self.embedding, self.embedding_rank, self.search_rank, weight, seed
        embedding, search, variance = embed_for_search(
            kernel, placed, *options, classes=device == "cpu"
        )
        return Target(kernel, outputs, embedding, search, variance)

    def _place_outputs(
        self, kernel: OutputKernel, y: Any, outputs: Outputs, device: DeviceName
    ) -> Outputs:
        """Return the outputs where they are embedded: on the GPU if that is possible."""
        gpu = prediction_device(device) if kernel.on_device else None
        if gpu is None or self.embedding == "cholesky":
            return outputs
        needed = embedding_bytes(kernel, outputs, self.embedding, self.embedding_rank)
        if needed > EMBEDDING_SHARE * gpu.free_memory():
            return outputs
        return kernel.check(y) if on_gpu(y) else gpu.xp.asarray(outputs)

    def _check_frobenius(self, inputs: TrainingInputs) -> None:
        """Check that no parameter is set that the rule does not support."""
        if self.embedding not in ("auto", "gram") or self.search_rank not in (None, "auto"):
            raise ValueError(
                f"criterion='frobenius' works on the Gram matrix, with embedding='auto' or 'gram' "
                f"and search_rank=None or 'auto'; got embedding={self.embedding!r} and "
                f"search_rank={self.search_rank!r}."
            )
        n_coded = len(coded_columns(inputs.categories, self.categorical_encoding))
        if np.count_nonzero(inputs.n_categories) > n_coded:
            raise ValueError(
                "criterion='frobenius' does not split categorical features; set "
                "categorical_encoding='target', or encode them as numbers and set "
                "categorical_features=None if they are categorical by dtype."
            )

    def _n_draws(self, weight: Floats) -> int:
        """Return how many rows are drawn for each tree; 0 if every tree is grown on all rows."""
        return 0

    def weight_matrix(self, X: Any) -> LeafWeights:
        """Return the weights of the training outputs, as the leaves that inputs reach.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : LeafWeights of shape (n, n_train)
            Row i holds w(x_i): non-negative, with sum one.
        """
        leaves = self._leaves(X)
        return LeafWeights(self.trees_, leaves, self._prediction_threads(len(leaves)))

    def _weights_of(self, X: Any) -> WeightMatrix:
        """Return the weights; their leaves are found when they are needed, if at all."""
        if self.device != "cpu" or type(self).weight_matrix is not TreeModel.weight_matrix:
            return self.weight_matrix(X)
        if "trees_" not in vars(self):
            check_is_fitted(self, "trees_")
        X = check_inputs(self, X)
        return LeafWeights(self.trees_, n_threads=self._prediction_threads(X.shape[0]), inputs=X)

    def predict_kernel(
        self, X: Any, Z: Any = None, scheme: Literal["convolve", "average"] = "convolve"
    ) -> Floats:
        """Predict the output kernel between inputs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        Z : array-like, frame or sparse matrix of shape (m, p), optional
            Other inputs; by default X.
        scheme : {"convolve", "average"}, default="convolve"
            w(x)ᵀ K w(z) with the weights of the whole ensemble, or the mean over trees of that.

        Returns
        -------
        K : ndarray of shape (n, m)
            The predicted kernel; positive semi-definite with Z = X.
        """
        if scheme == "convolve":
            return super().predict_kernel(X, Z)
        if scheme != "average":
            raise ValueError(f"scheme={scheme!r}; use 'convolve' or 'average'.")
        W = self.tree_weight_matrices(X)
        V = None if Z is None else self.tree_weight_matrices(Z)
        return like(self.span_.mean_gram(W, V), X)

    def tree_weight_matrices(self, X: Any) -> list[LeafWeights]:
        """Return the weights of the training outputs, tree by tree.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        Ws : list of LeafWeights of shape (n, n_train)
            One matrix for each tree; their mean is :meth:`weight_matrix`.
        """
        leaves = to_host(self._leaves(X))
        return [
            LeafWeights(self.trees_[t], np.ascontiguousarray(leaves[:, t : t + 1]))
            for t in range(leaves.shape[1])
        ]
