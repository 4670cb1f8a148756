"""What kernels on the vertices of a graph share: they are functions r(L) of a Laplacian L.

With L = U Λ Uᵀ, r(L) = U r(Λ) Uᵀ. Small graphs are decomposed once; of large ones the requested
columns are computed by products with L or by solving with it, so that no N × N array is made.
"""

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.kernels._base import OutputKernel
from okforest.kernels._laplacian import GraphLaplacian, Positions, residual_trace
from okforest.kernels._vertices import Vertices

DENSE = 2000  # vertices up to which the Laplacian is decomposed as a whole
BLOCK = 64  # columns of a large kernel that are computed at a time: they stay in the cache
# Relative to the largest diagonal entry: below it, a vertex has no features but rounding.
NOTHING = 1e-12

T = TypeVar("T", bound=type)

# Texts of docstrings, written once.
DOCS = {
    "outputs": """Outputs are vertices: integer positions in the adjacency matrix, or names where
    they have names. The graph is shared by clones and must not be changed afterwards.""",
    "graph": """graph : array-like or sparse matrix of shape (n, n), or networkx graph, optional
        The adjacency matrix A: symmetric weights ≥ 0 of links, 0 for none. Loops are ignored: they
        cancel in D − A. Of a networkx graph, edges have their ``weight``, or 1; parallel ones add
        up, and its nodes are the names of the vertices. Without a graph the kernel waits for
        ``set_params(graph=...)``.""",
    "shared": """normalized : bool, default=False
        Whether to divide k(y, y') by √(k(y, y) k(y', y')); 0 where that is 0 / 0.
    rank : int, optional
        Keep the largest eigenvalues only, so many. That is an approximation, whose cost
        :meth:`residual_share` tells, by explicit features: for large graphs, trees grow from
        an array of n × rank instead of n × n. By default the kernel is exact.
    names : array-like of shape (n,), optional
        Names of the vertices, in the order of the matrix; outputs are then names.""",
}


def document(kernel: T) -> T:
    """Fill in the shared texts."""
    kernel.__doc__ = (kernel.__doc__ or "").format(**DOCS)
    return kernel


