"""Kernels on the vertices of a graph."""

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.compat import Interval
from okforest._utils.parameters import COUNT, POSITIVE, check_parameters
from okforest.kernels.base import OutputKernel
from okforest.kernels.laplacian import GraphLaplacian, Positions, Vertices, residual_trace

DENSE = 2000  # up to this number of vertices, the full spectrum of the Laplacian is computed
BLOCK = 64  # columns of a large kernel computed at a time, so that they stay in cache
KEPT_BYTES = 2**28  # largest kernel whose columns are kept: a fit and predictions need the same
# Relative to the largest diagonal entry: smaller squared norms are rounding errors.
ZERO = 1e-12

T = TypeVar("T", bound=type)

# Parts of docstrings that all kernels on vertices share.
SHARED_DOCS = {
    "outputs": """Outputs are vertices: positions in the adjacency matrix, or names if the vertices
    have names. Clones share the graph, so it must not be modified afterwards.""",
    "graph": """graph : array-like or sparse matrix of shape (n, n), or networkx graph, optional
        The adjacency matrix A: symmetric, with weights ≥ 0, where 0 means no link. Self-loops are
        ignored, because they cancel in D − A. In a networkx graph, edges have their ``weight``, or
        1, the weights of parallel edges are added, and the nodes are the names of the vertices. A
        kernel created without a graph needs ``set_params(graph=...)`` before use.""",
    "shared": """normalize : bool, default=False
        Whether to divide k(y, y') by √(k(y, y) k(y', y')), with 0 / 0 = 0.
    rank : int, optional
        Keep only this number of largest eigenvalues, as explicit features: for large graphs, trees
        are grown from an array of shape (n, rank) instead of (n, n). :meth:`residual_share` reports
        the error of this approximation. By default the kernel is exact.
    names : array-like of shape (n,), optional
        Names of the vertices, in the order of the matrix; outputs are then names.""",
}


def fill_docstring(kernel: T) -> T:
    """Insert the shared parts into a kernel's docstring."""
    kernel.__doc__ = (kernel.__doc__ or "").format(**SHARED_DOCS)
    return kernel


