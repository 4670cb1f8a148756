"""Survival forests whose censored cases are conditioned on the forest's own curves."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from okforest._compat import Interval, fit_context
from okforest._typing import Floats, Outputs
from okforest._validation import adopt_inputs
from okforest.decode.survival import restricted_means
from okforest.kernels import Survival, as_kernel
from okforest.kernels.survival import conditional_curves
from okforest.models import OKRandomForest
from okforest.models._tree_model import TreeModel
from okforest.refit._base import RefittedModel
from okforest.refit._leaves import check_trees
from okforest.weights import WeightMatrix


class SelfConditionedForest(RefittedModel):
    """A survival forest that continues censored curves by its own predictions.

    With the survival kernel, the curve of a censored case continues as the Kaplan–Meier curve of
    all cases. Here a first forest predicts every training case from the trees that were not grown
    on it. The curve of a censored case continues as that prediction, given survival so far, and the
    forest is grown again on these curves.

    Compare both: this one is better if censoring depends on the inputs, and worse if the forest
    predicts poorly.

    Parameters
    ----------
    estimator : estimator, optional
        A forest of okforest with ``kernel="survival"`` and ``bootstrap=True``. By default
        ``OKRandomForest(kernel="survival", min_samples_leaf=10, random_state=0)``.
    n_iter : int, default=1
        Number of times that the forest is grown again.

    Attributes
    ----------
    estimator_ : estimator
        The last forest, grown on curves.
    curves_ : ndarray of shape (n, n_times)
        The survival curves of the training cases, of which predictions are weighted means.
    kernel_ : Survival
        The survival kernel, with its grid of times.
    outputs_ : ndarray of shape (n, 2)
        The training outputs as intervals.

    See Also
    --------
    okforest.kernels.Survival : Survival curves as outputs of any model.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.metrics import concordance_scorer
    >>> from okforest.refit import SelfConditionedForest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 2))
    >>> time, limit = np.exp(2 * X[:, 0]), rng.exponential(6.0, size=300)
    >>> y = np.rec.fromarrays([time <= limit, np.minimum(time, limit)], names="event,time")
    >>> model = SelfConditionedForest().fit(X[:200], y[:200])
    >>> bool(concordance_scorer(model, X[200:], y[200:]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # check_trees has better messages
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    estimator_: Any
    curves_: Floats

    def __init__(self, estimator: Any = None, *, n_iter: int = 1):
        self.estimator = estimator
        self.n_iter = n_iter

    def _default_forest(self) -> Any:
        return OKRandomForest(kernel="survival", min_samples_leaf=10, random_state=0)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the forests.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : structured array or array-like of shape (n, 2)
            Times: (event, time), or (lower, upper).
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted model.
        """
        forest = self._forest()
        check_trees(forest)
        if not isinstance(as_kernel(forest.kernel), Survival) or not forest.bootstrap:
            raise ValueError(
                f"estimator has kernel={forest.kernel!r} and bootstrap={forest.bootstrap}; curves "
                "are predicted by the trees that were not grown on a case, which needs "
                "kernel='survival' and bootstrap=True."
            )
        model = clone(forest).set_params(oob_score=True).fit(X, y, sample_weight)
        kernel, outputs = model.kernel_, model.outputs_
        curves, scale = kernel.curves(outputs), np.sqrt(kernel.falls)
        for _ in range(self.n_iter):
            seen = np.diff(model.oob_weights_.indptr) > 0
            predicted = np.where(seen[:, None], model.oob_weights_ @ curves, kernel.survival)
            curves = conditional_curves(kernel.times, predicted, outputs)
            model = clone(forest).set_params(kernel="linear", oob_score=True)
            model.fit(X, curves * scale, sample_weight)
        self.estimator_, self.curves_ = model, curves
        adopt_inputs(self, model)
        self.store_outputs(kernel, outputs)
        return self

    def weight_matrix(self, X: Any) -> WeightMatrix:
        """Return the weights of the training outputs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : okforest.weights.WeightMatrix of shape (n, n_train)
            Row i holds w(x_i): non-negative, with sum one.
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.weight_matrix(X)

    def _survival_curves(self, X: Any) -> Floats:
        return np.asarray(self._checked_weights(X) @ self.curves_)

    def predict(self, X: Any, candidates: Any = None) -> Outputs:
        """Predict mean times, restricted to the last time of the grid.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        candidates : array-like, optional
            Outputs to choose from.

        Returns
        -------
        y : ndarray of n outputs
            Times, or some of the candidates.
        """
        if candidates is not None:
            return super().predict(X, candidates)
        return restricted_means(self.event_times_, self._survival_curves(X))

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        if not isinstance(self.estimator_, TreeModel):
            raise ValueError("estimator_ is not a forest")
        self.estimator_.check_state()
        shape = (len(self.outputs_), len(self.event_times_))
        if self.curves_.shape != shape or len(self.estimator_.outputs_) != shape[0]:
            raise ValueError(f"curves_ has shape {self.curves_.shape}, not {shape}")
