"""Forests for partly labelled data: leaf values refitted so that similar inputs agree."""

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from okforest._utils.arrays import Booleans, Floats, Ints, Outputs
from okforest._utils.compat import Interval, StrOptions, fit_context, rows_of
from okforest._utils.frames import as_columns
from okforest._utils.state import Maybe
from okforest.decode import as_decoder
from okforest.kernels import Dirac, as_kernel
from okforest.kernels.outputs import check_collection, read_array
from okforest.models import OKExtraTrees
from okforest.models.tree_model import TreeModel
from okforest.models.wrapping import WrapperModel, check_inner
from okforest.refit.convex import check_priors, warn_unless_converged
from okforest.refit.labels import FORMS, labelled_rows, select, warn_about_labels
from okforest.refit.laplacian import (
    LabelledForest,
    base_weights,
    grow_labelled,
    refit_labelled,
    solution_columns,
)
from okforest.refit.leaves import LeafExpansion, check_rows, check_trees, leaves_of
from okforest.weights import (
    CombinedWeights,
    LeafWeights,
    ProductWeights,
    Span,
    WeightMatrix,
)


class SemiSupervisedForest(WrapperModel):
    """A forest for partly labelled data, refitted so that similar inputs have similar predictions.

    The trees are grown on the labelled rows (totally randomised trees, on all). Then the values of
    their leaves are adjusted by ΔZ, in the feature space of the output kernel, so that predictions
    f are close to the known outputs and smooth on a graph of all rows. With the Laplacian 𝓛 of the
    graph, the sum ‖f − Y‖² over labelled rows, plus C tr (f − ȳ)ᵀ𝓛(f − ȳ), plus C2‖ΔZ‖², is
    minimised, where ȳ is the mean of the known outputs. This is a linear problem for any output
    kernel: predictions are weights over the labelled outputs, as in every model of okforest.

    New inputs are predicted by the trees; for classes by a second forest, grown on the classes of
    all rows. (Far from the labels, f shrinks towards ȳ. The nearest class of a training row stays
    the same, but in the leaves of new rows a single label would outweigh many such rows.)

    It helps in classification with few labels, if classes are clusters of inputs that are larger
    than the number of neighbours. For vector outputs expect no gain.

    Parameters
    ----------
    estimator : estimator, optional
        A tree or forest of okforest; the model has its kernel and decoder. By default
        ``OKExtraTrees(kernel="dirac", random_state=0)``. With fewer than about five labels of each
        class, take ``OKTotallyRandomTrees``.
    laplacian : "knn", matrix, callable or None, default="knn"
        The Laplacian of a graph on all rows of X, labelled or not: :func:`knn_laplacian`, which
        needs numbers on comparable scales; a symmetric positive semi-definite matrix; a function of
        X that returns one; or None for no smoothing. (Proximities of trees link all rows:
        predictions become nearly constant.)
    n_neighbors : int, default=7
        Number of neighbours in the graph of ``laplacian="knn"``; fewer, if classes are small.
    adjust : {"leaves", "outputs"}, default="leaves"
        What is adjusted: values of leaves, or the outputs of unlabelled rows, which the trees then
        average as if they were known.
    laplacian_penalty : float, default=0.1
        The weight C of the Laplacian. From about 10 it does no good, and with 100 classes collapse
        into the largest one. For vector outputs use 0.01.
    leaf_penalty : float or "auto", default="auto"
        The penalty of leaves, M·C2 for M trees. "auto" is 0.01; with priors it is 100, so that
        leaves change only as far as the priors require, and not to fit the noise of outputs.
    output_penalty : float, default=0.01
        The penalty of the unlabelled rows' outputs, with ``adjust="outputs"``: of their distance
        from the predictions of the forest.
    regrow : bool or "auto", default="auto"
        Whether to grow a second forest on all rows, which predicts new inputs: for classes on those
        of the transduction, for other outputs on the refitted predictions themselves. "auto" grows
        it for classes. For numbers, label sets and rankings it is usually worse.
    priors : list of priors, default=()
        Constraints on predictions, such as :class:`Monotone`, for the linear kernel; they need
        Clarabel.
    tol : float, default=1e-6
        The norm of the gradient, relative to that without adjustments, at which the refit stops.
    max_iter : int, default=1000
        The largest number of iterations.
    verbose : int, default=0
        Whether to show the iterations of the refit.

    Attributes
    ----------
    kernel_ : OutputKernel
        The kernel.
    outputs_ : ndarray
        The outputs of the labelled rows: predictions are weights over them.
    transduction_ : ndarray of n outputs
        The outputs of all rows: as given, or predicted.
    labelled_ : ndarray of shape (n,), bool
        Which rows had an output.
    estimator_ : estimator
        The forest before the refit.
    regrown_ : estimator
        The second forest, if there is one.
    regrown_on_ : csr_array or ndarray of shape (n, n_labelled)
        The outputs that it was grown on, as weights over the labelled outputs.
    leaf_means_ : csr_array of shape (n_leaves, n_labelled)
        Weights of the labelled outputs in the mean of each leaf.
    leaf_adjustments_ : ndarray of shape (n_leaves, r)
        The adjustments of leaves, as coefficients of the rows of ``basis_``.
    basis_ : ndarray of shape (r, n_labelled)
        Weights of labelled outputs.
    objective_, gradient_norm_ : float
        The minimum of the programme above, and the relative gradient norm (with priors: duality
        gap) at which the solver stopped.
    n_iter_ : int
        Number of iterations; 1 for a direct solution.

    See Also
    --------
    CensoredForest : Outputs that are known up to an interval.
    sklearn.semi_supervised.LabelSpreading : Smoothing on the graph alone.

    References
    ----------
    L. Wehenkel, "Regression tree ensembles in the perspective of kernel-based methods", talk,
    Tübingen, October 2009. M. Belkin et al., "Manifold regularization", JMLR 7 (2006).

    Examples
    --------
    Two moons with five labels each:

    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from okforest import OKTotallyRandomTrees
    >>> from okforest.refit import SemiSupervisedForest
    >>> X, moon = make_moons(300, noise=0.05, random_state=0)
    >>> y = np.full(300, -1)
    >>> for label in (0, 1):
    ...     labelled = np.flatnonzero(moon == label)[:5]
    ...     y[labelled] = label
    >>> trees = OKTotallyRandomTrees(100, kernel="dirac", random_state=0)
    >>> model = SemiSupervisedForest(trees, laplacian_penalty=1.0).fit(X, y)
    >>> bool((model.transduction_ == moon).mean() > 0.95)
    True
    """

    estimator_: Any
    labelled_: Booleans
    leaf_means_: sp.csr_array
    leaf_adjustments_: Floats
    basis_: Floats
    transduction_: Outputs
    regrown_: Maybe[TreeModel]
    regrown_on_: Maybe[Floats | sp.csr_array]
    objective_: float
    gradient_norm_: float
    n_iter_: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # check_trees has better messages
        "laplacian": "no_validation",  # check_laplacian has better messages
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "adjust": [StrOptions({"leaves", "outputs"})],
        "laplacian_penalty": [Interval(Real, 0.0, None, closed="left")],
        "leaf_penalty": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"auto"})],
        "output_penalty": [Interval(Real, 0.0, None, closed="neither")],
        "regrow": ["boolean", StrOptions({"auto"})],
        "priors": "no_validation",
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        laplacian: Any = "knn",
        n_neighbors: int = 7,
        adjust: Literal["leaves", "outputs"] = "leaves",
        laplacian_penalty: float = 0.1,
        leaf_penalty: float | Literal["auto"] = "auto",
        output_penalty: float = 0.01,
        regrow: bool | Literal["auto"] = "auto",
        priors: Any = (),
        tol: float = 1e-6,
        max_iter: int = 1000,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.laplacian = laplacian
        self.n_neighbors = n_neighbors
        self.adjust = adjust
        self.laplacian_penalty = laplacian_penalty
        self.leaf_penalty = leaf_penalty
        self.output_penalty = output_penalty
        self.regrow = regrow
        self.priors = priors
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _default_estimator(self) -> Any:
        return OKExtraTrees(kernel="dirac", random_state=0)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees and refit them.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs, labelled or not.
        y : array-like of n outputs
            Outputs. Unlabelled are -1 among integers (labels or positions) and among class labels
            of any type, also text; NaN among numbers (in all values of a vector); None or NA among
            other objects; masked entries; and, for times, intervals without bounds.
        sample_weight : array-like of shape (n,), optional
            Weights of the labelled rows.

        Returns
        -------
        self : object
            The fitted model.
        """
        check_trees(self._inner())
        check_priors(self.priors)
        X = check_rows(clone(self._inner()), X)
        labelled = self._labelled(X, y)
        positions = np.flatnonzero(labelled)
        known = select(y, positions)
        kernel, outputs = self.validate_outputs(positions, known)
        warn_about_labels(labelled, outputs, kernel)
        grown = grow_labelled(clone(self._inner()), X, known, labelled, sample_weight)
        features, basis = solution_columns(Span(kernel, outputs))
        solution, adjustments = refit_labelled(self, X, grown, kernel, features)
        self._store(grown, adjustments, basis)
        self.store_outputs(kernel, outputs)
        # Solvers minimise half of the programme, whose derivatives have no factors.
        self.objective_, self.gradient_norm_ = 2.0 * solution.objective, solution.gap
        self.n_iter_ = solution.n_iterations
        fitted = self._weights_of_rows(grown.L)
        if isinstance(kernel, Dirac) if self.regrow == "auto" else self.regrow:
            self.regrown_ = self._regrow(X, fitted, grown.weight)
        self.transduction_ = self._transduce(fitted, outputs)
        warn_unless_converged(solution, self.tol)
        return self

    def _labelled(self, X: Any, y: Any) -> Booleans:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if sp.issparse(y):
            read_array(y)  # raises the error
        if not isinstance(y, np.ma.MaskedArray):
            y = check_collection(y)
        labelled = labelled_rows(y, as_kernel(self.kernel))
        check_consistent_length(X, labelled)
        if labelled.sum() < 2:
            raise ValueError(
                f"y has {int(labelled.sum())} labelled rows among {len(labelled)}; at least 2 are "
                f"needed. {FORMS}"
            )
        return labelled

    def _store(self, grown: LabelledForest, adjustments: Floats, basis: Floats) -> None:
        self._keep(grown.model)
        self.labelled_ = grown.labelled
        self.leaf_means_ = grown.means
        self.leaf_adjustments_, self.basis_ = adjustments, basis

    def _weights_of_rows(self, L: sp.csr_array) -> WeightMatrix:
        adjusted = ProductWeights(np.asarray(L @ self.leaf_adjustments_), self.basis_)
        if self.adjust == "outputs":
            return adjusted
        return CombinedWeights([base_weights(L, self.leaf_means_), adjusted], [1.0, 1.0])

    def _regrow(self, X: Any, fitted: WeightMatrix, weight: Floats) -> TreeModel:
        """Grow a forest on the classes of all rows, or on their predictions in feature space."""
        forest = clone(self._inner()).set_params(decoder="auto")
        forest.set_params(min_samples_leaf=forest._smallest_leaf(), kernel=self.kernel_)
        if not isinstance(self.kernel_, Dirac):
            self.regrown_on_ = fitted.tocsr().toarray()
            return forest.set_params(kernel="linear").fit(X, self._in_feature_space(fitted))
        nearest = self._nearest_labelled(fitted)
        known = np.flatnonzero(weight)
        nearest[known] = np.searchsorted(np.flatnonzero(self.labelled_), known)
        parts = (np.ones(len(nearest)), nearest, np.arange(len(nearest) + 1))
        self.regrown_on_ = sp.csr_array(parts, shape=fitted.shape)
        return forest.fit(X, self.outputs_[nearest])

    def _in_feature_space(self, fitted: WeightMatrix) -> Floats:
        span = self.span_
        if span.features is not None:
            return fitted.feature_sums(span)
        values, vectors = np.linalg.eigh(span.kernel(span.outputs))
        return np.asarray(fitted @ (vectors * np.sqrt(np.maximum(values, 0.0))))

    def _nearest_labelled(self, fitted: WeightMatrix) -> Ints:
        """Return the first labelled row of the class nearest to each prediction."""
        classes = self.span_.training
        costs = classes.squares - 2.0 * self.span_.inner(fitted, classes.outputs)
        return np.asarray(classes.first[costs.argmin(axis=1)])

    def weight_matrix(self, X: Any) -> WeightMatrix:
        """Return the weights of the labelled outputs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        W : okforest.weights.WeightMatrix of shape (n, n_labelled)
            Row i holds w(x_i). Weights may be negative.
        """
        check_is_fitted(self, "leaf_adjustments_")
        if hasattr(self, "regrown_"):
            left: LeafWeights = self.regrown_.weight_matrix(X)
            return ProductWeights(left.tocsr(), self.regrown_on_)
        expansion = LeafExpansion(self.estimator_.trees_)
        return self._weights_of_rows(expansion.rows(leaves_of(self.estimator_, X)))

    def compact(self) -> Self:
        """Return a smaller copy of the model; this one does not change.

        The kernel is restricted to the labelled outputs, and out-of-bag estimates are dropped, as
        by other models.

        Returns
        -------
        model : estimator
            The smaller model.
        """
        model = super().compact()
        if hasattr(self, "regrown_"):
            model.regrown_ = self.regrown_.compact()
        return model

    def _transduce(self, fitted: WeightMatrix, outputs: Outputs) -> Outputs:
        span = self.span_
        decoded = as_decoder(self.decoder, span.kernel).decode(fitted, span)
        if decoded.shape[1:] == outputs.shape[1:]:
            decoded[self.labelled_] = outputs
        return decoded

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the kernel R², or accuracy, of the labelled rows; unlabelled ones do not count.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like of n outputs
            Their true outputs, some of which may be missing as in ``fit``.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Returns
        -------
        score : float
            The accuracy with the Dirac kernel; otherwise see :func:`okforest.metrics.kernel_r2`.
        """
        check_is_fitted(self, "leaf_adjustments_")
        rows = np.flatnonzero(labelled_rows(y, self.kernel_))
        if not len(rows):
            raise ValueError(
                "y has no labelled row to score; with few labels, use cv=LabelledKFold() of "
                "okforest.refit, which puts labelled rows into every test part."
            )
        if len(rows) == len(y):
            return super().score(X, y, sample_weight)
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return super().score(rows_of(as_columns(X), rows), select(y, rows), weight)

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        check_inner(self.estimator_, "estimator_", TreeModel)
        n_leaves = LeafExpansion(self.estimator_.trees_).n_leaves
        shapes = {
            "leaf_means_": (n_leaves, len(self.outputs_)),
            "leaf_adjustments_": (n_leaves, len(self.basis_)),
            "basis_": (len(self.basis_), len(self.outputs_)),
        }
        if hasattr(self, "regrown_"):
            check_inner(self.regrown_, "regrown_", TreeModel)
            shapes["regrown_on_"] = (len(self.regrown_.outputs_), len(self.outputs_))
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not {shape}")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if isinstance(self.laplacian, str):  # neighbours need numbers
            tags.input_tags.allow_nan = False
        return tags
