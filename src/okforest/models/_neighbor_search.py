"""Searches for the nearest training rows: by an index, an input kernel, or given distances."""

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

from okforest._typing import Floats
from okforest.engine.inputs import Inputs
from okforest.models._input_kernel import InputKernel, input_diag, input_gram

BLOCK_BYTES = 2**26  # of distances held at a time


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

    def __init__(self, Z: Inputs, kernel: InputKernel):
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
