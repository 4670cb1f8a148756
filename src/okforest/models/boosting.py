"""Gradient boosting in the output kernel's feature space."""

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self
from warnings import warn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from okforest._compat import (
    HasMethods,
    Interval,
    StrOptions,
    check_sample_weight,
    fit_context,
)
from okforest._typing import Booleans, Floats, Ints, Outputs, WeightMatrix, Weights
from okforest._validation import check_inputs, check_numbers, check_weights
from okforest.decode import Candidates, as_decoder
from okforest.embedding import DenseWeights, Embedding, embed
from okforest.embedding.choice import Kind
from okforest.embedding.span import hidden_squares
from okforest.engine import Rules, Trees
from okforest.engine.inputs import Inputs
from okforest.kernels import OutputKernel
from okforest.metrics.losses import check_truth, loss_r2
from okforest.models._course import Course
from okforest.models._docs import document
from okforest.models._rounds import (
    BoostedWeights,
    LeafRounds,
    Rounds,
    WeightRounds,
    contributions,
)
from okforest.models._trees import Grower, changed

# All that a fit without warm start begins anew.
FITTED = (
    "trees_",
    "bases_",
    "inputs_",
    "scales_",
    "outputs_",
    "kernel_",
    "training_leaves_",
    "leaf_means_",
    "leaf_weights_",
    "validation_loss_",
    "oob_improvement_",
    "held_out_",
    "n_estimators_",
)