class VertexKernel(OutputKernel):
    """A kernel r(L) on vertices; a subclass has r, and r(L) B by sparse products.

    ``graph``, ``names``, ``normalized`` and ``rank`` are parameters of every subclass.
    """

    known_psd = True
    graph: Any
    names: Any
    normalized: bool
    rank: int | None
    # What is derived from the parameters, beside what it was derived from.
    _vertices_of: tuple[Any, Any, Vertices] | None = None
    _factor_of: tuple[Any, Floats] | None = None
    _diagonal_of: tuple[Any, Floats] | None = None

    @abstractmethod
    def _spectral(self, eigenvalues: Floats) -> Floats:
        """Return r(λ) ≥ 0, which decreases where λ > 0."""

    @abstractmethod
    def _product(self, B: Floats) -> Floats:
        """Return r(L) B."""

    def _check_parameters(self) -> None:
        """Raise a ValueError unless r(L) is a kernel."""
        if self.rank is not None and (not isinstance(self.rank, Integral) or self.rank < 1):
            raise ValueError(
                f"{type(self).__name__} got rank={self.rank!r}; use a whole number ≥ 1, or None."
            )

    @property
    def _laplacian(self) -> GraphLaplacian:
        return self._vertices.laplacian

    def check(self, y: Any) -> Outputs:
        """Return y as positions or names of vertices, after checking the graph (once)."""
        return self._vertices.check(y)

    def resolve(self, y: Outputs) -> Self:
        """Put the graph into one form, a CSR array and names."""
        vertices = self._vertices
        canonical = {"graph": vertices.adjacency, "names": vertices.names}
        resolved = type(self)(**self.get_params(deep=False) | canonical)
        resolved._vertices_of = (vertices.adjacency, vertices.names, vertices)
        resolved._factor_of = self._factor_of
        return resolved

    def __call__(self, a: Outputs, b: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        rows = self._vertices.positions(a)
        columns = rows if b is None else self._vertices.positions(b)
        factor = self._factor
        if factor is not None:
            left = factor[rows]
            return left @ (left if b is None else factor[columns]).T
        if len(np.unique(rows)) < len(np.unique(columns)):
            assert b is not None
            return np.ascontiguousarray(self(b, a).T)
        K = np.empty((len(rows), len(columns)))
        for wanted, which, values in self._columns(columns):
            K[:, wanted] = values[rows][:, which]
        if self.normalized:
            K *= self._scale(rows)[:, None]
            K *= self._scale(columns)[None, :]
        return (K + K.T) / 2 if b is None else K

    def pairs(self, a: Outputs, b: Outputs) -> Floats:
        """Return k(a_i, b_i)."""
        rows, columns = self._vertices.positions(a), self._vertices.positions(b)
        factor = self._factor
        if factor is not None:
            return np.einsum("ij,ij->i", factor[rows], factor[columns])
        result = np.empty(len(rows))
        for wanted, which, values in self._columns(columns):
            result[wanted] = values[rows[wanted], which]
        return result * self._scale(rows) * self._scale(columns) if self.normalized else result

    def diag(self, a: Outputs) -> Floats:
        """Return k(a_i, a_i)."""
        if self._factor is not None:
            return self.pairs(a, a)
        positions = self._vertices.positions(a)
        if self.normalized:
            return (self._scale(positions) > 0).astype(np.float64)
        return self._diagonal(positions)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the rank; without one there are no features."""
        factor = None if self.rank is None else self._factor
        return None if factor is None else factor.shape[1]

    def features(self, a: Outputs) -> Floats:
        """Return the leading eigenvectors' entries, scaled."""
        if self.rank is None or self._factor is None:
            return super().features(a)
        return self._factor[self._vertices.positions(a)]

    def residual_share(self) -> float:
        """Return which share of the trace of r(L) ``rank`` leaves out: 0 is none, 1 all.

        For graphs of more than 2,000 vertices it is estimated, from 64 random vectors.
        """
        if self.rank is None:
            return 0.0
        values, vectors = self._leading
        if self._is_small:
            total = float(self._spectral(self._laplacian.spectrum[0]).sum())
        else:
            total = float(values.sum()) + residual_trace(self._product, vectors)
        return max(0.0, 1.0 - float(values.sum()) / total) if total > 0 else 0.0

    @property
    def _vertices(self) -> Vertices:
        """Return the graph, checked, as the parameters are."""
        self._check_parameters()
        if self.graph is None:
            name = type(self).__name__
            raise ValueError(
                f"{name}() has no graph; pass one as {name}(graph), or set it by "
                "kernel.set_params(graph=...)."
            )
        known = self._vertices_of
        if known is None or known[0] is not self.graph or known[1] is not self.names:
            known = self._vertices_of = (self.graph, self.names, Vertices(self.graph, self.names))
        return known[2]

    @property
    def _state(self) -> tuple[Any, ...]:
        """Return what features depend on."""
        params = self.get_params(deep=False)
        del params["graph"], params["names"]
        return self._vertices, tuple(params.items())

    @property
    def _is_small(self) -> bool:
        n = len(self._vertices)
        # Lanczos iterations pay for a small part of the spectrum alone.
        return n <= DENSE or (self.rank is not None and 4 * self.rank >= n)

    @property
    def _leading(self) -> tuple[Floats, Floats]:
        """Return the largest eigenvalues of r(L), with vectors; all where there is no rank."""
        if self.rank is not None and not self._is_small:
            at_zero = float(self._spectral(np.zeros(1))[0])
            smallest, vectors = self._laplacian.smallest(self.rank, null_space=at_zero > 0)
            return self._spectral(smallest), vectors
        eigenvalues, vectors = self._laplacian.spectrum
        values = self._spectral(eigenvalues)
        kept = np.argsort(-values, kind="stable")[: self.rank]
        return values[kept], vectors[:, kept]

    @property
    def _factor(self) -> Floats | None:
        """Return Φ with r(L) = Φ Φᵀ, or None where the graph is too large for an exact one."""
        if self.rank is None and not self._is_small:
            return None
        state = self._state
        if self._factor_of is None or self._factor_of[0] != state:
            values, vectors = self._leading
            factor = vectors * np.sqrt(values)
            if self.normalized:
                squares = np.einsum("ij,ij->i", factor, factor)
                factor *= _inverse_roots(squares, NOTHING * squares.max())[:, None]
            self._factor_of = state, factor
        return self._factor_of[1]

    def _columns(self, positions: Positions) -> Iterator[tuple[Positions, Positions, Floats]]:
        """Compute columns of r(L), a block of different ones at a time.

        Yield the indices into positions that a block has, its columns that they are, the block.
        """
        different, which = np.unique(positions, return_inverse=True)
        for start in range(0, len(different), BLOCK):
            block = different[start : start + BLOCK]
            unit = np.zeros((len(self._vertices), len(block)))
            unit[block, np.arange(len(block))] = 1.0
            wanted = np.flatnonzero((which >= start) & (which < start + BLOCK))
            values = self._product(unit)
            self._known_diagonal[block] = values[block, np.arange(len(block))]
            yield wanted, which[wanted] - start, values

    @property
    def _known_diagonal(self) -> Floats:
        """Return the diagonal of r(L) as far as its columns were computed, NaN elsewhere."""
        state = self._state
        if self._diagonal_of is None or self._diagonal_of[0] != state:
            self._diagonal_of = state, np.full(len(self._vertices), np.nan)
        return self._diagonal_of[1]

    def _diagonal(self, positions: Positions) -> Floats:
        for _ in self._columns(positions[np.isnan(self._known_diagonal[positions])]):
            pass  # it is kept
        return self._known_diagonal[positions]

    def _scale(self, positions: Positions) -> Floats:
        return _inverse_roots(self._diagonal(positions))

    def __sklearn_clone__(self) -> Self:
        # A search must not copy, check nor decompose the graph for every candidate.
        clone = type(self)(**self.get_params(deep=False))
        clone._vertices_of, clone._factor_of = self._vertices_of, self._factor_of
        clone._diagonal_of = self._diagonal_of
        return clone

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_vertices_of", "_factor_of", "_diagonal_of")
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in derived}


def _inverse_roots(squares: Floats, nothing: float = 0.0) -> Floats:
    """Return 1 / √s, and 0 where s is nothing."""
    roots = np.sqrt(np.maximum(squares, 0.0))
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=squares > nothing)
