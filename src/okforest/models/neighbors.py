"""Nearest neighbours in the space of inputs."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.neighbors import VALID_METRICS_SPARSE, NearestNeighbors
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from okforest._compat import Interval, StrOptions, fit_context
from okforest._threads import thread_count
from okforest._typing import Floats, Weights
from okforest._validation import check_numbers, check_pairwise, check_weights
from okforest.engine.inputs import Inputs
from okforest.kernels import OutputKernel
from okforest.models._base import Averager
from okforest.models._docs import document
from okforest.models._input_kernel import (
    CONSTRAINTS,
    InputKernel,
    input_diag,
    input_gram,
    resolve_input_kernel,
)

SPARSE_METRICS = set(VALID_METRICS_SPARSE["brute"]) - {"precomputed"}
BLOCK_BYTES = 2**26  # of distances held at a time


class Nearest(NamedTuple):
    """The nearest training rows of each input, nearest first, all of shape (n, k)."""

    rows: npt.NDArray[np.intp]
    distances: Floats
    kernel: Floats | None = None  # k(x, z), where the distance comes from a kernel


@document
class OKNeighbors(Averager):
    """The k nearest neighbours: their outputs' mean in the kernel's feature space.

    With the linear kernel it is :class:`sklearn.neighbors.KNeighborsRegressor`, with the Dirac
    kernel :class:`sklearn.neighbors.KNeighborsClassifier`. Near is what ``metric`` says, or
    ``input_kernel``, if there is one: ‖φ(x) − φ(z)‖² = k(x, x) − 2 k(x, z) + k(z, z).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {shared_attributes}
    inputs_ : ndarray or csr_array of shape (n, p)
        The training inputs; absent with ``metric="precomputed"``.
    row_weight_ : ndarray of shape (n,)
        The weights of the training rows.
    input_kernel_ : dict
        The input kernel and its parameters, if there is one.

    See Also
    --------
    OKExtraTrees : Neighbours in trees, which learn what is near.
    OKRidge : All training outputs, weighted by a kernel on inputs.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from okforest import OKNeighbors
    >>> digits = load_digits().data
    >>> upper, lower = digits[:, :32], digits[:, 32:]
    >>> model = OKNeighbors(3, kernel="rbf").fit(upper[:500], lower[:500])
    >>> model.predict(upper[500:502]).shape
    (2, 32)
    >>> model.predict_weights(upper[500:501]).data
    array([0.33333333, 0.33333333, 0.33333333])
    """

    inputs_: Inputs
    row_weight_: Floats
    input_kernel_: InputKernel
    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "kernel": "no_validation",  # as_kernel has better messages
        "weights": [StrOptions({"uniform", "distance", "kernel"}), callable],
        "metric": [str, callable],
        "metric_params": [dict, None],
        **CONSTRAINTS,
        "input_kernel": [*CONSTRAINTS["input_kernel"], None],
        "decoder": "no_validation",  # as_decoder has better messages
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        kernel: Any = "linear",
        weights: Literal["uniform", "distance", "kernel"] | Callable[[Floats], Any] = "uniform",
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        input_kernel: Any = None,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        input_kernel_params: dict[str, Any] | None = None,
        decoder: Any = "auto",
        n_jobs: int | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.weights = weights
        self.metric = metric
        self.metric_params = metric_params
        self.input_kernel = input_kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.input_kernel_params = input_kernel_params
        self.decoder = decoder
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OKNeighbors":
        """Keep the training rows.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; with ``metric="precomputed"`` their distances, of shape (n, n).
        y : array-like of n outputs
            Outputs, of the kernel's kind: numbers, vectors, labels, a list of any objects, or
            positions in a precomputed Gram matrix.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A row of weight 3 is as good as three equal rows, and counts as
            three neighbours; a row counts as one at least, if its weight is not zero.

        Returns
        -------
        self : object
            The fitted model.
        """
        self._forget("outputs_", "kernel_", "inputs_", "row_weight_", "input_kernel_", "_index")
        self._check_distance()
        X = self._check_inputs(X, reset=True)
        weight = check_weights(sample_weight, X)
        n_samples = _counts(weight).sum()
        if n_samples < self.n_neighbors:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} is more than the {n_samples:g} training rows; use "
                "fewer neighbours, or more rows."
            )
        kernel, outputs = self._check_target(X, y, weight)
        if self.input_kernel is not None:
            self.input_kernel_ = resolve_input_kernel(self, X)
        if self.metric != "precomputed":
            self.inputs_ = X.copy()
        self.row_weight_ = weight
        self.kernel_, self.outputs_ = kernel, outputs
        if self._uses_index():
            self._index = self._build_index()
        return self

    def predict_weights(self, X: Any) -> Weights:
        """Return the weights of the training outputs: the lossless prediction.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; with ``metric="precomputed"`` their distances to the training rows.

        Returns
        -------
        W : csr_array of shape (n, n_train)
            Row i holds w(x_i): not negative, and summing to one.
        """
        check_is_fitted(self, "outputs_")
        X = self._check_inputs(X, reset=False)
        used = np.flatnonzero(self.row_weight_)
        # A row counts as one at least: so many rows hold the neighbours that are asked for.
        nearest = self._nearest(X, used, min(self.n_neighbors, len(used)))
        weight = self.row_weight_[used][nearest.rows]
        counts = _counts(weight)
        before = np.cumsum(counts, axis=1) - counts
        part = np.clip(self.n_neighbors - before, 0.0, counts) / counts
        share = part * weight
        values = self._vote(nearest) * share
        # Where the votes are all zero, no neighbour is known to be nearer than another.
        values = np.where(values.any(axis=1, keepdims=True), values, share)
        values /= values.sum(axis=1, keepdims=True)
        n, k = values.shape
        W = sp.csr_array(
            (values.ravel(), used[nearest.rows].ravel(), np.arange(0, n * k + 1, k)),
            shape=(n, len(self.outputs_)),
        )
        W.eliminate_zeros()
        W.sort_indices()
        return W

    def _check_distance(self) -> None:
        """Check that the parameters name one distance, and the weights that go with it."""
        if self.weights == "kernel" and self.input_kernel is None:
            raise ValueError("weights='kernel' needs an input_kernel, such as 'rbf'.")
        if self.input_kernel is None:
            return
        if self.input_kernel == "precomputed":
            raise ValueError(
                "input_kernel='precomputed' does not tell how far new inputs are; pass their "
                "distances as X, with metric='precomputed'."
            )
        if self.metric != "euclidean":
            raise ValueError(
                f"metric={self.metric!r} and input_kernel={self.input_kernel!r} name two distances;"
                " leave one of them at its default."
            )

    def _check_inputs(self, X: Any, *, reset: bool) -> Inputs:
        advice = "use metric='nan_euclidean', fill them in, or use trees."
        X = check_numbers(self, X, reset=reset, missing="" if self._allows_nan() else advice)
        if self.metric == "precomputed":
            check_pairwise(X, "metric='precomputed'", square=reset)
        return X

    def _allows_nan(self) -> bool:
        return self.metric == "nan_euclidean" and self.input_kernel is None

    def _uses_index(self) -> bool:
        return self.metric != "precomputed" and self.input_kernel is None

    def _build_index(self) -> NearestNeighbors:
        params = dict(self.metric_params or {})
        index = NearestNeighbors(
            metric=self.metric,
            p=params.pop("p", 2),
            metric_params=params or None,
            n_jobs=thread_count(self.n_jobs),
        )
        used = self.row_weight_ > 0
        return index.fit(self.inputs_ if used.all() else self.inputs_[used])

    def _nearest(self, X: Inputs, used: npt.NDArray[np.intp], k: int) -> Nearest:
        """Return the k nearest of the training rows in use."""
        if self._uses_index():
            if not hasattr(self, "_index"):  # a model that was loaded
                self._index = self._build_index()
            distances, rows = self._index.kneighbors(X, k)
            return Nearest(rows, distances)
        size = max(1, BLOCK_BYTES // (8 * len(used)))
        blocks = [X[i : i + size] for i in range(0, X.shape[0], size)]
        if self.metric == "precomputed":
            found = [_smallest(np.asarray(block)[:, used], k) for block in blocks]
        else:
            Z = self.inputs_[used]
            diag = input_diag(self.input_kernel_, Z)
            found = [self._nearest_by_kernel(block, Z, diag, k) for block in blocks]
        return Nearest(
            np.concatenate([f.rows for f in found]),
            np.concatenate([f.distances for f in found]),
            None if found[0].kernel is None else np.concatenate([f.kernel for f in found]),
        )

    def _nearest_by_kernel(self, X: Inputs, Z: Inputs, diag: Floats, k: int) -> Nearest:
        """Search by the kernel's distance, ‖φ(x) − φ(z)‖² = k(x, x) − 2 k(x, z) + k(z, z)."""
        K = input_gram(self.input_kernel_, X, Z)
        squares = input_diag(self.input_kernel_, X)[:, None] - 2.0 * K + diag
        nearest = _smallest(np.sqrt(np.maximum(squares, 0.0)), k)
        return nearest._replace(kernel=np.take_along_axis(K, nearest.rows, axis=1))

    def _vote(self, nearest: Nearest) -> Floats:
        """Return what neighbours weigh by their distances, up to a factor."""
        if self.weights == "uniform":
            return np.ones_like(nearest.distances)
        if self.weights == "distance":
            with np.errstate(divide="ignore", invalid="ignore"):
                values = nearest.distances[:, :1] / nearest.distances
            # At no distance from a training row, it and its like are the prediction.
            return np.where(nearest.distances[:, :1] > 0, values, nearest.distances == 0)
        if self.weights == "kernel":
            values, name = np.asarray(nearest.kernel), "the input kernel"
        else:
            assert callable(self.weights)
            values, name = np.asarray(self.weights(nearest.distances), np.float64), "weights"
            if values.shape != nearest.distances.shape:
                raise ValueError(
                    f"weights returned an array of shape {values.shape} for distances of shape "
                    f"{nearest.distances.shape}; it must return one of the same shape."
                )
        if not np.isfinite(values).all() or values.min() < 0:
            raise ValueError(
                f"{name} gave a neighbour the weight {values.min():.3g}; weights must be finite and"
                " not negative. Use another, or weights='uniform'."
            )
        return values

    def __getstate__(self) -> Any:
        # The index is made again where it is needed: a pickle holds plain arrays.
        state = super().__getstate__().copy()
        state.pop("_index", None)
        return state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allows_nan()
        tags.input_tags.pairwise = self.metric == "precomputed"
        if self.input_kernel is None:
            tags.input_tags.sparse = self.metric in SPARSE_METRICS or callable(self.metric)
        else:
            tags.input_tags.sparse = not isinstance(self.input_kernel, OutputKernel)
        return tags


def _counts(weight: Floats) -> Floats:
    """Return how many neighbours rows are: as many as their weights, and at least one."""
    return np.where(weight > 0, np.maximum(weight, 1.0), 0.0)


def _smallest(distances: Floats, k: int) -> Nearest:
    """Return the k smallest of each row's distances, in order, and of equals the first."""
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Nearest(rows, np.take_along_axis(distances, rows, axis=1))
