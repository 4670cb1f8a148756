"""One fit of boosting: its rounds, the residuals that they leave, and when they stop."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from okforest._categories import category_counts
from okforest._progress import progress_of
from okforest._threads import thread_count
from okforest._typing import Floats
from okforest.embedding import Embedding
from okforest.engine import grow
from okforest.engine.inputs import Inputs, Layouts
from okforest.kernels import Linear, as_kernel
from okforest.models._base import Averager
from okforest.models._residuals import Residuals, VectorResiduals, residuals_of
from okforest.models._rounds import (
    LeafRound,
    LeafRounds,
    Rounds,
    WeightsRound,
    leaves_of,
    number_leaves,
    weights_of,
)

# What leaves add to the weights of predictions is kept where it takes no more than this.
LEAF_WEIGHTS_BYTES = 2**28
# Threads help where residuals are no fewer numbers than this.
MANY = 2**18


class Course:
    """The rounds of one fit, and what they leave.

    Parameters
    ----------
    model : OKBoost
        The parameters.
    X : ndarray or sparse matrix of shape (n, p)
        Inputs.
    embedding : Embedding
        Outputs.
    weight : ndarray of shape (n,)
        Weights of the rows; zero for those that are only predicted.
    validation : ndarray of shape (n,)
        Weights of the rows in the validation loss; all zero if there is none.
    hidden : float
        The part of the validation loss that is in no direction of the embedding.
    seed : int
        What random numbers derive from: round m depends on it and on m alone.
    """

    def __init__(
        self,
        model: Any,
        X: Inputs,
        embedding: Embedding,
        weight: Floats,
        validation: Floats,
        hidden: float,
        seed: int,
    ):
        self.model, self.embedding, self.seed = model, embedding, seed
        self.layouts = Layouts(X)
        self.weight, self.validation, self.hidden = weight, validation, hidden
        self.initial = weight / weight.sum()
        self.table = self._table()
        self.residuals: Residuals = residuals_of(
            embedding, self.initial, track=self.table == "leaf_weights_"
        )
        n_threads = thread_count(model.n_jobs)
        self.n_threads = n_threads if self.residuals.values.size >= MANY else 1
        self.grows = isinstance(model.base, str)
        self.n_categories = category_counts(model.categories_) if self.grows else None
        self.first_validation_loss = self._losses(self.residuals.squares())[1]
        self.learners: list[Any] = []
        self.places: list[npt.NDArray[Any]] = []
        self.vectors: list[Floats] = []
        self.scales: list[float] = []
        self.train_loss: list[float] = []
        self.validation_loss: list[float] = []
        self.oob_improvement: list[float] = []

    def _table(self) -> Literal["leaf_means_", "leaf_weights_"] | None:
        """Return what is kept of each leaf for prediction."""
        n, rank = self.embedding.values.shape
        if not isinstance(self.model.base, str):
            return None
        if self.embedding.kind == "features" and rank <= n:
            return "leaf_means_"
        n_leaves = self.model.n_estimators * min(self.model.max_splits + 1, n)
        if self.embedding.kind == "gram" and 8 * n * n_leaves <= LEAF_WEIGHTS_BYTES:
            return "leaf_weights_"
        return None

    def replay(self, rounds: Rounds) -> None:
        """Repeat the rounds of an earlier fit."""
        model = self.model
        for m in range(len(rounds)):
            self._subtract(rounds[m])
        if isinstance(rounds, LeafRounds):
            self.learners = [rounds.trees[m] for m in range(len(rounds))]
            self.places = [*rounds.places]
        else:
            self.learners = list(model.bases_)
        self.scales = model.scales_.tolist()
        self.train_loss = model.train_loss_.tolist()
        if self.validation.any():
            self.validation_loss = model.validation_loss_.tolist()
        self.oob_improvement = getattr(model, "oob_improvement_", np.empty(0)).tolist()

    def run(self) -> None:
        """Add rounds until there are enough, or they no longer help."""
        model, first = self.model, len(self.scales)
        progress = progress_of(first, model.n_estimators, model.verbose, model.callback)
        for m in range(first, model.n_estimators):
            self._add(m)
            if progress is not None:
                progress(m + 1 - first)
            if self._helps_no_more():
                break

    def _add(self, m: int) -> None:
        weight = self._draw(m)
        step = self._grow(m, weight) if self.grows else self._fit_base(m, weight)
        unseen = (weight == 0) & (self.weight > 0)
        before = self.residuals.squares() if unseen.any() else None
        self._subtract(step)
        squares = self.residuals.squares()
        if not np.isfinite(squares).all():
            raise ValueError(f"base={self.model.base!r} predicts weights that are not finite.")
        train, validation = self._losses(squares)
        self.scales.append(step.scale)
        self.train_loss.append(train)
        self.validation_loss.append(validation)
        if before is not None:
            change = (before - squares)[unseen]
            self.oob_improvement.append(float(np.average(change, weights=self.weight[unseen])))

    def _draw(self, m: int) -> Floats:
        """Return the weights of the rows that take part in a round."""
        if self.model.subsample == 1.0:
            return self.weight
        rows = np.flatnonzero(self.weight)
        n_drawn = max(2, int(self.model.subsample * len(rows)))
        drawn = np.random.default_rng([self.seed, m]).choice(rows, n_drawn, replace=False)
        weight = np.zeros_like(self.weight)
        weight[drawn] = self.weight[drawn]
        return weight

    def _grow(self, m: int, weight: Floats) -> LeafRound:
        tree = grow(
            self.layouts.columns,
            self.residuals.values,
            self.model._rules(weight),
            n_categories=self.n_categories,
            gram=self.residuals.is_gram,
            row_weight=weight,
            seed=self.seed,
            first_tree=m,
        )
        tree = replace(tree, row_weight=self.weight)  # of members, whichever were drawn
        places = number_leaves(tree)[1][tree.apply(self.layouts.rows)[:, 0]]
        places = places.astype(np.min_scalar_type(min(self.model.max_splits, len(weight))))
        self.learners.append(tree)
        self.places.append(places)
        return LeafRound(self.model.learning_rate, leaves_of(tree, places), self.n_threads)

    def _fit_base(self, m: int, weight: Floats) -> WeightsRound:
        assert isinstance(self.residuals, VectorResiduals)
        base = clone(self.model.base)
        if isinstance(base, Averager) and not isinstance(as_kernel(base.kernel), Linear):
            raise ValueError(
                f"base has kernel={base.kernel!r}; residuals are vectors, whose kernel is 'linear'."
                " Give the kernel of the outputs to OKBoost, and leave that of the base learner."
            )
        seed = int(np.random.default_rng([self.seed, m, 1]).integers(2**31 - 1))
        names = [n for n in base.get_params() if f"__{n}".endswith("__random_state")]
        base.set_params(**dict.fromkeys(names, seed))
        more = {} if (weight == 1.0).all() else {"sample_weight": weight}
        X = self.layouts.rows
        base.fit(X, self.residuals.values.copy(), **more)
        self.learners.append(base)
        weights = _check_weights(weights_of(base, X), base, len(weight))
        best = self.residuals.best_scale(weights, weight) if self.model.line_search else 1.0
        return WeightsRound(self.model.learning_rate * best, weights)

    def _subtract(self, step: Any) -> None:
        vectors = self.residuals.subtract(step)
        if self.table is not None:
            assert vectors is not None
            self.vectors.append(vectors)

    def _losses(self, squares: Floats) -> tuple[float, float]:
        """Return the mean losses of the training rows and of those held out."""
        total = self.validation.sum()
        validation = float(self.validation @ squares) / total + self.hidden if total > 0 else np.nan
        return float(self.initial @ squares), validation

    def _helps_no_more(self) -> bool:
        """Tell whether the last rounds have not reduced the validation loss by enough."""
        n = self.model.n_iter_no_change
        if n is None or len(self.validation_loss) < n:
            return False
        losses = [self.first_validation_loss, *self.validation_loss]
        least = self.model.tol * self.first_validation_loss
        return min(losses[-n:]) >= min(losses[:-n]) - least


def _check_weights(weights: Any, base: Any, n: int) -> Any:
    if not hasattr(weights, "tocsr") or weights.shape != (n, n):
        raise TypeError(
            f"predict_weights of base={base!r} returns a {type(weights).__name__} of shape "
            f"{getattr(weights, 'shape', 'unknown')}; it must return a sparse matrix of "
            f"scipy.sparse, or okforest.embedding.ProductWeights, of shape ({n}, {n}): a row for "
            "each input and a column for each training row."
        )
    return weights
