"""What a tree and its forests share: growing, leaves, weights, kernels and importances."""

from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple
from warnings import warn

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from okforest._categories import Categories, category_counts
from okforest._compat import Interval, RealNotInt, StrOptions, fit_context
from okforest._progress import progress_of
from okforest._threads import thread_count
from okforest._typing import Booleans, Floats, Ints, Outputs, Weights
from okforest._validation import check_inputs, check_weights, missing_features
from okforest.embedding import Embedding, embed, principal_directions
from okforest.embedding.choice import Kind, gram_of
from okforest.engine import LeafWeights, Rules, Trees, grow, prune
from okforest.engine.growth import UNLIMITED
from okforest.engine.inputs import Inputs
from okforest.kernels import OutputKernel
from okforest.models._base import Averager


class Target(NamedTuple):
    """What a fit learns of the outputs."""

    kernel: OutputKernel
    outputs: Outputs
    embedding: Embedding
    search: Embedding  # what splits are searched in
    search_variance: float


class Grower(Averager):
    """A model that grows output kernel trees: how they grow, their leaves, kernel and importances.

    A subclass exposes some of the attributes below as parameters and fixes the others.
    """

    n_estimators: int = 1
    splitter: Literal["best", "random"] = "best"
    criterion: Literal["variance", "frobenius"] = "variance"
    max_features: Any = None
    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    ccp_alpha: float = 0.0
    bootstrap: bool = False
    max_samples: float | None = None
    categorical_features: Any = "from_dtype"
    embedding: Kind | Literal["auto"] = "auto"
    embedding_rank: int | None = None
    search_rank: int | Literal["auto"] | None = None
    random_state: Any = None
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    callback: Any = None
    _uses_outputs: ClassVar[bool] = True  # whether outputs have a part in the trees' shape

    trees_: Trees
    seed_: int
    has_missing_: Booleans
    categories_: Categories
    n_features_in_: int

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
        "embedding": [
            StrOptions({"auto", "features", "gram", "factor", "cholesky", "nystrom", "fourier"})
        ],
        "embedding_rank": [Interval(Integral, 1, None, closed="left"), None],
        "search_rank": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "decoder": "no_validation",  # as_decoder has better messages
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))

    def _rules(self, weight: Floats) -> Rules:
        n_samples = _sample_count(weight)
        return Rules(
            random_splits=self.splitter == "random",
            frobenius=self.criterion == "frobenius",
            max_features=_n_features_tried(self.max_features, self.n_features_in_),
            order="depth" if self.max_leaf_nodes is None else "gain",
            max_depth=_limit(self.max_depth),
            max_leaf_nodes=_limit(self.max_leaf_nodes),
            min_samples_split=max(2, _amount(self.min_samples_split, n_samples)),
            min_samples_leaf=_amount(self.min_samples_leaf, n_samples),
            min_impurity_decrease=self.min_impurity_decrease,
            stop_when_pure=self._uses_outputs,
        )

    def _leaves(self, X: Any) -> Ints:
        check_is_fitted(self, "trees_")
        X = check_inputs(self, X, reset=False)
        return self.trees_.apply(X, self._prediction_threads(X.shape[0]))

    def _prediction_threads(self, n_rows: int) -> int:
        # A thread costs as much as some hundred rows.
        return min(thread_count(self.n_jobs), ceil(n_rows / 256))

    def _check_same_rows(self, X: Inputs, outputs: Outputs | None, weight: Floats | None) -> None:
        """Check that these are the rows that the model was fitted to."""
        what = None
        if X.shape[0] != len(self._training_weight()):
            what = f"X has {X.shape[0]} rows, other"
        elif not self._has_seen(X):
            what = "X is another"
        elif outputs is not None and not np.array_equal(outputs, self.outputs_):
            what = "y is another"
        elif weight is not None and not np.array_equal(weight, self._training_weight()):
            what = "sample_weight is another"
        if what:
            raise ValueError(changed(what))

    def _training_weight(self) -> Floats:
        return self.trees_.row_weight

    def _has_seen(self, X: Inputs) -> bool:
        """Tell whether these may be the training inputs: they reach the leaves of members."""
        kept = self.trees_
        return np.array_equal(kept.apply(X)[kept.members, kept.member_trees], kept.member_leaves)

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
        leaves = self._leaves(X)
        A = self.trees_.leaf_indicator(leaves)
        B = A.copy() if Z is None else self.trees_.leaf_indicator(self._leaves(Z))
        A.data /= self.trees_.weight[A.indices] * len(self.trees_)
        return (A @ B.T).toarray()

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
        return self._leaves(X)

    @property
    def feature_importances_(self) -> Floats:
        """Each feature's share of the total variance reduction, summing to one."""
        check_is_fitted(self, "trees_")
        reduction = np.maximum(self.trees_.variance_reduction(self.n_features_in_), 0.0)
        total = reduction.sum()
        return reduction / total if total > 0 else reduction

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


