"""Boosting of base learners other than trees.

A base learner has ``fit(X, R)`` and ``predict_weights(X)``; its prediction is the product of these
weights with the residuals R that it was fitted to.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from okforest._typing import Floats, Outputs
from okforest.embedding import Embedding, EmbeddingKind, embed
from okforest.engine.inputs import Inputs, Layouts
from okforest.kernels import Linear, OutputKernel, as_kernel
from okforest.models.base import OKModel
from okforest.models.boosting.plan import BoostPlan
from okforest.models.boosting.residuals import VectorResiduals
from okforest.models.boosting.rounds import BLOCK_PRODUCTS, Round, RoundLearner, Rounds
from okforest.weights import WeightMatrix, as_weights


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
        """Subtract what later rounds take from this one, and add its own weights."""
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
    line_search : bool
        Whether to multiply it by the factor that minimises the training loss.
    """

    residuals: VectorResiduals

    def __init__(self, plan: BoostPlan, base: Any, *, learning_rate: float, line_search: bool):
        super().__init__(plan.initial, VectorResiduals(plan.embedding, plan.initial))
        self.base, self.seed = base, plan.seed
        self.inputs = Layouts(plan.inputs.X).rows
        self.learning_rate, self.line_search = learning_rate, line_search
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
        best = self.residuals.best_scale(weights, weight) if self.line_search else 1.0
        self._subtract(WeightsRound(self.learning_rate * best, weights))
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
