"""Kernels on the vertices of a graph."""

from numbers import Real
from typing import Any

import numpy as np

from okforest._integers import is_integer
from okforest._typing import Floats
from okforest.kernels._laplacian import GraphLaplacian
from okforest.kernels._vertex_kernel import VertexKernel, fill_docstring


def _check_beta(kernel: VertexKernel, beta: Any) -> None:
    if not isinstance(beta, Real) or not 0 < float(beta) < np.inf:
        raise ValueError(f"{type(kernel).__name__} got beta={beta!r}; use a positive number.")


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

    def __init__(
        self,
        graph: Any = None,
        beta: float = 1.0,
        normalized: bool = False,
        rank: int | None = None,
        names: Any = None,
    ):
        self.graph = graph
        self.beta = beta
        self.normalized = normalized
        self.rank = rank
        self.names = names

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_beta(self, self.beta)

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

    def __init__(
        self,
        graph: Any = None,
        beta: float = 1.0,
        normalized: bool = False,
        rank: int | None = None,
        names: Any = None,
    ):
        self.graph = graph
        self.beta = beta
        self.normalized = normalized
        self.rank = rank
        self.names = names

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_beta(self, self.beta)

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
        normalized: bool = False,
        rank: int | None = None,
        names: Any = None,
    ):
        self.graph = graph
        self.normalized = normalized
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

    def __init__(
        self,
        graph: Any = None,
        steps: int = 2,
        a: float = 2.0,
        normalized: bool = False,
        rank: int | None = None,
        names: Any = None,
    ):
        self.graph = graph
        self.steps = steps
        self.a = a
        self.normalized = normalized
        self.rank = rank
        self.names = names

    @property
    def _laplacian(self) -> GraphLaplacian:
        return self._vertices.normalized_laplacian

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_integer(self.steps) or self.steps < 1:
            raise ValueError(f"RandomWalk got steps={self.steps!r}; use an integer ≥ 1.")
        if not isinstance(self.a, Real) or not 2 <= float(self.a) < np.inf:
            raise ValueError(f"RandomWalk got a={self.a!r}; use a number ≥ 2.")

    def _spectral_function(self, eigenvalues: Floats) -> Floats:
        return np.maximum(self.a - eigenvalues, 0.0) ** self.steps

    def _product(self, B: Floats) -> Floats:
        L = self._laplacian.matrix
        for _ in range(self.steps):
            B = self.a * B - L @ B
        return B