class TreeModel(Grower):
    """Output kernel trees whose means are predicted, one or many; presets pick how they grow."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TreeModel":
        """Grow the trees.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; float32 and float64 arrays are not copied. NaN is a missing value, for which
            every split learns a side.
        y : array-like of n outputs
            Outputs, of the kernel's kind: numbers, vectors, labels, a list of any objects, or
            positions in a precomputed Gram matrix.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A row of weight 3 is as good as three equal rows; but what a kernel
            learns from the outputs, as ``sigma="median"``, it learns from rows as they are.

        Returns
        -------
        self : object
            The fitted model.
        """
        kept = self.trees_ if self.warm_start and hasattr(self, "trees_") else None
        if kept is None:
            # A fit that fails leaves no model, not half of two.
            self._forget("trees_", "oob_weights_", "oob_prediction_", "oob_score_")
        X = check_inputs(self, X, reset=kept is None, sample_weight=sample_weight)
        weight = check_weights(sample_weight, X)
        n_draws = self._n_draws(weight)
        seed = self.seed_ if kept is not None else self._draw_seed()
        target = self._embed(X, y, weight, seed)
        first_tree = 0 if kept is None else self._check_growing_on(kept, X, weight, target)
        n_new = self.n_estimators - first_tree
        if n_new > 0:
            grown = grow(
                X,
                np.empty((X.shape[0], 0)) if target is None else target.search.values,
                self._rules(weight),
                n_categories=category_counts(self.categories_),
                gram=target is not None and target.search.kind == "gram",
                row_weight=weight,
                seed=seed,
                first_tree=first_tree,
                n_trees=n_new,
                n_draws=n_draws,
                n_threads=thread_count(self.n_jobs),
                progress=progress_of(first_tree, self.n_estimators, self.verbose, self.callback),
            )
            if self.ccp_alpha > 0:
                grown = prune(grown, self.ccp_alpha)
            self.trees_ = grown if kept is None else Trees.join([kept, grown])
        self.seed_ = seed
        self.has_missing_ = missing_features(X)
        self._learn(target)
        return self

    def _check_growing_on(
        self, kept: Trees, X: Inputs, weight: Floats, target: Target | None
    ) -> int:
        """Return how many trees there are, having checked that more can be added."""
        if self.bootstrap != (len(kept.times) > 0):
            raise ValueError(changed("bootstrap is another"))
        outputs = None if target is None else target.outputs
        self._check_same_rows(X, outputs, None if self.bootstrap else weight)
        if self.n_estimators < len(kept):
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {len(kept)} trees grown so far;"
                " with warm_start=True it can only grow."
            )
        if self.n_estimators == len(kept):
            warn("warm_start=True without a larger n_estimators grows no trees.", stacklevel=4)
        return len(kept)

    def _embed(self, X: Inputs, y: Any, weight: Floats, seed: int) -> Target | None:
        """Return the kernel, the outputs, and their numbers to grow from."""
        kernel, outputs = self._check_target(X, y, weight)
        if self.criterion == "frobenius":
            self._check_frobenius()
            embedding = Embedding("gram", gram_of(kernel, outputs))
            return Target(kernel, outputs, embedding, embedding, 1.0)
        embedding = embed(kernel, outputs, self.embedding, self.embedding_rank, seed)
        search, variance = principal_directions(embedding, self.search_rank, weight, seed)
        return Target(kernel, outputs, embedding, search, variance)

    def _check_frobenius(self) -> None:
        """Check that nothing is asked for that the rule does not have."""
        if self.embedding not in ("auto", "gram") or self.search_rank is not None:
            raise ValueError(
                f"criterion='frobenius' works on the Gram matrix, with embedding='auto' or 'gram' "
                f"and search_rank=None; got embedding={self.embedding!r} and "
                f"search_rank={self.search_rank!r}."
            )
        if category_counts(self.categories_).any():
            raise ValueError(
                "criterion='frobenius' has no splits of categorical features; encode them as "
                "numbers, and set categorical_features=None if they are categories by dtype."
            )

    def _learn(self, target: Target | None) -> None:
        if target is None:  # of an earlier fit, with y
            self._forget("outputs_", "kernel_", "embedding_", "embedding_rank_")
            self._forget("embedding_residual_", "search_rank_", "search_variance_")
        else:
            self.kernel_ = target.kernel
            self.outputs_ = target.outputs
            self.embedding_ = target.embedding.kind
            self.embedding_rank_ = target.embedding.rank
            self.embedding_residual_ = target.embedding.residual
            self.search_rank_ = target.search.rank
            self.search_variance_ = target.search_variance

    def _n_draws(self, weight: Floats) -> int:
        if not self.bootstrap:
            if self.max_samples is not None:
                raise ValueError(
                    f"max_samples={self.max_samples!r} has no effect with bootstrap=False; "
                    "set bootstrap=True or max_samples=None."
                )
            return 0
        if isinstance(self.max_samples, Integral):
            n_draws = int(self.max_samples)
        else:
            n_draws = max(1, round((self.max_samples or 1.0) * _sample_count(weight)))
        if n_draws > UNLIMITED:
            raise ValueError(
                f"each tree would draw {n_draws} rows, as many as sample_weight stands for; scale "
                "the weights down, or set max_samples to a number of rows."
            )
        return n_draws

    def predict_weights(self, X: Any) -> Weights:
        """Return the weights of the training outputs: the lossless prediction.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : csr_array of shape (n, n_train)
            Row i holds w(x_i): not negative, and summing to one.
        """
        return self._weights(X).tocsr()

    def _weights(self, X: Any) -> LeafWeights:
        leaves = self._leaves(X)
        return LeafWeights(self.trees_, leaves, self._prediction_threads(len(leaves)))

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
        W = self._weights_by_tree(X)
        return self.span_.mean_gram(W, None if Z is None else self._weights_by_tree(Z))

    def _weights_by_tree(self, X: Any) -> list[LeafWeights]:
        leaves = self._leaves(X)
        return [
            LeafWeights(self.trees_[t], np.ascontiguousarray(leaves[:, t : t + 1]))
            for t in range(leaves.shape[1])
        ]


def changed(what: str) -> str:
    """Say that rounds or trees cannot be added, since something is another than before."""
    return (
        f"{what} than before; warm_start=True goes on with the same training set. Set it to False "
        "to start anew."
    )


def _sample_count(weight: Floats) -> float:
    """Return the number of samples: a row counts as its weight, and at least as one."""
    return float(np.maximum(weight, 1.0)[weight > 0].sum())


def _limit(value: int | None) -> int:
    return UNLIMITED if value is None else min(int(value), UNLIMITED)


def _amount(value: float, total: float) -> float:
    return float(value) if isinstance(value, Integral) else float(ceil(value * total))


def _n_features_tried(max_features: Any, n_features: int) -> int:
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    if isinstance(max_features, Integral):
        return min(int(max_features), n_features)
    return max(1, int(max_features * n_features))
