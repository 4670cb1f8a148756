"""Boosting of base learners other than trees.

A base learner has ``fit(X, R)`` and ``predict_weights(X)``; its prediction is the product of these
weights with the residuals R that it was fitted to.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from okforest._utils.arrays import Floats, Inputs, Layouts, Outputs, check_sparse
from okforest._utils.compat import HasMethods, StrOptions, fit_context, rows_of
from okforest._utils.inputs import check_weights
from okforest._utils.state import FittedState, check_floats
from okforest.embedding import Embedding, EmbeddingKind, embed
from okforest.kernels import Linear, OutputKernel, as_kernel
from okforest.models.base import OKModel
from okforest.models.boosting.rounds import (
    BLOCK_PRODUCTS,
    BoostPlan,
    Round,
    RoundLearner,
    Rounds,
    VectorResiduals,
)
from okforest.weights import ProductWeights, WeightMatrix, as_weights

BLOCK_BYTES = 2**23  # of weights that are pulled back at a time


@dataclass(frozen=True)
class WeightsRound(Round):
    """A base learner that predicts weights over the residuals.

    Parameters
    ----------
    scale : float
        The factor of its predictions.
    weights : WeightMatrix of shape (n_train, n_train)
        The weights that it predicts for the training rows.
    """

    scale: float
    weights: WeightMatrix

    def subtract(self, values: Floats) -> Floats:
        """Return the values before the round, times the scale."""
        vectors = self.scale * values
        for columns in _column_blocks(self.weights, vectors):
            values[:, columns] -= self.weights @ vectors[:, columns]
        return vectors

    def pull_back(self, later: Floats, coordinates: WeightMatrix) -> None:
        """Turn weights over the residuals after this round into weights over those before it.

        ``later`` has a column for each prediction, with the sum of its weights in all later rounds,
        and is changed in place to include this round. ``coordinates`` are those of the predictions.
        """
        taken = self.weights.transposed_product(later)
        own = coordinates.entries().T
        later += self.scale * (np.asarray(own.todense() if sp.issparse(own) else own) - taken)


class BaseRounds(Rounds):
    """Fitted base learners, with the training inputs.

    Parameters
    ----------
    bases : list
        The base learners.
    inputs : ndarray or csr_array of shape (n_train, p)
        The training inputs, for which weights are predicted when they are needed.
    scales : ndarray of shape (n_rounds,)
        The factor of each base learner.
    initial : ndarray of shape (n_train,)
        The weights of the mean, from which boosting starts.
    """

    def __init__(self, bases: list[Any], inputs: Inputs, scales: Floats, initial: Floats):
        super().__init__(scales, initial)
        self.bases, self.inputs = bases, inputs

    def __getitem__(self, m: int) -> WeightsRound:
        return WeightsRound(self.scales[m], weights_of(self.bases[m], self.inputs))

    def coordinates(self, X: Inputs, n_threads: int = 1) -> list[WeightMatrix]:
        """Return the weights that each base learner predicts."""
        return [weights_of(base, X) for base in self.bases]

    def predict(self, vectors: Floats, coordinates: WeightMatrix) -> Floats:
        """Return the weighted sums of the vectors."""
        result = np.empty((coordinates.shape[0], vectors.shape[1]))
        for columns in _column_blocks(coordinates, vectors):
            result[:, columns] = coordinates @ vectors[:, columns]
        return result

    def dense_weights(self, coordinates: list[WeightMatrix]) -> Floats:
        """Return the weights of predictions as an array."""
        n, n_train = coordinates[0].shape[0], len(self.initial)
        later = np.zeros((n_train, n))
        size = max(1, BLOCK_BYTES // (8 * n_train))
        blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
        for m in reversed(range(len(coordinates))):
            step = self[m]
            for rows in blocks:
                step.pull_back(later[:, rows], coordinates[m][rows])
        for rows in blocks:
            later[:, rows] += self.initial[:, None] * (1.0 - later[:, rows].sum(axis=0))
        return later.T


class BaseLearner(RoundLearner):
    """Fits a clone of the base learner in each round.

    Parameters
    ----------
    plan : BoostPlan
        The data.
    base : estimator
        The base learner.
    learning_rate : float
        The factor of each round.
    """

    residuals: VectorResiduals

    def __init__(self, plan: BoostPlan, base: Any, *, learning_rate: float):
        super().__init__(plan.initial, VectorResiduals(plan.embedding, plan.initial))
        self.base, self.seed = base, plan.seed
        self.inputs = Layouts(plan.inputs.X).rows
        self.learning_rate = learning_rate
        self.bases: list[Any] = []

    def add(self, m: int, weight: Floats) -> None:
        """Fit the base learner to rows of these weights, and subtract its predictions."""
        base = clone(self.base)
        seed = int(np.random.default_rng([self.seed, m, 1]).integers(2**31 - 1))
        names = [name for name in base.get_params() if f"__{name}".endswith("__random_state")]
        base.set_params(**dict.fromkeys(names, seed))
        weighted = {} if (weight == 1.0).all() else {"sample_weight": weight}
        if weighted and not has_fit_parameter(base, "sample_weight"):
            raise ValueError(
                f"the fit method of base={self.base!r} has no parameter sample_weight, which "
                "subsample, n_iter_no_change and weighted rows need. Add it, or do not use these."
            )
        base.fit(self.inputs, self.residuals.values.copy(), **weighted)
        self.bases.append(base)
        weights = weights_of(base, self.inputs)
        _check_shape(weights, base, len(weight))
        self._subtract(WeightsRound(self.learning_rate, weights))
        if not np.isfinite(self.residuals.squares()).all():
            raise ValueError(f"base={self.base!r} predicts weights that are not finite.")

    def replay(self, rounds: BaseRounds) -> None:
        """Subtract the predictions of the base learners of a previous fit, and keep them."""
        self.bases = [*rounds.bases]
        for m in range(len(rounds)):
            self._subtract(rounds[m])

    def _subtract(self, step: WeightsRound) -> None:
        self.residuals.subtract(step)
        self.scales.append(step.scale)

    def rounds(self) -> BaseRounds:
        """Return all base learners so far, with a copy of the inputs."""
        return BaseRounds(self.bases, self.inputs.copy(), np.array(self.scales), self.initial)


def _column_blocks(weights: WeightMatrix, vectors: Floats) -> Iterator[slice]:
    """Divide columns of vectors into blocks whose products with the weights take a short time."""
    size = max(1, BLOCK_PRODUCTS // max(1, prod(weights.shape)))
    return (slice(i, i + size) for i in range(0, vectors.shape[1], size))


def weights_of(base: Any, X: Inputs) -> WeightMatrix:
    """Return the weights that a base learner predicts, in the form that takes the least memory."""
    return as_weights(getattr(base, "weight_matrix", base.predict_weights)(X))


def _check_shape(weights: WeightMatrix, base: Any, n: int) -> None:
    if weights.shape != (n, n):
        raise TypeError(
            f"predict_weights of base={base!r} returned weights of shape {weights.shape} for the "
            f"{n} training rows; expected ({n}, {n}): a row for each input and a column for each "
            "training row, as a sparse matrix or weights of okforest.weights."
        )


def check_base(base: Any) -> None:
    """Raise a ValueError unless this is "tree" or a base learner that can be fitted to vectors."""
    if isinstance(base, str):
        if base != "tree":
            raise ValueError(
                f"base={base!r} is not known; use base='tree' or an estimator, such as "
                "OKNeighbors()."
            )
        return
    if isinstance(base, type):
        raise ValueError(
            f"base={base.__name__} is a class; pass an object, such as {base.__name__}()."
        )
    missing = [name for name in ("fit", "predict_weights", "get_params") if not hasattr(base, name)]
    if missing == ["predict_weights"] and hasattr(base, "predict"):
        raise ValueError(
            f"base={base!r} has no predict_weights; to boost a regressor, pass "
            f"base=DirectionBase({base!r})."
        )
    if missing:
        raise ValueError(
            f"base={base!r} has no {' and no '.join(missing)}; use base='tree', a model of "
            "okforest, or an estimator with fit and predict_weights, derived from "
            "sklearn.base.BaseEstimator."
        )
    if isinstance(base, OKModel) and not isinstance(as_kernel(base.kernel), Linear):
        raise ValueError(
            f"base={base!r} has kernel={base.kernel!r}, but base learners are fitted to residuals, "
            "which are vectors, by their linear kernel. Pass the kernel to OKBoost, and leave that "
            "of the base learner at its default."
        )


def embed_vectors(
    kernel: OutputKernel,
    outputs: Outputs,
    kind: EmbeddingKind | Literal["auto"],
    rank: int | None,
    seed: int,
    weight: Floats,
) -> Embedding:
    """Embed outputs as vectors, which base learners are fitted to."""
    if kind == "gram":
        raise ValueError(
            "embedding='gram' gives no vectors, which base learners other than trees are fitted "
            "to; use embedding='auto' or 'factor'."
        )
    if kind == "auto":
        dim = kernel.feature_dim(outputs)
        kind = "features" if dim is not None and dim <= len(outputs) else "factor"
    return embed(kernel, outputs, kind, rank, seed, weight)


# Directions of residuals with more rows and columns than this are found by Lanczos iterations.
DENSE = 256


class DirectionBase(FittedState):
    """A base learner for :class:`OKBoost`: any regressor, in one direction of feature space.

    Residuals φ_i are projected on a direction v = Σ_i a_i φ_i of length one, and a regressor f is
    fitted to the projections ⟨φ_i, v⟩. The prediction is f(x) v; its weights over the residuals are
    f(x) a. With one output and the linear kernel this is gradient boosting of the regressor.

    Parameters
    ----------
    regressor : estimator
        A regressor of scikit-learn, or one with the same methods. It is fitted to the inputs as
        they are.
    direction : {"principal", "random", "sample"}, default="principal"
        "principal" is the direction with the largest sum of squared projections, "random" is
        Σ_i g_i φ_i with standard normal g_i, and "sample" is the direction of one nonzero residual,
        drawn at random.
    random_state : int, RandomState instance or None, default=None
        The seed of "random" and "sample". OKBoost sets it to a new value in each round.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    coefficients_ : ndarray of shape (n,)
        The coefficients a_i of the direction; all zero if all residuals are.

    See Also
    --------
    OKBoost : Boosting, with this as ``base``.

    References
    ----------
    P. Geurts, "Kernelizing the output of tree-based methods", talk, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from okforest import DirectionBase, OKBoost
    >>> digits = load_digits().data / 16
    >>> upper, lower = digits[:, :32], digits[:, 32:]
    >>> base = DirectionBase(DecisionTreeRegressor(max_depth=4))
    >>> model = OKBoost(30, learning_rate=0.3, base=base, random_state=0)
    >>> model.fit(upper[:300], lower[:300]).predict(upper[500:502]).shape
    (2, 32)
    """

    regressor_: Any
    coefficients_: Floats

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "regressor": [HasMethods(["fit", "predict"])],
        "direction": [StrOptions({"principal", "random", "sample"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        regressor: Any,
        direction: Literal["principal", "random", "sample"] = "principal",
        random_state: Any = None,
    ):
        self.regressor = regressor
        self.direction = direction
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "DirectionBase":
        """Choose a direction and fit the regressor to the projections.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Inputs.
        y : ndarray of shape (n, r)
            Residuals, as vectors.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, passed on to the regressor. A regressor without ``sample_weight``
            is fitted to the rows of positive weight, if these weights are all equal.

        Returns
        -------
        self : object
            The fitted base learner.
        """
        check_sparse(X, "X")
        weight = check_weights(sample_weight, y)
        self.coefficients_ = self._choose(y, weight)
        target = y @ (self.coefficients_ @ y)
        self.regressor_ = clone(self.regressor)
        if sample_weight is None:
            self.regressor_.fit(X, target)
        elif has_fit_parameter(self.regressor_, "sample_weight"):
            self.regressor_.fit(X, target, sample_weight=weight)
        else:
            used = np.flatnonzero(weight)
            if np.ptp(weight[used]) > 0:
                raise ValueError(
                    f"{self.regressor!r} does not support sample_weight, and the weights of the "
                    "rows differ; use a regressor that supports it, or fit without sample_weight."
                )
            self.regressor_.fit(rows_of(X, used), target[used])
        return self

    def _choose(self, y: Floats, weight: Floats) -> Floats:
        """Return the coefficients of the direction."""
        rng = check_random_state(self.random_state)
        if self.direction == "principal":
            return principal_coefficients(y, weight)
        if self.direction == "random":
            coefficients = np.where(weight > 0, rng.standard_normal(len(y)), 0.0)
        else:
            rows = np.flatnonzero((weight > 0) & y.any(axis=1))
            coefficients = np.zeros(len(y))
            coefficients[rng.choice(rows) if len(rows) else 0] = 1.0
        length = np.linalg.norm(coefficients @ y)
        return coefficients / length if length > 0 else np.zeros(len(y))

    def predict_weights(self, X: Any) -> ProductWeights:
        """Return the weights over the residuals, f(x) a.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : ProductWeights of shape (n, n_train)
            The weights, the product of a column and a row.
        """
        check_is_fitted(self, "regressor_")
        check_sparse(X, "X")
        values = np.asarray(self.regressor_.predict(X), dtype=np.float64)
        return ProductWeights(values.reshape(-1, 1), self.coefficients_[None, :])

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes are valid, those of a model included."""
        super().check_state()
        check_floats(self, "coefficients_", 1)
        if not callable(getattr(self.regressor_, "predict", None)):
            raise ValueError(
                f"regressor_ is of type {type(self.regressor_).__name__}, which has no predict"
            )
        if hasattr(self.regressor_, "check_state"):
            self.regressor_.check_state()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.regressor).input_tags
        return tags


