"""Kernel ridge regression between two feature spaces."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from okforest._compat import Interval, StrOptions, fit_context
from okforest._typing import Floats, Weights
from okforest._validation import check_numbers, check_pairwise, check_weights
from okforest.embedding import ProductWeights
from okforest.engine.inputs import Inputs
from okforest.kernels import OutputKernel
from okforest.models._base import Averager
from okforest.models._docs import document
from okforest.models._input_kernel import (
    CONSTRAINTS,
    InputKernel,
    input_gram,
    resolve_input_kernel,
)
from okforest.models._spectrum import (
    ScaledOutputs,
    exact_spectrum,
    landmark_spectrum,
    leave_one_out,
    solve_exactly,
)

Positions = npt.NDArray[np.intp]

# The penalties that alpha="loo" tries, relative to the mean of k(x, x).
GRID = np.logspace(-8, 2, 21)


@document
class OKRidge(Averager):
    """Ridge regression from an input kernel to an output kernel: kernel dependency estimation.

    The weights w(x) = (K + αI)⁻¹ k(x) minimise Σ_i ‖φ(y_i) − F(x_i)‖² + α‖F‖², the sum being
    weighted by ``sample_weight``. They may be negative, and need not sum to one. With the linear
    output kernel it is :class:`sklearn.kernel_ridge.KernelRidge`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {shared_attributes}
    alpha_ : float
        The penalty.
    alphas_, loo_loss_ : ndarray
        With several penalties, these, and the leave-one-out loss in feature space of each: the mean
        of ‖φ(y_i) − F₋ᵢ(x_i)‖², where F₋ᵢ is fitted without row i, whatever its weight. (Landmarks
        and components are those of all rows.)
    landmarks_ : ndarray of shape (m,)
        The training rows that inputs are compared with: those of ``n_landmarks``, or all (but those
        of weight zero).
    inputs_ : ndarray or csr_array of shape (m, p)
        Their inputs; absent with ``input_kernel="precomputed"``.
    dual_, basis_ : ndarray of shape (m, r), ndarray of shape (r, n) or None
        The weights are k(x, Z) ``dual_`` ``basis_``, where Z are ``inputs_``. Without landmarks and
        components r is n, and None stands for the identity.
    input_kernel_ : dict
        The input kernel and its parameters.

    See Also
    --------
    OKNeighbors : The nearest training outputs alone.
    OKExtraTrees : Trees, which need no kernel on inputs.

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
    alphas_: Floats
    loo_loss_: Floats
    landmarks_: Positions
    inputs_: Inputs
    dual_: Floats
    basis_: Floats | None
    input_kernel_: InputKernel
    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"loo"}), "array-like"],
        "kernel": "no_validation",  # as_kernel has better messages
        **CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "decoder": "no_validation",  # as_decoder has better messages
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        kernel: Any = "linear",
        input_kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        input_kernel_params: dict[str, Any] | None = None,
        n_components: int | None = None,
        n_landmarks: int | None = None,
        decoder: Any = "auto",
        random_state: Any = None,
    ):
        self.alpha = alpha
        self.kernel = kernel
        self.input_kernel = input_kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.input_kernel_params = input_kernel_params
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
            Outputs, of the kernel's kind: numbers, vectors, labels, a list of any objects, or
            positions in a precomputed Gram matrix.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A row of weight 3 is as good as three equal rows; but it is left
            out as one.

        Returns
        -------
        self : object
            The fitted model.
        """
        self._forget("outputs_", "alphas_", "loo_loss_", "inputs_")
        X = self._check_inputs(X, reset=True)
        weight = check_weights(sample_weight, X)
        kernel, outputs = self._check_target(X, y, weight)
        self.input_kernel_ = resolve_input_kernel(self, X)
        rows = np.flatnonzero(weight)  # those of weight zero take no part
        chosen = self._choose_landmarks(len(rows))
        self.landmarks_ = rows if chosen is None else rows[chosen]
        if self.input_kernel == "precomputed":
            K = X[np.ix_(rows, self.landmarks_)]
        else:
            self.inputs_ = X[self.landmarks_]
            K = input_gram(self.input_kernel_, X[rows], self.inputs_)
        scale = np.sqrt(weight[rows])
        dual, basis = self._solve(K, chosen, ScaledOutputs(kernel, outputs[rows], scale))
        if basis is None:
            self.dual_, self.basis_ = _at_columns(rows, dual * scale, weight), None
        else:
            self.dual_, self.basis_ = dual, _at_columns(rows, basis.T * scale, weight)
        self.kernel_, self.outputs_ = kernel, outputs
        return self

    def _choose_landmarks(self, n: int) -> Positions | None:
        if self.n_landmarks is None:
            return None
        rng = check_random_state(self.random_state)
        return np.sort(rng.choice(n, size=min(self.n_landmarks, n), replace=False))

    def _solve(
        self, K: Floats, landmarks: Positions | None, outputs: ScaledOutputs
    ) -> tuple[Floats, Floats | None]:
        """Choose the penalty and solve; with a basis, as few right-hand sides as it has columns."""
        basis = None
        if self.n_components is not None:
            basis = outputs.principal(self.n_components, square=landmarks is None)
        if landmarks is None and isinstance(self.alpha, Real):
            self.alpha_ = float(self.alpha)
            return solve_exactly(K, outputs.scale, self.alpha_, basis), basis
        if landmarks is None:
            spectrum, squares = exact_spectrum(K, outputs.scale), np.diagonal(K)
        else:
            spectrum = landmark_spectrum(K, landmarks, outputs.scale)
            squares = np.diagonal(K[landmarks])
        if isinstance(self.alpha, Real):
            self.alpha_ = float(self.alpha)
        else:
            self.alphas_ = self._penalties(float(squares.mean()))
            losses = leave_one_out(spectrum, outputs, self.alphas_, basis)
            self.loo_loss_ = losses / (outputs.scale**2).sum()
            self.alpha_ = float(self.alphas_[self.loo_loss_.argmin()])
        if landmarks is not None and basis is None:
            basis = spectrum.vectors
        return spectrum.solve(self.alpha_, basis), basis

    def _penalties(self, mean_square: float) -> Floats:
        """Return the penalties to choose from."""
        if isinstance(self.alpha, str):
            return GRID * (mean_square or 1.0)
        alphas = np.asarray(self.alpha, dtype=np.float64)
        if alphas.ndim != 1 or len(alphas) == 0 or not ((alphas > 0) & (alphas < np.inf)).all():
            raise ValueError(
                f"alpha={self.alpha!r}; use a positive number, a list of them, or 'loo'."
            )
        return alphas

    def predict_weights(self, X: Any) -> Weights:
        """Return the weights of the training outputs: the lossless prediction.

        They are hardly ever zero: the matrix takes 12 bytes for each input and training output.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; with ``input_kernel="precomputed"`` their kernel with the training rows.

        Returns
        -------
        W : csr_array of shape (n, n_train)
            Row i holds w(x_i).
        """
        return self._weights(X).tocsr()

    def _weights(self, X: Any) -> ProductWeights:
        check_is_fitted(self, "outputs_")
        X = self._check_inputs(X, reset=False)
        if self.input_kernel_["metric"] == "precomputed":
            K = X[:, self.landmarks_]
        else:
            K = input_gram(self.input_kernel_, X, self.inputs_)
        if self.basis_ is None:
            return ProductWeights(K, self.dual_)
        return ProductWeights(K @ self.dual_, self.basis_)

    def _check_inputs(self, X: Any, *, reset: bool) -> Inputs:
        X = check_numbers(self, X, reset=reset, missing="fill them in, or use trees.")
        if self.input_kernel == "precomputed":
            check_pairwise(X, "input_kernel='precomputed'", square=reset)
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.input_kernel == "precomputed"
        tags.input_tags.sparse = not (
            tags.input_tags.pairwise or isinstance(self.input_kernel, OutputKernel)
        )
        return tags


def _at_columns(rows: Positions, values: Floats, weight: Floats) -> Floats:
    """Return a matrix with these columns, and zeros for rows without weight."""
    if len(rows) == len(weight):
        return values
    matrix = np.zeros((len(values), len(weight)))
    matrix[:, rows] = values
    return matrix
