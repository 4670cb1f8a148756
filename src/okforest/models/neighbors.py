"""Nearest neighbours in the space of inputs."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.neighbors import VALID_METRICS_SPARSE, NearestNeighbors
from sklearn.utils import Tags
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
from okforest._utils.resources import thread_count
from okforest._utils.state import Maybe, check_feature_count, check_floats, check_length
from okforest.models.base import OKModel
from okforest.models.input_kernels import (
    CONSTRAINT,
    input_diag,
    input_gram,
    resolve_input_kernel,
    takes_sparse,
)
from okforest.models.parameter_docs import document
from okforest.weights import SparseWeights

BLOCK_BYTES = 2**26  # distances are computed in blocks of this size


class Nearest(NamedTuple):
    """The nearest training rows of each input, nearest first, all of shape (n, k)."""

    rows: npt.NDArray[np.intp]
    distances: Floats
    kernel: Floats | None = None  # k(x, z), if the distance comes from a kernel


class Search(Protocol):
    """A search among training rows, which keeps what every call needs."""

    def nearest(self, X: Inputs, k: int) -> Nearest:
        """Return the k nearest training rows."""


class IndexSearch:
    """A search by the index of scikit-learn that suits the metric."""

    def __init__(self, Z: Inputs, metric: Any, metric_params: dict[str, Any] | None, n_jobs: int):
        params = dict(metric_params or {})
        p = params.pop("p", 2)
        index = NearestNeighbors(metric=metric, p=p, metric_params=params or None, n_jobs=n_jobs)
        self.index = index.fit(Z)

    def nearest(self, X: Inputs, k: int) -> Nearest:
        """Return the k nearest training rows."""
        # In blocks, so that Ctrl-C is heard between them.
        return _joined([self._nearest(block, k) for block in _blocks(X, self.index.n_samples_fit_)])

    def _nearest(self, X: Inputs, k: int) -> Nearest:
        distances, rows = self.index.kneighbors(X, k)
        return Nearest(rows, distances)


class KernelSearch:
    """A search by the distance of a kernel, ‖φ(x) − φ(z)‖² = k(x, x) − 2 k(x, z) + k(z, z)."""

    def __init__(self, Z: Inputs, kernel: Any):
        self.inputs = Z
        self.kernel = kernel
        self.squares = input_diag(kernel, Z)

    def nearest(self, X: Inputs, k: int) -> Nearest:
        """Return the k nearest training rows."""
        return _joined([self._nearest(block, k) for block in _blocks(X, len(self.squares))])

    def _nearest(self, X: Inputs, k: int) -> Nearest:
        K = input_gram(self.kernel, X, self.inputs)
        squares = input_diag(self.kernel, X)[:, None] - 2.0 * K + self.squares
        nearest = _smallest(np.sqrt(np.maximum(squares, 0.0)), k)
        return nearest._replace(kernel=np.take_along_axis(K, nearest.rows, axis=1))


class DistanceSearch:
    """A search among given distances: X holds those to all training rows, used or not."""

    def __init__(self, used: npt.NDArray[np.intp]):
        self.used = used

    def nearest(self, X: Inputs, k: int) -> Nearest:
        """Return the k nearest of the training rows in use."""
        blocks = _blocks(X, len(self.used))
        return _joined([_smallest(np.asarray(block)[:, self.used], k) for block in blocks])


def _blocks(X: Inputs, n_train: int) -> list[Inputs]:
    size = max(1, BLOCK_BYTES // (8 * n_train))
    return [X[i : i + size] for i in range(0, X.shape[0], size)]


def _joined(parts: list[Nearest]) -> Nearest:
    kernels = [part.kernel for part in parts if part.kernel is not None]
    return Nearest(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.distances for part in parts]),
        np.concatenate(kernels) if kernels else None,
    )


def _smallest(distances: Floats, k: int) -> Nearest:
    """Return the k smallest distances of each row in ascending order, the first among equals."""
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return Nearest(rows, np.take_along_axis(distances, rows, axis=1))


SPARSE_METRICS = set(VALID_METRICS_SPARSE["brute"]) - {"precomputed"}
MISSING_ADVICE = "use metric='nan_euclidean', impute them, or use trees."


@document
class OKNeighbors(OKModel):
    """The mean of the outputs of the k nearest neighbours, in the kernel's feature space.

    With the linear kernel it is :class:`sklearn.neighbors.KNeighborsRegressor`, with the Dirac
    kernel :class:`sklearn.neighbors.KNeighborsClassifier`. Distances are given by ``metric``, or by
    ``input_kernel`` if it is set: ‖φ(x) − φ(z)‖² = k(x, x) − 2 k(x, z) + k(z, z).

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
    input_kernel_ : str, kernel or callable
        The input kernel, with parameters that depend on the inputs filled in, if there is one.

    See Also
    --------
    OKExtraTrees : Trees, which learn which inputs are similar.
    OKRidge : Combines all training outputs by an input kernel.

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

    inputs_: Maybe[Inputs]
    row_weight_: Floats
    input_kernel_: Maybe[Any]
    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "kernel": "no_validation",  # as_kernel has better messages
        "weights": [StrOptions({"uniform", "distance", "kernel"}), callable],
        "metric": [str, callable],
        "metric_params": [dict, None],
        "input_kernel": [*CONSTRAINT, None],
        "decoder": "no_validation",  # as_decoder has better messages
        "n_jobs": [Integral, None],
    }

    _derived: ClassVar[tuple[str, ...]] = (*OKModel._derived, "_search")

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        kernel: Any = "linear",
        weights: Literal["uniform", "distance", "kernel"] | Callable[[Floats], Any] = "uniform",
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        input_kernel: Any = None,
        decoder: Any = "auto",
        n_jobs: int | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.weights = weights
        self.metric = metric
        self.metric_params = metric_params
        self.input_kernel = input_kernel
        self.decoder = decoder
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OKNeighbors":
        """Store the training rows, and prepare the search for neighbours.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; with ``metric="precomputed"`` their distances, of shape (n, n).
        y : array-like of n outputs
            Outputs that the kernel accepts: numbers, vectors, labels, a list of any objects, or
            positions in a precomputed Gram matrix.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A row of weight 3 is equivalent to three equal rows, and counts as
            three neighbours. A row of positive weight counts as at least one neighbour.

        Returns
        -------
        self : object
            The fitted model.
        """
        self._check_distance()
        inputs = self._learn_inputs(X)
        X = inputs.X
        weight = check_weights(sample_weight, X)
        n_samples = _counts(weight).sum()
        if n_samples < self.n_neighbors:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} is larger than the number of training rows, "
                f"{n_samples:g}. Use fewer neighbours."
            )
        kernel, outputs = self.validate_outputs(X, y, weight)
        if self.input_kernel is not None:
            self.input_kernel_ = resolve_input_kernel(self.input_kernel, X, weight)
        if self.metric != "precomputed":
            self.inputs_ = X.copy()
        self.row_weight_ = weight
        self.store_outputs(kernel, outputs)
        self._search = self._prepare_search()
        return self

    def weight_matrix(self, X: Any) -> SparseWeights:
        """Return the weights of the training outputs; only neighbours have positive weights.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; with ``metric="precomputed"`` their distances to the training rows.

        Returns
        -------
        W : SparseWeights of shape (n, n_train)
            Row i holds w(x_i): non-negative, with sum one.
        """
        check_is_fitted(self, "outputs_")
        X = self._check_inputs(X)
        used = np.flatnonzero(self.row_weight_)
        # A row counts as at least one neighbour: n_neighbors rows are enough.
        nearest = self._search.nearest(X, min(self.n_neighbors, len(used)))
        weight = self.row_weight_[used][nearest.rows]
        counts = _counts(weight)
        before = np.cumsum(counts, axis=1) - counts
        part = np.clip(self.n_neighbors - before, 0.0, counts) / counts
        share = part * weight
        values = self._vote(nearest) * share
        # If all votes are zero, neighbours weigh the same.
        values = np.where(values.any(axis=1, keepdims=True), values, share)
        values /= values.sum(axis=1, keepdims=True)
        n, k = values.shape
        W = sp.csr_array(
            (values.ravel(), used[nearest.rows].ravel(), np.arange(0, n * k + 1, k)),
            shape=(n, len(self.outputs_)),
        )
        W.eliminate_zeros()
        W.sort_indices()
        return SparseWeights(W)

    def _check_distance(self) -> None:
        """Check that the parameters define one distance, and the weights fit it."""
        if self.weights == "kernel" and self.input_kernel is None:
            raise ValueError("weights='kernel' requires an input_kernel, such as 'rbf'.")
        if self.input_kernel is None:
            return
        if self.input_kernel == "precomputed":
            raise ValueError(
                "input_kernel='precomputed' does not determine distances to new inputs. Pass "
                "distances as X, with metric='precomputed'."
            )
        if self.metric != "euclidean":
            raise ValueError(
                f"metric={self.metric!r} and input_kernel={self.input_kernel!r} define two "
                "different distances. Set only one of them."
            )

    def _learn_inputs(self, X: Any) -> TrainingInputs:
        inputs = learn_numbers(self, X, missing="" if self._allows_nan() else MISSING_ADVICE)
        if self.metric == "precomputed":
            _check_distances(inputs.X, square=True)
        return inputs

    def _check_inputs(self, X: Any) -> Inputs:
        X = check_numbers(self, X, missing="" if self._allows_nan() else MISSING_ADVICE)
        if self.metric == "precomputed":
            _check_distances(X, square=False)
        return X

    def _allows_nan(self) -> bool:
        return self.metric == "nan_euclidean" and self.input_kernel is None

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if hasattr(self, "row_weight_"):
            self._search = self._prepare_search()

    def _prepare_search(self) -> Search:
        used = np.flatnonzero(self.row_weight_)
        if self.metric == "precomputed":
            return DistanceSearch(used)
        Z = self.inputs_ if len(used) == len(self.row_weight_) else self.inputs_[used]
        if self.input_kernel is not None:
            return KernelSearch(Z, self.input_kernel_)
        return IndexSearch(Z, self.metric, self.metric_params, thread_count(self.n_jobs))

    def _vote(self, nearest: Nearest) -> Floats:
        """Return the weights of neighbours by their distances, up to a factor."""
        if self.weights == "uniform":
            return np.ones_like(nearest.distances)
        if self.weights == "distance":
            with np.errstate(divide="ignore", invalid="ignore"):
                values = nearest.distances[:, :1] / nearest.distances
            # Training rows at distance zero, if there are any, have all of the weight.
            return np.where(nearest.distances[:, :1] > 0, values, nearest.distances == 0)
        if self.weights == "kernel":
            values, name = np.asarray(nearest.kernel), "the input kernel"
        else:
            assert callable(self.weights)
            values, name = np.asarray(self.weights(nearest.distances), np.float64), "weights"
            if values.shape != nearest.distances.shape:
                raise ValueError(
                    f"weights returned an array of shape {values.shape} for distances of shape "
                    f"{nearest.distances.shape}; it must return an array of the same shape."
                )
        if not np.isfinite(values).all() or values.min() < 0:
            raise ValueError(
                f"{name} gave a neighbour the weight {values.min():.3g}; weights must be finite and"
                " non-negative. Use another function or kernel, or weights='uniform'."
            )
        return values

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        check_feature_count(self)
        check_floats(self, "row_weight_", 1)
        n_rows, n_features = len(self.row_weight_), self.n_features_in_
        if self.metric == "precomputed":
            if n_rows != n_features:
                raise ValueError(f"row_weight_ has {n_rows} entries, not {n_features}")
        else:
            needed = ["inputs_"] if self.input_kernel is None else ["inputs_", "input_kernel_"]
            missing = [name for name in needed if not hasattr(self, name)]
            if missing:
                raise ValueError(f"the fitted OKNeighbors is incomplete, with {missing[0]} missing")
            check_floats(self, "inputs_", 2, (n_rows, n_features))
        check_length(self, "outputs_", n_rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allows_nan()
        tags.input_tags.pairwise = self.metric == "precomputed"
        if self.input_kernel is None:
            tags.input_tags.sparse = self.metric in SPARSE_METRICS or callable(self.metric)
        else:
            tags.input_tags.sparse = takes_sparse(self.input_kernel)
        return tags


def _check_distances(X: Inputs, *, square: bool) -> None:
    check_pairwise(X, "metric='precomputed'", square=square)
    if X.min() < 0:
        raise ValueError(
            f"X has a negative distance, {X.min():.3g}; with metric='precomputed' distances must "
            "be non-negative. Turn similarities into distances first."
        )


def _counts(weight: Floats) -> Floats:
    """Return the number of neighbours that each row counts as: its weight, and at least one."""
    return np.where(weight > 0, np.maximum(weight, 1.0), 0.0)