@document
class OKBoost(Grower):
    """Gradient boosting of output kernel trees (OKBoost), or of other base learners.

    The first prediction is the mean of the outputs in the kernel's feature space H. Each round
    grows a small tree on the residuals that are left in H, and adds ``learning_rate`` times the
    means of its leaves. With the linear kernel and one output it is least-squares gradient boosting
    (MART).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {shared_attributes}
    n_estimators_ : int
        Number of rounds; fewer than ``n_estimators`` if they were stopped early.
    train_loss_ : ndarray of shape (n_estimators_,)
        The mean loss in H, ‖φ(y) − F(x)‖², of the training rows after each round; with an
        approximate ``embedding``, of the embedded outputs.
    validation_loss_ : ndarray of shape (n_estimators_,)
        That of the rows held out, with ``n_iter_no_change``.
    held_out_ : ndarray of shape (n,), bool
        Which rows these are. Their outputs have no weight in predictions.
    oob_improvement_ : ndarray of shape (n_estimators_,)
        With ``subsample < 1``, by how much each round reduced the mean loss of the rows that it
        did not see.
    feature_importances_ : ndarray of shape (p,)
        Each feature's share of the total variance reduction, over all rounds.
    trees_ : okforest.engine.Trees
        The trees, of base "tree"; the members of a leaf are those rows that its mean is of.
    training_leaves_ : ndarray of shape (n_estimators_, n)
        The leaf that each training row reaches, counted in the order of members.
    leaf_means_ : ndarray of shape (n_leaves, rank)
        What each leaf adds to predictions, where the kernel has explicit features.
    leaf_weights_ : ndarray of shape (n_leaves, n)
        What each leaf adds to weights, where trees were grown from a Gram matrix and it takes no
        more than 256 MB. Elsewhere weights are made when they are asked for, at a cost of
        n × n_estimators_ for each prediction.
    bases_ : list
        The base learners, if they are no trees.
    inputs_ : ndarray or csr_array of shape (n, p)
        The training inputs, if they are no trees.
    scales_ : ndarray of shape (n_estimators_,)
        What each round is multiplied by.
    row_weight_ : ndarray of shape (n,)
        The weights of the training rows, zero for those held out.
    embedding_ : str
        The form of the outputs that was used.
    embedding_rank_ : int
        Number of columns of that form.
    embedding_residual_ : float
        What an approximate form leaves out; see :class:`OKExtraTrees`.
    categories_ : list
        For each feature its categories, sorted, or None if it is numeric.

    See Also
    --------
    DirectionBase : Rounds that fit any regressor in one direction of H.
    OKExtraTrees : A forest, which needs no tuning.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, "Gradient boosting for kernelized output spaces", ICML
    2007.

    Examples
    --------
    Complete the lower half of handwritten digits from the upper half, with the paper's best base
    learner, randomised trees:

    >>> from sklearn.datasets import load_digits
    >>> from okforest import OKBoost
    >>> from okforest.kernels import RBF
    >>> digits = load_digits().data / 16
    >>> upper, lower = digits[:, :32], digits[:, 32:]
    >>> model = OKBoost(
    ...     100, kernel=RBF(sigma="median"), splitter="random", max_features="sqrt", random_state=0
    ... )
    >>> model.fit(upper[:300], lower[:300]).predict(upper[500:502]).shape
    (2, 32)
    >>> bool(model.train_loss_[-1] < model.train_loss_[0])
    True
    """

    train_loss_: Floats
    validation_loss_: Floats
    oob_improvement_: Floats
    held_out_: Booleans
    n_estimators_: int
    training_leaves_: npt.NDArray[Any]
    leaf_means_: Floats
    leaf_weights_: Floats
    bases_: list[Any]
    inputs_: Inputs
    scales_: Floats
    row_weight_: Floats

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: Grower._parameter_constraints[name]
            for name in (
                "n_estimators",
                "kernel",
                "splitter",
                "max_features",
                "max_depth",
                "min_samples_leaf",
                "categorical_features",
                "embedding",
                "embedding_rank",
                "decoder",
                "random_state",
                "warm_start",
                "n_jobs",
                "verbose",
                "callback",
            )
        },
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "max_splits": [Interval(Integral, 1, None, closed="left")],
        "growth": [StrOptions({"variance", "gain"})],
        "subsample": [Interval(Real, 0.0, 1.0, closed="right")],
        "base": [StrOptions({"tree"}), HasMethods(["fit", "predict_weights"])],
        "line_search": ["boolean"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        n_estimators: int = 500,
        *,
        kernel: Any = "linear",
        learning_rate: float = 0.05,
        max_splits: int = 10,
        splitter: Literal["best", "random"] = "best",
        max_features: Any = None,
        growth: Literal["variance", "gain"] = "variance",
        max_depth: int | None = None,
        min_samples_leaf: float = 1,
        subsample: float = 1.0,
        base: Any = "tree",
        line_search: bool = False,
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        tol: float = 1e-4,
        categorical_features: Any = "from_dtype",
        embedding: Kind | Literal["auto"] = "auto",
        embedding_rank: int | None = None,
        decoder: Any = "auto",
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Any = None,
    ):
        self.n_estimators = n_estimators
        self.kernel = kernel
        self.learning_rate = learning_rate
        self.max_splits = max_splits
        self.splitter = splitter
        self.max_features = max_features
        self.growth = growth
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.subsample = subsample
        self.base = base
        self.line_search = line_search
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.categorical_features = categorical_features
        self.embedding = embedding
        self.embedding_rank = embedding_rank
        self.decoder = decoder
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    @fit_context(prefer_skip_nested_validation=False)  # base learners check what they are given
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OKBoost":
        """Learn the rounds.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs. With trees float32 and float64 arrays are not copied, and NaN is a missing
            value, for which every split learns a side.
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
        kept = self.warm_start and hasattr(self, "n_estimators_")
        if not kept:
            self._forget(*FITTED)  # a fit that fails leaves no model, not half of two
        X = self._check_inputs(X, reset=not kept, sample_weight=sample_weight)
        weight = check_weights(sample_weight, X)
        seed = self.seed_ if kept else self._draw_seed()
        held_out = self._hold_out(weight, seed)
        weight, validation = np.where([held_out, ~held_out], 0.0, weight)
        kernel, outputs = self._check_target(X, y, weight)
        if kept:
            self._check_going_on(X, kernel, outputs, weight)
        embedding = self._embed(kernel, outputs, seed)
        hidden = 0.0
        if held_out.any() and embedding.kind == "features":
            squares = hidden_squares(kernel, outputs[held_out])
            hidden = float(np.average(squares, weights=validation[held_out]))
        course = Course(self, X, embedding, weight, validation, hidden, seed)
        if kept:
            course.replay(self._rounds())
        course.run()
        self._learn(course)
        self.kernel_, self.outputs_ = kernel, outputs
        self.seed_, self.held_out_ = seed, held_out
        return self

    def _check_inputs(self, X: Any, *, reset: bool, sample_weight: Any = None) -> Inputs:
        if isinstance(self.base, str):
            return check_inputs(self, X, reset=reset, sample_weight=sample_weight)
        return check_numbers(self, X, reset=reset)  # the base learner checks the rest

    def _hold_out(self, weight: Floats, seed: int) -> Booleans:
        """Return which rows are kept for validation."""
        held_out = np.zeros(len(weight), dtype=bool)
        if self.n_iter_no_change is not None:
            rows = np.flatnonzero(weight)
            n_held_out = max(1, round(self.validation_fraction * len(rows)))
            if len(rows) - n_held_out < 2:
                raise ValueError(
                    f"validation_fraction={self.validation_fraction} leaves "
                    f"{len(rows) - n_held_out} of {len(rows)} rows to learn from; at least 2 are "
                    "needed. Lower it, or set n_iter_no_change=None."
                )
            held_out[np.random.default_rng(seed).choice(rows, n_held_out, replace=False)] = True
        return held_out

    def _check_going_on(
        self, X: Inputs, kernel: OutputKernel, outputs: Outputs, weight: Floats
    ) -> None:
        """Check that rounds can be added to those there are."""
        if isinstance(self.base, str) != hasattr(self, "trees_"):
            raise ValueError(changed("base is another"))
        if (self.n_iter_no_change is None) == self.held_out_.any():
            raise ValueError(changed("n_iter_no_change is other, and so are the rows held out,"))
        self._check_same_rows(X, outputs, weight)
        some = outputs[:: max(1, len(outputs) // 100)]
        if not np.array_equal(kernel(some), self.kernel_(some)):
            raise ValueError(changed("kernel is another"))
        if self.n_estimators < self.n_estimators_:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {self.n_estimators_} rounds so "
                "far; with warm_start=True it can only grow."
            )
        if self.n_estimators == self.n_estimators_:
            warn("warm_start=True without a larger n_estimators adds no rounds.", stacklevel=4)

    def _training_weight(self) -> Floats:
        return self.row_weight_

    def _has_seen(self, X: Inputs) -> bool:
        if hasattr(self, "trees_"):
            return super()._has_seen(X)
        if sp.issparse(X) or sp.issparse(self.inputs_):
            return bool(abs(sp.csr_array(X) - sp.csr_array(self.inputs_)).sum() == 0)
        return np.array_equal(X, self.inputs_, equal_nan=True)

    def _embed(self, kernel: OutputKernel, outputs: Outputs, seed: int) -> Embedding:
        kind = self.embedding
        if not isinstance(self.base, str) and kind == "gram":
            raise ValueError(
                f"base={self.base!r} is fitted to residuals as vectors, and embedding='gram' has "
                "none; use 'auto' or 'factor'."
            )
        embedding = embed(kernel, outputs, kind, self.embedding_rank, seed)
        if not isinstance(self.base, str) and embedding.kind == "gram":
            return embed(kernel, outputs, "factor")
        return embedding

    def _rules(self, weight: Floats) -> Rules:
        n_leaves = min(self.max_splits, np.iinfo(np.int32).max - 1) + 1
        return replace(super()._rules(weight), order=self.growth, max_leaf_nodes=n_leaves)

    def _learn(self, course: Course) -> None:
        self._forget("leaf_means_", "leaf_weights_", "validation_loss_", "oob_improvement_")
        self.n_estimators_ = len(course.scales)
        self.scales_ = np.array(course.scales)
        self.row_weight_ = course.weight
        self.train_loss_ = np.array(course.train_loss)
        if self.n_iter_no_change is not None:
            self.validation_loss_ = np.array(course.validation_loss)
        if course.oob_improvement:
            self.oob_improvement_ = np.array(course.oob_improvement)
        if isinstance(self.base, str):
            self.trees_ = Trees.join(course.learners)
            self.training_leaves_ = np.array(course.places)
        else:
            self.bases_, self.inputs_ = course.learners, course.layouts.rows.copy()
        if course.table is not None:
            setattr(self, course.table, np.concatenate(course.vectors))
        self.embedding_ = course.embedding.kind
        self.embedding_rank_ = course.embedding.rank
        self.embedding_residual_ = course.embedding.residual

    def predict_weights(self, X: Any) -> Weights:
        """Return the weights of the training outputs: the lossless prediction.

        They are hardly ever zero: the matrix takes 12 bytes for each input and training output.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : csr_array of shape (n, n_train)
            Row i holds w(x_i), which may be negative, and sums to one.
        """
        return self._weights(X).tocsr()

    def staged_weights(self, X: Any) -> Iterator[Weights]:
        """Yield the weights after each round.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Yields
        ------
        W : csr_array of shape (n, n_train)
            As of :meth:`predict_weights`. Without ``leaf_weights_`` this takes an
            n_train × n_train matrix.
        """
        for W in self._staged(*self._rounds_at(X)):
            yield W.tocsr()

    def staged_predict(self, X: Any, candidates: Any = None, step: int = 1) -> Iterator[Outputs]:
        """Yield the predicted outputs after each round.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        candidates : array-like, optional
            Outputs to choose from; by default ``decoder`` decides.
        step : int, default=1
            After every so many rounds, and after the last.

        Yields
        ------
        y : ndarray of n outputs
            As of :meth:`predict`. Without ``leaf_means_`` or ``leaf_weights_`` this takes an
            n_train × n_train matrix.
        """
        span = self.span_
        decoder = as_decoder(self.decoder, span.kernel)
        if candidates is not None:
            decoder = Candidates(candidates)
        for m, W in enumerate(self._staged(*self._rounds_at(X)), start=1):
            if m % step == 0 or m == self.n_estimators_:
                yield decoder.decode(W, span)

    def staged_losses(self, X: Any, y: Any) -> Iterator[Floats]:
        """Yield the losses in H after each round, without pre-images.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like
            Their true outputs.

        Yields
        ------
        losses : ndarray of shape (n,)
            ‖φ(y) − F(x)‖² of each row. Where the kernel has no explicit features, this takes an
            n_train × n_train matrix.
        """
        span = self.span_
        outputs = check_truth(span, X, y)
        rounds, coordinates = self._rounds_at(X)
        if hasattr(self, "leaf_means_"):
            for W in self._staged(rounds, coordinates):
                yield span.losses(W, outputs)
            return
        initial = self._initial()
        K, cross = span.kernel(span.outputs), span.kernel(outputs, span.outputs)
        inner = K @ initial
        weights = np.tile(initial, (len(outputs), 1))
        losses = span.kernel.diag(outputs) - 2.0 * cross @ initial
        losses += initial @ inner
        known = getattr(self, "leaf_weights_", None)
        for own, (step, vectors) in zip(
            coordinates, contributions(rounds, initial, known), strict=True
        ):
            # ‖φ − F − d‖² = ‖φ − F‖² + ⟨d, d + 2F − 2φ⟩
            change, with_all = step.predict(vectors, own), step.predict(vectors @ K, own)
            losses += np.einsum("ij,ij->i", with_all, change + 2.0 * weights)
            losses -= 2.0 * np.einsum("ij,ij->i", change, cross)
            weights += change
            yield np.maximum(losses, 0.0)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the kernel R² after each round.

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
            As of :meth:`score`.
        """
        span = self.span_
        outputs = check_truth(span, X, y)
        weight = check_sample_weight(sample_weight, outputs, ensure_non_negative=True)
        for losses in self.staged_losses(X, y):
            yield loss_r2(span.kernel, losses, outputs, weight)

    def compact(self) -> Self:
        """Return a copy of the model without what prediction does not need.

        As of other models; besides, ``leaf_weights_`` are dropped, and made again from the rounds
        when weights are asked for.

        Returns
        -------
        model : estimator
            The smaller model; it predicts the same, up to rounding.
        """
        model = super().compact()
        model._forget("leaf_weights_")
        return model

    @property
    def feature_importances_(self) -> Floats:
        """Each feature's share of the total variance reduction, summing to one."""
        if hasattr(self, "bases_"):
            raise AttributeError(
                f"base={self.base!r} is no tree, and has no feature_importances_; use base='tree'."
            )
        return super().feature_importances_

    def _leaves(self, X: Any) -> Ints:
        if hasattr(self, "bases_"):
            raise ValueError(f"base={self.base!r} has no trees, and no leaves; use base='tree'.")
        return super()._leaves(X)

    def _rounds(self) -> Rounds:
        if hasattr(self, "trees_"):
            return LeafRounds(self.trees_, self.training_leaves_, self.scales_)
        return WeightRounds(self.bases_, self.inputs_, self.scales_)

    def _rounds_at(self, X: Any) -> tuple[Rounds, list[Any]]:
        """Return the rounds, and the coordinates of inputs in each."""
        check_is_fitted(self, "n_estimators_")
        X = self._check_inputs(X, reset=False)
        rounds = self._rounds()
        return rounds, rounds.coordinates(X, self._prediction_threads(X.shape[0]))

    def _weights(self, X: Any) -> BoostedWeights:
        rounds, coordinates = self._rounds_at(X)
        known = None
        if hasattr(self, "leaf_means_"):
            assert isinstance(rounds, LeafRounds)
            features = self._features()
            sums = rounds.sums(self.leaf_means_, coordinates)
            known = features, sums + self._initial() @ features
        return self._boosted(rounds, coordinates, known)

    def _initial(self) -> Floats:
        """Return the weights of the mean that boosting starts from."""
        return self.row_weight_ / self.row_weight_.sum()

    def _features(self) -> Floats:
        # In order, for a mean to be the same to the last bit whatever array y was.
        return np.ascontiguousarray(self.kernel_.features(self.outputs_))

    def _boosted(
        self, rounds: Rounds, coordinates: list[Any], known: tuple[Floats, Floats] | None
    ) -> BoostedWeights:
        leaf_weights = getattr(self, "leaf_weights_", None)
        n = coordinates[0].shape[0]
        return BoostedWeights(rounds, coordinates, n, self._initial(), leaf_weights, known)

    def _staged(self, rounds: Rounds, coordinates: list[Any]) -> Iterator[WeightMatrix]:
        """Yield the weights after each round, or what stands for them."""
        initial = self._initial()
        n = coordinates[0].shape[0]
        if hasattr(self, "leaf_means_"):
            assert isinstance(rounds, LeafRounds)
            features = self._features()
            F = np.tile(initial @ features, (n, 1))
            for m, own in enumerate(coordinates):
                F = F + self.leaf_means_[rounds.offsets[m] + own]
                yield self._boosted(rounds, coordinates[: m + 1], (features, F))
            return
        weights = np.tile(initial, (n, 1))
        known = getattr(self, "leaf_weights_", None)
        for own, (step, vectors) in zip(
            coordinates, contributions(rounds, initial, known), strict=True
        ):
            weights = weights + step.predict(vectors, own)
            yield DenseWeights(weights)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not isinstance(self.base, str) and hasattr(self.base, "fit"):
            tags.input_tags = get_tags(self.base).input_tags
        return tags