class VertexKernel(OutputKernel):
    """A kernel r(L) on vertices; a subclass implements r, and r(L) B by sparse products.

    Every subclass has the parameters ``graph``, ``names``, ``normalize`` and ``rank``.
    """

    known_psd = True
    graph: Any
    names: Any
    normalize: bool
    rank: int | None
    _parameter_constraints: ClassVar[dict[str, Any]] = {"rank": [COUNT, None]}
    _checked: tuple[Any, ...] | None = None
    # Cached results, each stored with the parameters that it was computed from.
    _vertices_of: tuple[Any, Any, Vertices] | None = None
    _factor_of: tuple[Any, Floats] | None = None
    _columns_of: tuple[Any, Floats, Floats | None] | None = None

    @abstractmethod
    def _spectral_function(self, eigenvalues: Floats) -> Floats:
        """Return r(λ) ≥ 0, which must decrease for λ > 0."""

    @abstractmethod
    def _product(self, B: Floats) -> Floats:
        """Return r(L) B."""

    @property
    def _laplacian(self) -> GraphLaplacian:
        return self._vertices.laplacian

    def check(self, y: Any) -> Outputs:
        """Return y as an array of positions or names, after checking the graph (once)."""
        return self._vertices.check(y)

    def on(self, vertices: Vertices) -> Self:
        """Return the kernel on the vertices of a graph that has been read and checked."""
        canonical = {"graph": vertices.adjacency, "names": vertices.names}
        kernel = type(self)(**self.get_params(deep=False) | canonical)
        kernel._vertices_of = (vertices.adjacency, vertices.names, vertices)
        return kernel

    def resolve(self, y: Outputs) -> Self:
        """Convert the graph to a CSR array and names."""
        resolved = self.on(self._vertices)
        resolved._factor_of, resolved._columns_of = self._factor_of, self._columns_of
        return resolved

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        rows = self._vertices.positions(y)
        columns = rows if z is None else self._vertices.positions(z)
        factor = self._factor
        if factor is not None:
            left = factor[rows]
            return left @ (left if z is None else factor[columns]).T
        if len(np.unique(rows)) < len(np.unique(columns)):
            assert z is not None
            return np.ascontiguousarray(self(z, y).T)
        K = np.empty((len(rows), len(columns)))
        for wanted, which, values in self._columns(columns):
            K[:, wanted] = values[rows][:, which]
        if self.normalize:
            K *= self._scale(rows)[:, None]
            K *= self._scale(columns)[None, :]
        return (K + K.T) / 2 if z is None else K

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        rows, columns = self._vertices.positions(y), self._vertices.positions(z)
        factor = self._factor
        if factor is not None:
            return np.einsum("ij,ij->i", factor[rows], factor[columns])
        result = np.empty(len(rows))
        for wanted, which, values in self._columns(columns):
            result[wanted] = values[rows[wanted], which]
        return result * self._scale(rows) * self._scale(columns) if self.normalize else result

    def diag(self, y: Outputs) -> Floats:
        """Return k(y_i, y_i)."""
        if self._factor is not None:
            return self.pairs(y, y)
        positions = self._vertices.positions(y)
        if self.normalize:
            return (self._scale(positions) > 0).astype(np.float64)
        return self._diagonal(positions)

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the number of features, which is the rank; without ``rank`` there are none."""
        factor = None if self.rank is None else self._factor
        return None if factor is None else factor.shape[1]

    def features(self, y: Outputs) -> Floats:
        """Return the entries of the leading eigenvectors, scaled."""
        if self.rank is None or self._factor is None:
            return super().features(y)
        return self._factor[self._vertices.positions(y)]

    def residual_share(self) -> float:
        """Return the share of the trace of r(L) that ``rank`` leaves out, from 0 to 1.

        For graphs of more than 2,000 vertices it is estimated from 64 random vectors.
        """
        if self.rank is None:
            return 0.0
        values, vectors = self._leading
        if self._is_small:
            total = float(self._spectral_function(self._laplacian.spectrum[0]).sum())
        else:
            total = float(values.sum()) + residual_trace(self._product, vectors)
        return max(0.0, 1.0 - float(values.sum()) / total) if total > 0 else 0.0

    @property
    def _vertices(self) -> Vertices:
        """Return the checked graph of the current parameters."""
        values = tuple(getattr(self, name) for name in self._parameter_constraints)
        if values != self._checked:
            check_parameters(self)
            self._checked = values
        if self.graph is None:
            name = type(self).__name__
            raise ValueError(
                f"{name}() has no graph; pass one as {name}(graph), or set it with "
                "kernel.set_params(graph=...)."
            )
        known = self._vertices_of
        if known is None or known[0] is not self.graph or known[1] is not self.names:
            known = self._vertices_of = (self.graph, self.names, Vertices(self.graph, self.names))
        return known[2]

    @property
    def _state(self) -> tuple[Any, ...]:
        """Return everything that the cached results depend on."""
        params = self.get_params(deep=False)
        del params["graph"], params["names"]
        return self._vertices, tuple(params.items())

    @property
    def _is_small(self) -> bool:
        n = len(self._vertices)
        # Lanczos iterations only pay off for a small part of the spectrum.
        return n <= DENSE or (self.rank is not None and 4 * self.rank >= n)

    @property
    def _leading(self) -> tuple[Floats, Floats]:
        """Return the ``rank`` largest eigenvalues of r(L), or all, with their vectors."""
        if self.rank is not None and not self._is_small:
            at_zero = float(self._spectral_function(np.zeros(1))[0])
            smallest, vectors = self._laplacian.smallest(self.rank, null_space=at_zero > 0)
            return self._spectral_function(smallest), vectors
        eigenvalues, vectors = self._laplacian.spectrum
        values = self._spectral_function(eigenvalues)
        kept = np.argsort(-values, kind="stable")[: self.rank]
        return values[kept], vectors[:, kept]

    @property
    def _factor(self) -> Floats | None:
        """Return Φ with r(L) = Φ Φᵀ, or None if the graph is too large for an exact factor."""
        if self.rank is None and not self._is_small:
            return None
        state = self._state
        if self._factor_of is None or self._factor_of[0] != state:
            values, vectors = self._leading
            factor = vectors * np.sqrt(values)
            if self.normalize:
                squares = np.einsum("ij,ij->i", factor, factor)
                factor *= _inverse_roots(squares, ZERO * squares.max())[:, None]
            self._factor_of = state, factor
        return self._factor_of[1]

    def _columns(self, positions: Positions) -> Iterator[tuple[Positions, Positions, Floats]]:
        """Compute the columns of r(L) at these positions, a block of distinct ones at a time.

        Yield the indices of the positions in a block, their columns in the block, and the block.
        """
        distinct, which = np.unique(positions, return_inverse=True)
        diagonal, kept = self._known_columns
        for start in range(0, len(distinct), BLOCK):
            block = distinct[start : start + BLOCK]
            wanted = np.flatnonzero((which >= start) & (which < start + BLOCK))
            new = block if kept is None else block[np.isnan(diagonal[block])]
            if len(new):
                unit = np.zeros((len(self._vertices), len(new)))
                unit[new, np.arange(len(new))] = 1.0
                values = self._product(unit)
                if kept is not None:
                    kept[new] = values.T
                # Last, because other threads take the columns whose diagonal is known.
                diagonal[new] = values[new, np.arange(len(new))]
            yield wanted, which[wanted] - start, values if kept is None else kept[block].T

    @property
    def _known_columns(self) -> tuple[Floats, Floats | None]:
        """Return the diagonal of r(L), NaN where no column is known, and the columns, as rows.

        The columns are None if they would take too much memory.
        """
        state = self._state
        known = self._columns_of
        if known is None or known[0] != state:
            n = len(self._vertices)
            columns = np.empty((n, n)) if 8 * n**2 <= KEPT_BYTES else None
            known = self._columns_of = state, np.full(n, np.nan), columns
        return known[1:]

    def _diagonal(self, positions: Positions) -> Floats:
        diagonal, _ = self._known_columns
        for _ in self._columns(positions[np.isnan(diagonal[positions])]):
            pass  # _columns stores the diagonal
        return diagonal[positions]

    def _scale(self, positions: Positions) -> Floats:
        return _inverse_roots(self._diagonal(positions))

    def __sklearn_clone__(self) -> Self:
        # A search must not copy, check or decompose the graph for every candidate.
        clone = type(self)(**self.get_params(deep=False))
        clone._vertices_of, clone._factor_of = self._vertices_of, self._factor_of
        clone._columns_of = self._columns_of
        return clone

    def __getstate__(self) -> dict[str, Any]:
        cached = ("_checked", "_vertices_of", "_factor_of", "_columns_of")
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in cached}


def _inverse_roots(squares: Floats, zero: float = 0.0) -> Floats:
    """Return 1 / √s, and 0 where s is at most ``zero``."""
    roots = np.sqrt(np.maximum(squares, 0.0))
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=squares > zero)


@fill_docstring
class Diffusion(VertexKernel):
    """The diffusion kernel exp(−βL) on the vertices of a graph, L = D − A.

    {outputs}

    Parameters
    ----------
    {graph}
    beta : float, default=1.0
        The diffusion time β. With a larger β, more distant vertices are similar.
    {shared}

    References
    ----------
    Kondor and Lafferty, "Diffusion kernels on graphs and other discrete structures", ICML 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Diffusion
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> Diffusion(path, beta=1.0)(np.array([0, 1, 2])).round(3)
    array([[0.526, 0.317, 0.158],
           [0.317, 0.367, 0.317],
           [0.158, 0.317, 0.526]])
    >>> Diffusion(path, names=["a", "b", "c"])(np.array(["a", "c"])).round(3)
    array([[0.526, 0.158],
           [0.158, 0.526]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **VertexKernel._parameter_constraints,
        "beta": [POSITIVE],
    }

    def __init__(
        self,
        graph: Any = None,
        beta: float = 1.0,
        normalize: bool = False,
        rank: int | None = None,
        names: Any = None,
    ):
        self.graph = graph
        self.beta = beta
        self.normalize = normalize
        self.rank = rank
        self.names = names

    def _spectral_function(self, eigenvalues: Floats) -> Floats:
        return np.exp(-self.beta * eigenvalues)

    def _product(self, B: Floats) -> Floats:
        return self._laplacian.exponential_product(self.beta, B)


@fill_docstring
class RegularizedLaplacian(VertexKernel):
    """The regularised Laplacian kernel (I + βL)⁻¹ on the vertices of a graph, L = D − A.

    {outputs}

    Parameters
    ----------
    {graph}
    beta : float, default=1.0
        The weight β of the graph. With a larger β, more distant vertices are similar.
    {shared}

    References
    ----------
    Smola and Kondor, "Kernels and regularization on graphs", COLT 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import RegularizedLaplacian
    >>> RegularizedLaplacian(np.array([[0, 1], [1, 0]]), beta=1.0)(np.array([0, 1])).round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **VertexKernel._parameter_constraints,
        "beta": [POSITIVE],
    }

    def __init__(
        self,
        graph: Any = None,
        beta: float = 1.0,
        normalize: bool = False,
        rank: int | None = None,
        names: Any = None,
    ):
        self.graph = graph
        self.beta = beta
        self.normalize = normalize
        self.rank = rank
        self.names = names

    def _spectral_function(self, eigenvalues: Floats) -> Floats:
        return 1.0 / (1.0 + self.beta * eigenvalues)

    def _product(self, B: Floats) -> Floats:
        return self._laplacian.shifted_solve(self.beta, B)


@fill_docstring
class CommuteTime(VertexKernel):
    """The commute time kernel L⁺, the pseudo-inverse of L = D − A, on the vertices of a graph.

    In a connected graph, the squared distance between two vertices in feature space, times the sum
    of all degrees, is the mean number of steps of a random walk from one to the other and back.
    Between vertices of different components, and for an isolated vertex, the kernel is 0.

    {outputs}

    Parameters
    ----------
    {graph}
    {shared}

    References
    ----------
    Fouss, Pirotte, Renders and Saerens, "Random-walk computation of similarities between nodes of
    a graph", IEEE TKDE 19 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import CommuteTime
    >>> CommuteTime(np.array([[0, 1], [1, 0]]))(np.array([0, 1])).round(3)
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """

    def __init__(
        self,
        graph: Any = None,
        normalize: bool = False,
        rank: int | None = None,
        names: Any = None,
    ):
        self.graph = graph
        self.normalize = normalize
        self.rank = rank
        self.names = names

    def _spectral_function(self, eigenvalues: Floats) -> Floats:
        inverse = np.zeros_like(eigenvalues)
        return np.divide(1.0, eigenvalues, out=inverse, where=eigenvalues > 0)

    def _product(self, B: Floats) -> Floats:
        return self._laplacian.pseudo_inverse_product(B)


@fill_docstring
class RandomWalk(VertexKernel):
    """The p-step random walk kernel (aI − L̃)ᵖ on the vertices of a graph.

    L̃ = D^(−1/2) (D − A) D^(−1/2) is the normalised Laplacian, with a row of zeros for an isolated
    vertex.

    {outputs}

    Parameters
    ----------
    {graph}
    steps : int, default=2
        The number p of steps.
    a : float, default=2.0
        The weight a ≥ 2 of staying at a vertex.
    {shared}

    References
    ----------
    Smola and Kondor, "Kernels and regularization on graphs", COLT 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import RandomWalk
    >>> RandomWalk(np.array([[0, 1], [1, 0]]), steps=2)(np.array([0, 1])).round(3)
    array([[2., 2.],
           [2., 2.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **VertexKernel._parameter_constraints,
        "steps": [COUNT],
        "a": [Interval(Real, 2, None, closed="left")],
    }

    def __init__(
        self,
        graph: Any = None,
        steps: int = 2,
        a: float = 2.0,
        normalize: bool = False,
        rank: int | None = None,
        names: Any = None,
    ):
        self.graph = graph
        self.steps = steps
        self.a = a
        self.normalize = normalize
        self.rank = rank
        self.names = names

    @property
    def _laplacian(self) -> GraphLaplacian:
        return self._vertices.normalized_laplacian

    def _spectral_function(self, eigenvalues: Floats) -> Floats:
        return np.maximum(self.a - eigenvalues, 0.0) ** self.steps

    def _product(self, B: Floats) -> Floats:
        L = self._laplacian.matrix
        for _ in range(self.steps):
            B = self.a * B - L @ B
        return B
