"""Kernel ridge regression between two feature spaces."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Inputs
from okforest._utils.compat import Interval, StrOptions, fit_context
from okforest._utils.inputs import (
    TrainingInputs,
    check_numbers,
    check_pairwise,
    check_weights,
    learn_numbers,
)
from okforest._utils.state import Maybe, check_feature_count, check_floats, check_length
from okforest.kernels.precomputed import check_symmetric
from okforest.models.base import OKModel
from okforest.models.input_kernels import (
    CONSTRAINT,
    input_gram,
    resolve_input_kernel,
    takes_sparse,
)
from okforest.models.parameter_docs import document
from okforest.models.spectrum import (
    ScaledOutputs,
    ScaledRows,
    exact_spectrum,
    landmark_spectrum,
    leave_one_out,
    solve_exactly,
)
from okforest.weights import ProductWeights

Positions = npt.NDArray[np.intp]

MISSING_ADVICE = "impute them, or use trees."

# The penalties that alpha="loo" tries, relative to the variance of the inputs in feature space.
GRID = np.logspace(-8, 2, 21)


@document
class OKRidge(OKModel):
    """Ridge regression from an input kernel to an output kernel: kernel dependency estimation.

    Predictions are F(x) = b + Aψ(x), linear in the features ψ of the input kernel, and minimise
    Σ_i ‖φ(y_i) − F(x_i)‖² + α‖A‖², where the sum is weighted by ``sample_weight``. The intercept b
    is not penalised. Weights over the training outputs may be negative; with an intercept they sum
    to one.

    With the linear output kernel it is :class:`sklearn.linear_model.Ridge` if the input kernel is
    linear too, and :class:`sklearn.kernel_ridge.KernelRidge` if ``fit_intercept=False``.

    The input kernel must be positive semi-definite. Similarities that are nearly so are accepted
    with a warning: negative eigenvalues of up to 1 % of the largest are set to zero.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {shared_attributes}
    alpha_ : float
        The penalty.
    alphas_, loo_loss_ : ndarray
        The penalties that were compared, if there are several, and the leave-one-out loss in
        feature space of each: the mean of ‖φ(y_i) − F₋ᵢ(x_i)‖², where F₋ᵢ is fitted without row i,
        whatever its weight. Landmarks and components are computed from all rows.
    landmarks_ : ndarray of shape (m,)
        The training rows that inputs are compared with: those drawn for ``n_landmarks``, or all
        rows of positive weight.
    inputs_ : ndarray or csr_array of shape (m, p)
        Their inputs Z; absent with ``input_kernel="precomputed"``.
    input_mean_ : ndarray of shape (m,) or None
        The weighted mean of k(x, Z) over the training rows; None without an intercept.
    dual_, basis_ : ndarray of shape (q, r), ndarray of shape (r, n) or None
        The weights are c(x) ``dual_`` ``basis_``, where c(x) is k(x, Z), or with an intercept
        k(x, Z) − ``input_mean_`` followed by a one. Without landmarks and components r is n, and
        None stands for the identity.
    input_kernel_ : str, kernel or callable
        The input kernel, with parameters that depend on the inputs filled in.

    See Also
    --------
    OKNeighbors : Averages the nearest training outputs.
    OKExtraTrees : Trees, which need no input kernel.

    References
    ----------
    J. Weston, O. Chapelle, A. Elisseeff, B. Schölkopf, V. Vapnik, "Kernel dependency estimation",
    NIPS 2002. C. Cortes, M. Mohri, J. Weston, "A general regression technique for learning
    transductions", ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from okforest import OKRidge
    >>> from okforest.kernels import RBF
    >>> digits = load_digits().data
    >>> upper, lower = digits[:, :32], digits[:, 32:]
    >>> model = OKRidge(alpha="loo", input_kernel=RBF(), kernel=RBF())
    >>> model.fit(upper[:300], lower[:300]).predict(upper[500:502]).shape
    (2, 32)
    >>> model.alphas_.shape == model.loo_loss_.shape == (21,)
    True
    """

    alpha_: float
    alphas_: Maybe[Floats]
    loo_loss_: Maybe[Floats]
    landmarks_: Positions
    inputs_: Maybe[Inputs]
    input_mean_: Floats | None
    dual_: Floats
    basis_: Floats | None
    input_kernel_: Any
    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"loo"}), "array-like"],
        "fit_intercept": ["boolean"],
        "kernel": "no_validation",  # as_kernel has better messages
        "input_kernel": CONSTRAINT,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "decoder": "no_validation",  # as_decoder has better messages
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        kernel: Any = "linear",
        input_kernel: Any = "rbf",
        n_components: int | None = None,
        n_landmarks: int | None = None,
        decoder: Any = "auto",
        random_state: Any = None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.kernel = kernel
        self.input_kernel = input_kernel
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.decoder = decoder
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OKRidge":
        """Solve for the weights.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; with ``input_kernel="precomputed"`` their Gram matrix, of shape (n, n).
        y : array-like of n outputs
            Outputs that the kernel accepts: numbers, vectors, labels, a list of any objects, or
            positions in a precomputed Gram matrix.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A row of weight 3 is equivalent to three equal rows, except that
            leave-one-out removes it as one.

        Returns
        -------
        self : object
            The fitted model.
        """
        inputs = self._learn_inputs(X)
        X = inputs.X
        weight = check_weights(sample_weight, X)
        kernel, outputs = self.validate_outputs(X, y, weight)
        self.input_kernel_ = resolve_input_kernel(self.input_kernel, X, weight)
        used = np.flatnonzero(weight)
        chosen = self._choose_landmarks(len(used))
        self.landmarks_ = used if chosen is None else used[chosen]
        if self.input_kernel == "precomputed":
            K = X[np.ix_(used, self.landmarks_)]
        else:
            self.inputs_ = X[self.landmarks_]
            K = input_gram(self.input_kernel_, X[used], self.inputs_)
        check_symmetric(K if chosen is None else K[chosen], "the Gram matrix of the input kernel")
        rows = ScaledRows(weight[used], self.fit_intercept)
        dual, basis = self._solve(K, chosen, ScaledOutputs(kernel, outputs[used], rows))
        self.input_mean_ = None
        if rows.constant is not None:
            self.input_mean_ = weight[used] @ K / weight.sum()
            # The one that follows k(x, Z) adds the mean of the outputs.
            mean = rows.constant / rows.norm
            dual = np.vstack([dual, mean if basis is None else mean @ basis])
        if basis is None:
            self.dual_, self.basis_ = _at_columns(used, dual * rows.scale, weight), None
        else:
            self.dual_, self.basis_ = dual, _at_columns(used, basis.T * rows.scale, weight)
        self.store_outputs(kernel, outputs)
        return self

    def _choose_landmarks(self, n: int) -> Positions | None:
        if self.n_landmarks is None:
            return None
        rng = check_random_state(self.random_state)
        return np.sort(rng.choice(n, size=min(self.n_landmarks, n), replace=False))

    def _solve(
        self, K: Floats, landmarks: Positions | None, outputs: ScaledOutputs
    ) -> tuple[Floats, Floats | None]:
        """Choose the penalty and solve; with a basis, for as many right-hand sides as it has."""
        rows, principal = outputs.rows, None
        if self.n_components is not None:
            principal = outputs.principal(self.n_components, square=landmarks is None)
        basis = principal
        if principal is not None and rows.constant is not None:
            basis = np.column_stack([principal, rows.constant])
        if isinstance(self.alpha, Real):
            self.alpha_ = float(self.alpha)
            dual = solve_exactly(K, rows, self.alpha_, basis) if landmarks is None else None
            if dual is not None:
                return dual, basis
        if landmarks is None:
            spectrum = exact_spectrum(K, rows)
        else:
            spectrum = landmark_spectrum(K, landmarks, rows)
        if not isinstance(self.alpha, Real):
            self.alphas_ = self._penalties(K if landmarks is None else K[landmarks])
            losses = leave_one_out(spectrum, outputs, self.alphas_, principal)
            self.loo_loss_ = losses / rows.norm**2
            self.alpha_ = float(self.alphas_[self.loo_loss_.argmin()])
        if landmarks is not None and basis is None:
            basis = spectrum.vectors
        return spectrum.solve(self.alpha_, basis), basis

    def _penalties(self, K: Floats) -> Floats:
        """Return the penalties to choose from; K is a Gram matrix of inputs."""
        if isinstance(self.alpha, str):
            square = float(np.diagonal(K).mean())
            variance = square - float(K.mean()) if self.fit_intercept else square
            if variance <= 1e-12 * abs(square):  # equal inputs, up to rounding
                variance = abs(square) or 1.0
            return GRID * variance
        alphas = np.asarray(self.alpha, dtype=np.float64)
        if alphas.ndim != 1 or len(alphas) == 0 or not ((alphas > 0) & (alphas < np.inf)).all():
            raise ValueError(
                f"alpha={self.alpha!r}; use a positive number, a list of them, or 'loo'."
            )
        return alphas

    def weight_matrix(self, X: Any) -> ProductWeights:
        """Return the weights of the training outputs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; with ``input_kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        W : ProductWeights of shape (n, n_train)
            Row i holds w(x_i).
        """
        check_is_fitted(self, "outputs_")
        X = self._check_inputs(X)
        if self.input_kernel_ == "precomputed":
            K = X[:, self.landmarks_]
        else:
            K = input_gram(self.input_kernel_, X, self.inputs_)
        if self.input_mean_ is not None:
            K = np.column_stack([K - self.input_mean_, np.ones(len(K))])
        if self.basis_ is None:
            return ProductWeights(K, self.dual_)
        return ProductWeights(K @ self.dual_, self.basis_)

    def _learn_inputs(self, X: Any) -> TrainingInputs:
        inputs = learn_numbers(self, X, missing=MISSING_ADVICE)
        if self.input_kernel == "precomputed":
            check_pairwise(inputs.X, "input_kernel='precomputed'", square=True)
        return inputs

    def _check_inputs(self, X: Any) -> Inputs:
        X = check_numbers(self, X, missing=MISSING_ADVICE)
        if self.input_kernel == "precomputed":
            check_pairwise(X, "input_kernel='precomputed'", square=False)
        return X

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        check_feature_count(self)
        check_floats(self, "dual_", 2)
        n_landmarks, rank = self.dual_.shape
        if self.input_mean_ is not None:
            n_landmarks -= 1
            check_floats(self, "input_mean_", 1, (n_landmarks,))
        check_length(self, "landmarks_", n_landmarks)
        if hasattr(self, "inputs_"):
            check_floats(self, "inputs_", 2, (n_landmarks, self.n_features_in_))
        n_rows = rank
        if self.basis_ is not None:
            check_floats(self, "basis_", 2)
            check_length(self, "basis_", rank)
            n_rows = self.basis_.shape[1]
        check_length(self, "outputs_", n_rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.input_kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise and takes_sparse(self.input_kernel)
        return tags


def _at_columns(rows: Positions, values: Floats, weight: Floats) -> Floats:
    """Return a matrix with these columns, and zeros for rows of weight zero."""
    if len(rows) == len(weight):
        return values
    matrix = np.zeros((len(values), len(weight)))
    matrix[:, rows] = values
    return matrix
