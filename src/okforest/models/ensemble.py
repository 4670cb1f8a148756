"""The mean of several models with one output kernel."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats
from okforest._utils.inputs import adopt_inputs
from okforest.models.base import OKModel
from okforest.models.wrapping import check_inner, clone_with_kernel
from okforest.weights import CombinedWeights, WeightMatrix


class OKEnsemble(OKModel):
    """The mean of several models: their weights over the training outputs are averaged.

    Models that err in different ways, such as forests and boosting, often predict better together.

    Parameters
    ----------
    estimators : list of estimators
        Models of okforest; the kernel of the ensemble replaces their ``kernel``.
    kernel : OutputKernel, str or callable, default="linear"
        The output kernel.
    weights : array-like of shape (n_estimators,), optional
        The share of each model; by default all the same.
    decoder : Decoder or str, default="auto"
        How weights are turned into outputs.

    Attributes
    ----------
    estimators_ : list of estimators
        The fitted models.
    shares_ : ndarray of shape (n_estimators,)
        The share of each model, with sum one.
    kernel_ : OutputKernel
        The kernel, with parameters that depend on the outputs filled in.
    outputs_ : ndarray
        The training outputs.

    See Also
    --------
    sklearn.ensemble.VotingRegressor : The mean of numeric predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKBoost, OKEnsemble, OKExtraTrees
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = OKExtraTrees(min_samples_leaf=3, random_state=0)
    >>> model = OKEnsemble([forest, OKBoost(100, max_splits=3, random_state=0)])
    >>> bool(model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.45)
    True
    """

    estimators_: list[Any]
    shares_: Floats

    def __init__(
        self,
        estimators: Sequence[Any],
        kernel: Any = "linear",
        weights: Any = None,
        decoder: Any = "auto",
    ):
        self.estimators = estimators
        self.kernel = kernel
        self.weights = weights
        self.decoder = decoder

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit every model.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like of n outputs
            Outputs, of the type that the kernel takes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted model.
        """
        shares = self._shares()
        fitted = []
        for estimator in self.estimators:
            model = clone_with_kernel(estimator, clone(self.kernel, safe=False))
            fitted.append(model.fit(X, y, sample_weight))
        first = fitted[0]
        self.estimators_, self.shares_ = fitted, shares
        adopt_inputs(self, first)
        self.store_outputs(first.kernel_, first.outputs_)
        return self

    def _shares(self) -> Floats:
        if isinstance(self.estimators, OKModel) or not len(self.estimators):
            raise ValueError("estimators must be a list of at least one model.")
        for estimator in self.estimators:
            if not isinstance(estimator, OKModel):
                raise TypeError(
                    f"estimators holds {estimator!r}; pass models of okforest, such as "
                    "OKRandomForest()."
                )
        n = len(self.estimators)
        shares = np.ones(n) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        valid = shares.shape == (n,) and np.isfinite(shares).all() and (shares >= 0).all()
        if not valid or shares.sum() <= 0:
            raise ValueError(
                f"weights={self.weights!r}; pass one non-negative number for each of the {n} "
                "models, not all of them zero."
            )
        return shares / shares.sum()

    def weight_matrix(self, X: Any) -> WeightMatrix:
        """Return the mean of the weights of the models.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : okforest.weights.WeightMatrix of shape (n, n_train)
            Row i holds w(x_i).
        """
        check_is_fitted(self, "estimators_")
        parts = [model.weight_matrix(X) for model in self.estimators_]
        return CombinedWeights(parts, self.shares_.tolist())

    def compact(self) -> Self:
        """Return a smaller copy of the model; this one does not change.

        The kernel is restricted to the training outputs, in every model, too.

        Returns
        -------
        model : estimator
            The smaller model.
        """
        model = super().compact()
        model.estimators_ = [part.compact() for part in self.estimators_]
        return model

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        if not isinstance(self.estimators_, list) or len(self.estimators_) != len(self.shares_):
            raise ValueError("estimators_ is not a list of as many models as shares_")
        for model in self.estimators_:
            check_inner(model, "a model in estimators_")
            if len(model.outputs_) != len(self.outputs_):
                raise ValueError("estimators_ were fitted to different outputs")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            inner = [get_tags(estimator).input_tags for estimator in self.estimators]
        except (AttributeError, TypeError):  # fit raises an error that explains it
            return tags
        tags.input_tags.allow_nan = all(own.allow_nan for own in inner)
        tags.input_tags.sparse = all(own.sparse for own in inner)
        return tags