def principal_coefficients(y: Floats, weight: Floats) -> Floats:
    """Return a, where v = Σ_i a_i y_i is the unit vector with the largest Σ_i ω_i ⟨y_i, v⟩².

    The sign is chosen so that the sum of the coefficients is not negative.
    """
    root = np.sqrt(weight)
    scaled = root[:, None] * y
    if not scaled.any():
        return np.zeros(len(y))
    square, u = _leading_singular(scaled)
    coefficients: Floats = root * u / np.sqrt(square)
    return coefficients if coefficients.sum() >= 0 else -coefficients


def _leading_singular(matrix: Floats) -> tuple[float, Floats]:
    """Return the square of the largest singular value of a nonzero matrix, and its left vector."""
    n, r = matrix.shape
    factor = matrix if r <= n else matrix.T  # its square matrix FᵀF is the smaller one
    size = factor.shape[1]
    if size > DENSE:
        product: Any = spla.LinearOperator((size, size), lambda v: factor.T @ (factor @ v))
        options: dict[str, Any] = {"v0": np.random.default_rng(0).standard_normal(size)}
        if "rng" in signature(spla.eigsh).parameters:  # restarts draw from it, since SciPy 1.17
            options["rng"] = 0
        values, vectors = spla.eigsh(product, k=1, which="LA", **options)
    else:
        values, vectors = sla.eigh(factor.T @ factor, subset_by_index=[size - 1, size - 1])
    leading = vectors[:, 0]
    return float(values[0]), factor @ leading / np.sqrt(values[0]) if r <= n else leading
