"""Gradient boosting in the output kernel's feature space."""

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import Tags, get_tags

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.codings import CategoricalEncoding
from okforest._utils.compat import Interval, StrOptions, fit_context, with_callbacks
from okforest._utils.errors import warn
from okforest._utils.inputs import (
    TrainingInputs,
    check_inputs,
    check_numbers,
    check_weights,
    code_categories,
    continue_inputs,
    learn_inputs,
    learn_numbers,
)
from okforest._utils.progress import progress_of
from okforest._utils.resources import thread_count
from okforest.embedding import EmbeddingKind, embed, leading_coordinates
from okforest.engine import DeviceName, GrowthRules
from okforest.kernels import OutputKernel
from okforest.models.boosting.bases import BaseLearner, BaseRounds, check_base, embed_vectors
from okforest.models.boosting.prediction import BoostedModel
from okforest.models.boosting.rounds import (
    Boosted,
    BoostPlan,
    EarlyStopping,
    LearningCurve,
    RoundLearner,
    hold_out,
    run_rounds,
)
from okforest.models.boosting.trees import TreeLearner, TreeRounds
from okforest.models.parameter_docs import document
from okforest.models.tree_methods import TreeMethods, changed


@document
class OKBoost(BoostedModel):
    """Gradient boosting of output kernel trees (OKBoost), or of other base learners.

    The first prediction is the mean of the outputs in the kernel's feature space H. Each round
    grows a small tree on the residuals in H, and adds ``learning_rate`` times the means of its
    leaves. With the linear kernel and one output it is least-squares gradient boosting (MART).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {shared_attributes}
    n_estimators_ : int
        Number of rounds; less than ``n_estimators`` after early stopping.
    train_loss_ : ndarray of shape (``n_estimators_``,)
        The mean loss in H, ‖φ(y) − F(x)‖², of the training rows after each round. With an
        approximate ``embedding`` it refers to the embedded outputs.
    validation_loss_ : ndarray of shape (``n_estimators_``,)
        The mean loss of the rows held out after each round, with ``n_iter_no_change``.
    held_out_ : ndarray of shape (n,), bool
        The rows held out for the validation loss. Their outputs have zero weight in predictions.
    oob_improvement_ : ndarray of shape (``n_estimators_``,)
        The reduction, by each round, of the mean loss of the rows that were not drawn for it, with
        ``subsample < 1``. NaN for rounds that used all rows, as in a warm start that changes
        ``subsample``.
    feature_importances_ : ndarray of shape (p,)
        Each feature's share of the total variance reduction over all rounds, with
        ``base="tree"``.
    trees_ : okforest.engine.Trees
        The trees, with ``base="tree"``. The members of a leaf are the rows whose mean it predicts.
    training_leaves_ : ndarray of shape (``n_estimators_``, n)
        The leaf that each training row reaches in each tree. Leaves are numbered in the order of
        their members.
    leaf_means_ : ndarray of shape (n_leaves, n_features)
        What each leaf of each tree adds to predictions, if the kernel has explicit features.
    leaf_coefficients_ : ndarray of shape (n_leaves, n)
        What each leaf of each tree adds to the weights of predictions, if trees were grown from a
        Gram matrix and it takes at most 256 MB. Otherwise weights are computed when they are
        needed, at a cost of n × ``n_estimators_`` per prediction.
    bases_ : list
        The fitted base learners, if they are not trees.
    inputs_ : ndarray or csr_array of shape (n, p)
        The training inputs, if the base learners are not trees.
    scales_ : ndarray of shape (``n_estimators_``,)
        The factor of each round, its ``learning_rate``.
    row_weight_ : ndarray of shape (n,)
        The weights of the training rows; zero for rows held out.
    embedding_ : str
        The form of the outputs that was used.
    embedding_rank_ : int
        Number of columns of that form.
    embedding_residual_ : float
        The error of an approximate form; see :class:`OKExtraTrees`.
    categories_ : list
        For each feature its sorted categories, or None if it is numeric, with ``base="tree"``.
    codings_ : list
        For each feature the coordinates of its categories, of missing values and of new categories,
        or None; absent if no feature has any.
    has_missing_ : ndarray of shape (p,), bool
        Which features had missing values in training, with ``base="tree"``.

    See Also
    --------
    DirectionBase : A base learner that fits a regressor in one direction of H.
    OKExtraTrees : A forest, which works well without tuning.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, "Gradient boosting for kernelized output spaces", ICML
    2007.

    Examples
    --------
    Predict the lower half of handwritten digits from the upper half, with the best base learner of
    the paper, randomised trees:

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TreeMethods._parameter_constraints,
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "max_splits": [Interval(Integral, 1, None, closed="left")],
        "max_bins": [Interval(Integral, 2, 255, closed="both"), None],
        "growth": [StrOptions({"variance", "gain"})],
        "subsample": [Interval(Real, 0.0, 1.0, closed="right")],
        "base": "no_validation",  # check_base has better messages
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
        max_bins: int | None = 255,
        splitter: Literal["best", "random"] = "best",
        max_features: Any = None,
        growth: Literal["variance", "gain"] = "variance",
        max_depth: int | None = None,
        min_samples_leaf: float = 1,
        subsample: float = 1.0,
        base: Any = "tree",
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        tol: float = 1e-4,
        categorical_features: Any = "from_dtype",
        categorical_encoding: CategoricalEncoding = "auto",
        embedding: EmbeddingKind | Literal["auto"] = "auto",
        embedding_rank: int | None = None,
        decoder: Any = "auto",
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        device: DeviceName = "cpu",
        verbose: int = 0,
        callback: Any = None,
    ):
        self.n_estimators = n_estimators
        self.kernel = kernel
        self.learning_rate = learning_rate
        self.max_splits = max_splits
        self.max_bins = max_bins
        self.splitter = splitter
        self.max_features = max_features
        self.growth = growth
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.subsample = subsample
        self.base = base
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.categorical_features = categorical_features
        self.categorical_encoding = categorical_encoding
        self.embedding = embedding
        self.embedding_rank = embedding_rank
        self.decoder = decoder
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.callback = callback

    @fit_context(prefer_skip_nested_validation=False)  # base learners validate their parameters
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OKBoost":
        """Fit the rounds.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs. With trees, float32 and float64 arrays are not copied, and NaN is a missing
            value; every split learns which side it goes to.
        y : array-like of n outputs
            Outputs, of the type that the kernel takes: numbers, vectors, labels, a list of any
            objects, or positions in a precomputed Gram matrix.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, of which at least two must be positive. A row of weight 3 equals
            three copies of it, also in ``min_samples_leaf``, unlike in scikit-learn. Exceptions are
            what a kernel learns from the outputs (``sigma="median"`` counts a row once) and the
            draws of ``subsample`` and ``validation_fraction``.

        Returns
        -------
        self : object
            The fitted model.
        """
        check_base(self.base)
        plan = self._plan(X, y, sample_weight)
        boosted = self._run(plan)
        self._finish(plan, boosted)
        return self

    def _continues(self) -> bool:
        """Return whether rounds are added to those of the previous fit."""
        return self.warm_start and hasattr(self, "n_estimators_")

    def _plan(self, X: Any, y: Any, sample_weight: Any) -> BoostPlan:
        """Validate the data, hold out rows, embed the outputs and fix the seed."""
        inputs = self._training_inputs(X, sample_weight)
        weight = check_weights(sample_weight, inputs.X)
        seed = self.seed_ if self._continues() else self._draw_seed()
        row_weight, validation_weight = weight, np.zeros_like(weight)
        stopping = None
        if self.n_iter_no_change is not None:
            row_weight, validation_weight = hold_out(weight, self.validation_fraction, seed)
            stopping = EarlyStopping(self.n_iter_no_change, self.tol)
        kernel, outputs = self.validate_outputs(inputs.X, y, row_weight)
        form = embed if self._boosts_trees() else embed_vectors
        embedding = form(kernel, outputs, self.embedding, self.embedding_rank, seed, row_weight)
        if self._boosts_trees():
            inputs = code_categories(
                inputs,
                self.categorical_encoding,
                lambda: leading_coordinates(embedding, row_weight, seed),
                row_weight,
                seed,
                boosted=True,
            )
        if self._continues():
            self._check_continuing(inputs, kernel, outputs, row_weight)
        return BoostPlan(
            inputs=inputs,
            kernel=kernel,
            outputs=outputs,
            embedding=embedding,
            row_weight=row_weight,
            validation_weight=validation_weight,
            seed=seed,
            subsample=self.subsample,
            n_rounds=self.n_estimators,
            stopping=stopping,
        )

    def _run(self, plan: BoostPlan) -> Boosted:
        """Run the rounds of a plan, after those of the previous fit if it is continued."""
        previous = self._previous() if self._continues() else None
        first = 0 if previous is None else len(previous.rounds)
        last, label = plan.n_rounds, "boosting rounds"
        with progress_of(first, last, self.verbose, self.callback, label, self) as progress:
            boosted = run_rounds(plan, self._learner(plan), previous, progress)
        if first and len(boosted.rounds) == first < plan.n_rounds:
            warn(
                f"warm_start=True adds no rounds: the previous fit stopped early after {first} "
                "rounds. Increase n_iter_no_change or decrease tol to continue.",
            )
        return boosted

    def _finish(self, plan: BoostPlan, boosted: Boosted) -> None:
        """Store what was learnt."""
        rounds, curve = boosted
        self._forget("leaf_means_", "leaf_coefficients_", "validation_loss_", "oob_improvement_")
        if isinstance(rounds, TreeRounds):
            self.trees_, self.training_leaves_ = rounds.trees, rounds.training_leaves
            if rounds.leaf_means is not None:
                self.leaf_means_ = rounds.leaf_means
            if rounds.leaf_coefficients is not None:
                self.leaf_coefficients_ = rounds.leaf_coefficients
            self.categories_ = plan.inputs.categories
            self.has_missing_ = plan.inputs.has_missing
            if plan.inputs.coded is not None:
                self.codings_ = plan.inputs.coded.codings
        elif isinstance(rounds, BaseRounds):
            self.bases_, self.inputs_ = rounds.bases, rounds.inputs
        self.n_estimators_, self.scales_ = len(rounds), rounds.scales
        self.train_loss_ = np.array(curve.train_loss)
        if plan.stopping is not None:
            self.validation_loss_ = np.array(curve.validation_loss)
        if not np.isnan(curve.oob_improvement).all():
            self.oob_improvement_ = np.array(curve.oob_improvement)
        self.row_weight_, self.held_out_ = plan.row_weight, plan.held_out
        self.embedding_ = plan.embedding.kind
        self.embedding_rank_ = plan.embedding.rank
        self.embedding_residual_ = plan.embedding.residual
        self.seed_ = plan.seed
        self.store_outputs(plan.kernel, plan.outputs)

    def _boosts_trees(self) -> bool:
        """Return whether ``base`` asks for trees; ``_has_trees`` is about the fitted rounds."""
        return isinstance(self.base, str)

    def _learner(self, plan: BoostPlan) -> RoundLearner:
        if self._boosts_trees():
            return TreeLearner(
                plan,
                rules=partial(
                    self._rules, plan.inputs.n_features, n_columns=plan.inputs.X.shape[1]
                ),
                learning_rate=self.learning_rate,
                max_splits=self.max_splits,
                max_bins=self.max_bins,
                n_threads=thread_count(self.n_jobs),
                device=self.device,
            )
        if self.device != "cpu":
            message = f"device={self.device!r} grows trees; other base learners run on the CPU."
            if self.device == "cuda":
                raise ValueError(f"{message} Set base='tree' or device='cpu'.")
            warn(message)
        return BaseLearner(plan, self.base, learning_rate=self.learning_rate)

    def _previous(self) -> Boosted:
        nothing = np.full(self.n_estimators_, np.nan)
        curve = LearningCurve(
            self.train_loss_.tolist(),
            getattr(self, "validation_loss_", nothing).tolist(),
            getattr(self, "oob_improvement_", nothing).tolist(),
        )
        return Boosted(self._rounds(), curve)

    def _training_inputs(self, X: Any, sample_weight: Any) -> TrainingInputs:
        trees = self._boosts_trees()
        if not self._continues():
            return learn_inputs(self, X, sample_weight) if trees else learn_numbers(self, X)
        if trees != self._has_trees():
            raise ValueError(changed("base"))
        X = check_inputs(self, X, coded=False) if trees else check_numbers(self, X)
        return continue_inputs(self, X)

    def _check_continuing(
        self, inputs: TrainingInputs, kernel: OutputKernel, outputs: Outputs, weight: Floats
    ) -> None:
        """Check that rounds can be added to those of the previous fit."""
        if (self.n_iter_no_change is None) == self.held_out_.any():
            raise ValueError(changed("n_iter_no_change, which decides the rows held out,"))
        self._check_same_rows(inputs, outputs, weight)
        self._check_same_kernel(kernel, outputs)
        if self.n_estimators < self.n_estimators_:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {self.n_estimators_} rounds so "
                "far; with warm_start=True it can only increase."
            )
        if self.n_estimators == self.n_estimators_:
            warn("warm_start=True without a larger n_estimators adds no rounds.")

    def _rules(
        self, n_features: int, n_samples: float, n_columns: int | None = None
    ) -> GrowthRules:
        n_leaves = min(self.max_splits, np.iinfo(np.int32).max - 1) + 1
        return replace(
            super()._rules(n_features, n_samples, n_columns),
            order=self.growth,
            max_leaf_nodes=n_leaves,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not self._boosts_trees() and hasattr(self.base, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.base).input_tags
        return tags
