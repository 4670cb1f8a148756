"""Base learners of boosting that learn one direction of the feature space at a time."""

from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg as sla
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from okforest._compat import HasMethods, StrOptions, fit_context, rows_of
from okforest._typing import Floats
from okforest._validation import check_weights
from okforest.embedding import ProductWeights


class DirectionBase(BaseEstimator):
    """A base learner for :class:`OKBoost`: any regressor, in one direction of feature space.

    Residuals φ_i are projected on a direction v = Σ_i a_i φ_i of length one, a regressor f is
    fitted to ⟨φ_i, v⟩, and f(x) v is predicted, whose weights over the residuals are f(x) a. With
    one output and the linear kernel this is gradient boosting of the regressor.

    Parameters
    ----------
    regressor : estimator
        Any regressor of scikit-learn, or one like them. It gets the inputs as they are.
    direction : {"principal", "random", "sample"}, default="principal"
        The direction of the largest sum of squared projections; one at random, Σ_i g_i φ_i with
        normal g_i; or that of one residual, drawn at random among those that are not zero.
    random_state : int, RandomState instance or None, default=None
        The seed of random directions; OKBoost sets it anew in each round.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    coefficients_ : ndarray of shape (n,)
        The coefficients a_i of the direction; all zero if no residual is left.

    See Also
    --------
    OKBoost : Boosting, whose ``base`` this may be.

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
        """Choose a direction and fit the regressor to the projections on it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Inputs.
        y : ndarray of shape (n, r)
            Residuals, as vectors.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, passed on to the regressor. One that takes none is fitted to the
            rows of positive weight, if their weights are equal.

        Returns
        -------
        self : object
            The fitted base learner.
        """
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
                    f"{self.regressor!r} takes no sample_weight, and the rows' weights differ; use "
                    "a regressor that takes them, or no weights."
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
            The weights, as a column times a row.
        """
        check_is_fitted(self, "regressor_")
        values = np.asarray(self.regressor_.predict(X), dtype=np.float64)
        return ProductWeights(values.reshape(-1, 1), self.coefficients_[None, :])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.regressor).input_tags
        return tags


def principal_coefficients(y: Floats, weight: Floats) -> Floats:
    """Return a, where v = Σ_i a_i y_i is the unit vector of the largest Σ_i ω_i ⟨y_i, v⟩².

    Its sign is such that the coefficients' sum is not negative.
    """
    root = np.sqrt(weight)
    scaled = root[:, None] * y
    n, r = scaled.shape
    gram = scaled.T @ scaled if r <= n else scaled @ scaled.T
    largest = len(gram) - 1
    values, vectors = sla.eigh(gram, subset_by_index=[largest, largest])
    if values[0] <= 0:
        return np.zeros(n)
    # From the right singular vector where that is the shorter one: S v = σ u, and v = Sᵀu/σ.
    u = scaled @ vectors[:, 0] / np.sqrt(values[0]) if r <= n else vectors[:, 0]
    coefficients: Floats = root * u / np.sqrt(values[0])
    return coefficients if coefficients.sum() >= 0 else -coefficients
