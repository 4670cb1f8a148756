"""Base learners of boosting that fit one direction of the feature space."""

from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg as sla
import scipy.sparse.linalg as spla
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from okforest._compat import HasMethods, StrOptions, fit_context, rows_of
from okforest._sparse import check_sparse
from okforest._state import FittedState
from okforest._typing import Floats
from okforest._validation import check_weights
from okforest.models._state import check_floats
from okforest.weights import ProductWeights

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
