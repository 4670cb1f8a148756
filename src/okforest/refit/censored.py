"""Forests for censored outputs: leaf values refitted to intervals by convex optimisation."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import Interval, StrOptions, fit_context, rows_of
from okforest._utils.errors import available_if
from okforest._utils.state import Maybe
from okforest.kernels import as_kernel
from okforest.models import OKExtraTrees
from okforest.models.tuning import ParameterChoice, choose, losses_of_folds
from okforest.models.wrapping import Wrapper
from okforest.refit.convex import Norm, Solution, check_priors, warn_unless_converged
from okforest.refit.intervals import (
    GrownForest,
    Scale,
    ScaleName,
    Structure,
    grow_censored,
    refit_intervals,
)
from okforest.refit.leaves import (
    Adjust,
    Adjustments,
    LeafCurves,
    check_refit,
    check_rows,
    check_trees,
    leaves_of,
)
from okforest.survival.kernel import Survival
from okforest.survival.metrics import concordance_index
from okforest.survival.outputs import read_intervals, times_only


def _adjusts_outputs(model: Any) -> None:
    if model.adjust != "outputs":
        raise AttributeError(
            f"CensoredForest has weights over outputs with adjust='outputs'; this one has "
            f"adjust={model.adjust!r}."
        )


class CensoredForest(LeafCurves, Wrapper):
    """A forest for censored outputs, refitted so that predictions lie within known intervals.

    The trees are grown first. Then the values of their leaves (or the outputs that they average)
    are adjusted: predictions should be close to exact outputs, and within the intervals of censored
    ones. This is a convex programme: with adjustments ΔY of outputs and ΔZ of leaves, predictions
    f = K(Y + ΔY) + L ΔZ and their distances d from the intervals, it minimises
    C1‖ΔY‖² + C2‖ΔZ‖² + Σᵢ cᵢ dᵢ². With ``norm="l1"``, these are sums of absolute values instead.

    Use it for outputs with bounds of any kind. To predict survival functions, forests with
    ``kernel="survival"`` are more accurate. Predicted times are values on the chosen scale, turned
    back into times. They rank cases well, but they are not calibrated means: for times, use
    ``predict_quantiles``.

    Parameters
    ----------
    estimator : estimator, optional
        A tree or forest of okforest with a numeric kernel. By default
        ``OKExtraTrees(100, min_samples_leaf=15, max_features="sqrt", random_state=0)``; pass it to
        search its parameters. Fully grown trees leave nothing to refit.
    adjust : {"leaves", "outputs", "both"}, default="leaves"
        What is adjusted: values of leaves, outputs of the rows that the trees were grown on, or
        both.
    norm : {"l2", "l1"}, default="l2"
        Sums of squares, or of absolute values. "l1" needs Clarabel (the extra
        ``convex``), suits up to about a thousand rows, and needs penalties of its own:
        choose ``leaf_penalty`` by cross-validation.
    leaf_penalty : float, default=3.0
        The penalty of leaves, λ, with C2 = λ/M for M trees: larger values stay closer to the
        forest.
    output_penalty : float, default=0.03
        The penalty C1 of outputs.
    exact_penalty, censored_penalty : float, default=1.0
        The weights c of exact and of censored outputs.
    structure : {"auto", "exact", "all", "km"}, default="auto"
        The rows that trees are grown on: those with an exact output; all, with a bound (the middle
        of a finite interval) as the output of a censored one; or all, with the mean of the
        Kaplan–Meier curve within the interval. "auto" is "km" if fewer than 40 % of the outputs
        with a bound are exact, and "exact" otherwise.
    scale : {"km", "log"} or None, default="km"
        The scale of outputs in growth and refit: 1 − S(t) with the Kaplan–Meier curve S, which is
        best for ranking; the logarithm, which is better for times; or the outputs themselves,
        which may be negative.
    laplacian : "knn", matrix, callable or None, default=None
        A graph on all rows whose neighbours should have similar predictions; see
        :class:`SemiSupervisedForest`. Rows without any bound, (-inf, inf), then contribute, too.
    n_neighbors : int, default=7
        Number of neighbours in the graph of ``laplacian="knn"``.
    laplacian_penalty : float, default=0.01
        The weight of the Laplacian, as in :class:`SemiSupervisedForest`.
    priors : list of priors, default=()
        Constraints on predictions, such as :class:`Monotone`; they need Clarabel.
    tol : float, default=1e-6
        The relative duality gap (with a Laplacian: norm of the gradient) at which the refit stops.
    max_iter : int, default=100
        The largest number of Newton steps.
    verbose : int, default=0
        Whether to show the steps of the refit.

    Attributes
    ----------
    estimator_ : estimator
        The forest before the refit. Its predictions are on the scale of the fit.
    leaf_values_ : ndarray of shape (n_leaves,)
        The refitted values of the leaves of all trees, in the order of their nodes.
    refitted_outputs_ : ndarray
        The refitted outputs of the rows that the trees were grown on, with ``adjust="outputs"``:
        predictions on the scale are ``predict_weights(X) @ refitted_outputs_``.
    structure_ : {"exact", "all", "km"}
        The rows that the trees were grown on.
    outputs_ : ndarray of shape (n, 2)
        The training outputs as intervals, without rows of weight 0.
    training_leaves_ : ndarray of shape (n, n_trees)
        The leaves of these rows.
    event_times_ : ndarray of shape (n_times,)
        The times of the predicted survival functions.
    curves_ : Survival
        The kernel with the survival curves of the training outputs.
    objective_, duality_gap_ : float
        The minimum of the programme above, and the relative gap (or norm) at which the solver
        stopped.
    n_iter_ : int
        Number of steps.

    See Also
    --------
    select_leaf_penalty : Chooses ``leaf_penalty`` by cross-validation.
    okforest.survival.Survival : Survival curves as outputs of any model.

    References
    ----------
    L. Wehenkel, "Regression tree ensembles in the perspective of kernel-based methods", talk,
    Tübingen, October 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.refit import CensoredForest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 2))
    >>> time = np.exp(2 * X[:, 0] + rng.normal(0.0, 0.2, size=300))
    >>> limit = rng.exponential(6.0, size=300)
    >>> y = np.rec.fromarrays([time <= limit, np.minimum(time, limit)], names="event,time")
    >>> model = CensoredForest().fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.85)
    True
    >>> model.predict(X[200:]).shape
    (100,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # check_trees has better messages
        "adjust": [StrOptions({"leaves", "outputs", "both"})],
        "norm": [StrOptions({"l2", "l1"})],
        "leaf_penalty": [Interval(Real, 0.0, None, closed="neither")],
        "output_penalty": [Interval(Real, 0.0, None, closed="neither")],
        "exact_penalty": [Interval(Real, 0.0, None, closed="left")],
        "censored_penalty": [Interval(Real, 0.0, None, closed="left")],
        "structure": [StrOptions({"auto", "exact", "all", "km"})],
        "scale": [StrOptions({"km", "log"}), None],
        "laplacian": "no_validation",  # check_laplacian has better messages
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "laplacian_penalty": [Interval(Real, 0.0, None, closed="left")],
        "priors": "no_validation",
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    leaf_values_: Floats
    refitted_outputs_: Maybe[Floats]
    scale_times_: Floats
    scale_survival_: Floats
    structure_: str
    objective_: float
    duality_gap_: float
    n_iter_: int

    def __init__(
        self,
        estimator: Any = None,
        *,
        adjust: Adjust = "leaves",
        norm: Norm = "l2",
        leaf_penalty: float = 3.0,
        output_penalty: float = 0.03,
        exact_penalty: float = 1.0,
        censored_penalty: float = 1.0,
        structure: Structure | Literal["auto"] = "auto",
        scale: ScaleName = "km",
        laplacian: Any = None,
        n_neighbors: int = 7,
        laplacian_penalty: float = 0.01,
        priors: Any = (),
        tol: float = 1e-6,
        max_iter: int = 100,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.adjust = adjust
        self.norm = norm
        self.leaf_penalty = leaf_penalty
        self.output_penalty = output_penalty
        self.exact_penalty = exact_penalty
        self.censored_penalty = censored_penalty
        self.structure = structure
        self.scale = scale
        self.laplacian = laplacian
        self.n_neighbors = n_neighbors
        self.laplacian_penalty = laplacian_penalty
        self.priors = priors
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees and refit them.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : structured array, or array-like of shape (n, 2) or (n,)
            Outputs: (event, time), or (lower, upper) with infinite values where there is no bound,
            or numbers if all are exact.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in growth and refit. Rows of weight 0 do not count at all; other
            weights do not change the Kaplan–Meier scale and the survival functions.

        Returns
        -------
        self : object
            The fitted model.
        """
        check_priors(self.priors)
        X = check_rows(self._new_forest(), X)
        intervals = self._read(X, y)
        grown = self._grow(X, intervals, sample_weight)
        solution = refit_intervals(self, X, grown)
        self._store(grown, intervals, solution)
        warn_unless_converged(solution, self.tol)
        return self

    def _default_estimator(self) -> Any:
        return OKExtraTrees(100, min_samples_leaf=15, max_features="sqrt", random_state=0)

    def _read(self, X: Any, y: Any) -> Floats:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        intervals = read_intervals(y, numbers=True)
        check_consistent_length(X, intervals)
        return intervals if self.scale is None else times_only(intervals)

    def _grow(self, X: Any, intervals: Floats, sample_weight: Any = None) -> GrownForest:
        """Grow the forest, and express the rows by its leaves."""
        return grow_censored(
            self._new_forest(), X, intervals, self.scale, self.structure, sample_weight
        )

    def _new_forest(self) -> Any:
        forest = self._inner()
        check_trees(forest)
        if not as_kernel(forest.kernel).numeric:
            raise ValueError(
                f"the estimator has kernel={forest.kernel!r}; CensoredForest predicts numbers, so "
                "use kernel='linear'."
            )
        return clone(forest)

    def _adjustments(self, grown: GrownForest, leaf_penalty: float) -> Adjustments:
        means = grown.expansion.means
        return Adjustments.create(grown.L, means, self.adjust, leaf_penalty, self.output_penalty)

    def _store(self, grown: GrownForest, intervals: Floats, solution: Solution) -> None:
        B = self._adjustments(grown, self.leaf_penalty)
        v = solution.v.reshape(-1)
        self._keep(grown.model)
        self.structure_ = grown.structure
        self.leaf_values_ = grown.values + B.leaf_values(v)
        if self.adjust == "outputs":
            self.refitted_outputs_ = grown.model.outputs_.reshape(-1) + B.outputs(v)
        self.scale_times_, self.scale_survival_ = grown.scale.times, grown.scale.survival
        used = grown.row_weight > 0
        self.outputs_ = intervals[used]
        self.training_leaves_ = grown.leaves[used]
        self.curves_ = Survival().resolve(self.outputs_)
        # Solvers minimise half of a sum of squares, whose derivatives have no factors.
        factor = 2.0 if self.norm == "l2" else 1.0
        self.objective_, self.duality_gap_ = factor * solution.objective, solution.gap
        self.n_iter_ = solution.n_iterations
        self._prepare_curves()

    def predict(self, X: Any) -> Floats:
        """Predict outputs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        y : ndarray of shape (n,)
            Outputs. With ``scale="km"`` they are between 0 and the last time of an event.
        """
        rows = self._rows(X)
        scale = Scale(self.scale, self.scale_times_, self.scale_survival_)
        return scale.inverse(rows @ self.leaf_values_)

    def predict_risk(self, X: Any) -> Floats:
        """Predict how early the event is expected: a higher risk means an earlier event.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        risk : ndarray of shape (n,)
            Minus the prediction on the scale of the fit.
        """
        return -(self._rows(X) @ self.leaf_values_)

    @available_if(_adjusts_outputs)
    def predict_weights(self, X: Any) -> sp.csr_array:
        """Return the weights of the outputs that trees were grown on, with ``adjust="outputs"``.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : csr_array of shape (n, n_grown)
            ``W @ refitted_outputs_`` are the predictions on the scale of the fit.
        """
        check_is_fitted(self, "leaf_values_")
        return self.estimator_.predict_weights(X)

    def score(self, X: Any, y: Any) -> float:
        """Return Harrell's C of the predicted risks, over pairs whose intervals have an order.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : structured array or array-like of shape (n, 2)
            Exact and censored outputs.

        Returns
        -------
        score : float
            See :func:`okforest.survival.concordance_index`.
        """
        return concordance_index(read_intervals(y, numbers=True), self.predict_risk(X))

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        check_refit(self, len(self.outputs_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def select_leaf_penalty(
    model: CensoredForest,
    X: Any,
    y: Any,
    *,
    penalties: Any = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3),
    cv: Any = 5,
) -> ParameterChoice:
    """Choose ``leaf_penalty`` of a CensoredForest by cross-validation of Harrell's C.

    In every fold the forest is grown once, and the refit with one penalty starts from the solution
    with the next larger one. The result is the same as by a grid search, in a fraction of the time.

    Parameters
    ----------
    model : CensoredForest
        The model, with ``norm="l2"`` and no priors; it is not modified.
    X, y : array-like
        Inputs and outputs.
    penalties : array-like of shape (m,), optional
        The penalties to try.
    cv : int or splitter, default=5
        The folds, as in :func:`sklearn.model_selection.cross_val_score`.

    Returns
    -------
    choice : ParameterChoice
        The penalty with the largest mean score, the largest of equals; losses are 1 − C.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.refit import CensoredForest, select_leaf_penalty
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> time, limit = np.exp(2 * X[:, 0]), rng.exponential(6.0, size=200)
    >>> y = np.rec.fromarrays([time <= limit, np.minimum(time, limit)], names="event,time")
    >>> choice = select_leaf_penalty(CensoredForest(), X, y)
    >>> model = CensoredForest(leaf_penalty=choice.best).fit(X, y)
    """
    if not isinstance(model, CensoredForest):
        raise TypeError(f"select_leaf_penalty takes a CensoredForest, got {type(model).__name__}.")
    if model.adjust == "outputs" or model.norm != "l2" or len(model.priors):
        raise ValueError(
            f"select_leaf_penalty follows the path of leaf penalties with norm='l2' and without "
            f"priors; got adjust={model.adjust!r}, norm={model.norm!r} and {len(model.priors)} "
            "priors. Use sklearn.model_selection.GridSearchCV."
        )
    if not (
        model.laplacian is None or isinstance(model.laplacian, str) or callable(model.laplacian)
    ):
        raise ValueError(
            "the laplacian is a matrix of all rows, and every fold needs one of its own; pass a "
            "function of X that returns it, or 'knn'."
        )
    tried = np.unique(np.asarray(penalties, dtype=np.float64))
    if not len(tried) or not tried.min() > 0:
        raise ValueError(f"penalties={penalties!r}; pass one or more positive numbers.")
    check_sparse(X, "X")
    X = check_rows(model._new_forest(), X)
    intervals = model._read(X, y)

    def losses(train: Any, test: Any) -> list[float]:
        X_train, X_test = rows_of(X, train), rows_of(X, test)
        grown = model._grow(X_train, intervals[train])
        rows = grown.expansion.rows(leaves_of(grown.model, X_test))
        path = _leaf_values(model, X_train, grown, tried[::-1])
        return [1.0 - concordance_index(intervals[test], -(rows @ z)) for z in path][::-1]

    found = losses_of_folds(losses, X, intervals, cv)
    return choose("leaf_penalty", tried, found, tried)


def _leaf_values(
    model: CensoredForest, X: Any, grown: GrownForest, penalties: Floats
) -> Iterator[Floats]:
    """Yield the leaf values for each penalty, from the largest to the smallest."""
    n_outputs = grown.expansion.means.shape[1] if model.adjust == "both" else 0
    start, previous = None, 1.0
    for penalty in penalties:
        if start is not None:  # adjustments are stored times the root of their penalty
            start[n_outputs:] *= np.sqrt(penalty / previous)
        solution = refit_intervals(model, X, grown, penalty, start)
        warn_unless_converged(solution, model.tol)
        B = model._adjustments(grown, penalty)
        yield grown.values + B.leaf_values(solution.v)
        start, previous = solution.v.copy(), penalty
