"""Kernels that the user computes: a Gram matrix, or a function of outputs of any type."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sla

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.distinct import refuse_masked
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import read_array, read_objects

# Relative to the largest entry: smaller asymmetries and negative eigenvalues are rounding errors.
TOLERANCE = 1e-8
# Larger matrices are tested on an evenly spaced principal block of this size.
LARGEST_TESTED = 2048
ADVICE = (
    "pass a function of two arrays of outputs that returns their Gram matrix, or "
    "FromCallable(function, elementwise=True) with a function of two outputs that returns a number."
)


def check_gram(K: Floats, name: str) -> None:
    """Raise a ValueError unless K is finite, symmetric and positive semi-definite."""
    check_symmetric(K, name)
    _check_pairs(K, name)
    if len(K) > LARGEST_TESTED:
        tested = np.linspace(0, len(K) - 1, LARGEST_TESTED).astype(int)
        K = K[np.ix_(tested, tested)]
    scale = np.abs(K).max()
    try:
        # Succeeds if and only if no eigenvalue is below minus the shift.
        sla.cholesky(K + len(K) * TOLERANCE * max(scale, 1e-300) * np.eye(len(K)))
    except sla.LinAlgError:
        smallest = sla.eigvalsh(K, subset_by_index=[0, 0])[0]
        raise ValueError(
            f"{name} is indefinite: its smallest eigenvalue is {smallest:.3g}, but a kernel is "
            f"positive semi-definite. Add {-smallest:.3g} to the diagonal, or set negative "
            "eigenvalues to zero."
        ) from None


def _check_pairs(K: Floats, name: str) -> None:
    """Check every 2 × 2 principal block: k_ii ≥ 0 and k_ij² ≤ k_ii k_jj."""
    diag = np.diagonal(K)
    tolerance = TOLERANCE * max(float(np.abs(diag).max(initial=0.0)), 1e-300)
    if diag.min(initial=0.0) < -tolerance:
        i = int(diag.argmin())
        raise ValueError(f"{name} is indefinite: entry ({i}, {i}) is {diag[i]:.3g}, below zero.")
    norm = np.sqrt(np.maximum(diag, 0.0))
    for i in range(0, len(K), 256):
        excess = np.abs(K[i : i + 256]) - np.outer(norm[i : i + 256], norm)
        if excess.max(initial=0.0) > tolerance:
            row, column = np.unravel_index(excess.argmax(), excess.shape)
            raise ValueError(
                f"{name} is indefinite: entry ({i + row}, {column}) is too large for entries "
                f"({i + row}, {i + row}) and ({column}, {column}); a kernel satisfies "
                "k(a, b)² ≤ k(a, a) k(b, b)."
            )


def check_symmetric(K: Floats, name: str, symbol: str = "K") -> None:
    """Raise a ValueError, which calls K by its symbol, unless it is finite and symmetric."""
    scale = 0.0
    for i in range(0, len(K), 256):  # by blocks, to avoid a second N × N array
        block = K[i : i + 256].astype(float)
        if not np.isfinite(block).all():
            raise ValueError(f"{name} has NaN or infinite entries; all entries must be finite.")
        scale = max(scale, float(np.abs(block).max(initial=0.0)))
    for i in range(0, len(K), 256):
        difference = np.abs(K[i : i + 256].astype(float) - K[:, i : i + 256].T)
        if difference.max(initial=0.0) > TOLERANCE * scale:
            row, column = np.unravel_index(difference.argmax(), difference.shape)
            raise ValueError(
                f"{name} is asymmetric: entries ({i + row}, {column}) and ({column}, {i + row}) "
                f"differ by {difference[row, column]:.3g}. If it should be symmetric, "
                f"use ({symbol} + {symbol}.T) / 2."
            )


class Precomputed(OutputKernel):
    """A kernel given by its Gram matrix; y holds integer positions in the matrix.

    Because y is a plain array of integers, all splitters, searches and cross-validation tools of
    scikit-learn work. Clones share the matrix, so it must not be modified afterwards.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The matrix of k(y_i, y_j): symmetric and positive semi-definite.
    positions : ndarray of shape (n,), optional
        The positions of its rows, in ascending order, if it is a block of a larger matrix; by
        default 0…n−1.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.kernels import Precomputed
    >>> K = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> Precomputed(K)(np.array([0, 1]), np.array([2, 0]))
    array([[0. , 1. ],
           [0. , 0.5]])
    """

    def __init__(self, gram: Floats, positions: npt.NDArray[np.integer[Any]] | None = None):
        self.gram = gram
        self.positions = positions
        self._checked: Any = None  # the last matrix that passed the checks

    def __sklearn_clone__(self) -> "Precomputed":
        # A search must not copy or check the matrix for every candidate.
        clone = Precomputed(self.gram, self.positions)
        clone._checked = self._checked
        return clone

    def check(self, y: Any) -> Outputs:
        """Return y as an array of positions, after checking the matrix (once) and their range."""
        n = self._check_matrix()
        positions = read_array(y)
        if positions.dtype.kind not in "iu":
            what = (
                f"values of type {positions.dtype}"
                if positions.ndim == 1
                else (f"an array of shape {positions.shape} and type {positions.dtype}")
            )
            raise ValueError(
                f"y holds {what}; with a precomputed kernel it must hold integer positions in "
                f"the Gram matrix (0…{n - 1}). Pass the matrix as kernel=Precomputed(K) and "
                "y=np.arange(n)."
            )
        if positions.ndim != 1:
            raise ValueError(
                f"y has shape {positions.shape}; with a precomputed kernel it must be a 1-d array "
                "of positions in the Gram matrix."
            )
        known = self._rows(positions) >= 0
        if not known.all():
            bad = positions[~known][0]
            raise ValueError(
                f"y holds position {bad}; the Gram matrix only has positions 0…{n - 1}."
                if self.positions is None
                else f"y holds position {bad}, which is not in this block of the Gram matrix: "
                "a compact model only knows the positions of its training outputs."
            )
        return positions

    def restrict(self, y: Outputs) -> "Precomputed":
        """Keep the block of these positions; return this kernel if that is the whole matrix."""
        kept = np.unique(y)
        return self if len(kept) == len(self.gram) else Precomputed(self(kept), kept)

    def _rows(self, positions: Outputs) -> npt.NDArray[np.integer[Any]]:
        """Return the row of the matrix for each position, -1 for an unknown one."""
        if self.positions is None:
            inside = (positions >= 0) & (positions < len(self.gram))
            return np.where(inside, positions, -1)
        rows = np.minimum(np.searchsorted(self.positions, positions), len(self.positions) - 1)
        return np.where(self.positions[rows] == positions, rows, -1)

    def _check_matrix(self) -> int:
        shape = np.shape(self.gram)
        if self._checked is not self.gram:
            refuse_masked(self.gram, "the precomputed Gram matrix")
            gram = np.asarray(self.gram)
            if len(shape) != 2 or shape[0] != shape[1]:
                raise ValueError(f"Precomputed got a matrix of shape {shape}; it must be square.")
            if gram.dtype.kind not in "fiub":
                raise ValueError(
                    f"Precomputed got a matrix of type {gram.dtype}; it must hold real numbers."
                )
            check_symmetric(gram, "the precomputed Gram matrix")
            self._checked = self.gram
        return int(shape[0])

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return a block of the matrix."""
        rows, columns = self._rows(y), self._rows(y if z is None else z)
        return np.asarray(self.gram)[np.ix_(rows, columns)].astype(float, copy=False)

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return np.asarray(self.gram)[self._rows(y), self._rows(z)].astype(float)


class FromCallable(OutputKernel):
    """A kernel given by a function, on outputs of any type.

    Parameters
    ----------
    function : callable
        ``function(a, b)`` returns the Gram matrix, of shape (len(a), len(b)), of two arrays of
        outputs (arrays of objects if y was a list). With ``elementwise=True`` it returns the
        number k(a, b) for two outputs.
    elementwise : bool, default=False
        Whether the function takes two outputs instead of two arrays of them.

    Examples
    --------
    >>> from okforest.kernels import FromCallable
    >>> def common_letters(a, b):
    ...     return len(set(a) & set(b))
    >>> kernel = FromCallable(common_letters, elementwise=True)
    >>> kernel(kernel.check(["tree", "forest"]))
    array([[3., 3.],
           [3., 6.]])
    """

    def __init__(self, function: Callable[[Any, Any], Any], elementwise: bool = False):
        self.function = function
        self.elementwise = elementwise

    def check(self, y: Any) -> Outputs:
        """Return an array as it is, and anything else as a 1-d array of objects."""
        return read_objects(y)

    def resolve(self, y: Outputs) -> "FromCallable":
        """Check the function, which does not depend on the outputs."""
        function = self.function
        if not callable(function):
            raise ValueError(f"function={function!r} is not a function; {ADVICE}")
        try:
            arguments = signature(function)
        except (TypeError, ValueError):  # some compiled functions have none
            return self
        try:
            arguments.bind(None, None)
        except TypeError:
            name = getattr(function, "__name__", function)
            raise ValueError(
                f"the kernel function {name}{arguments} cannot be called with two arguments; "
                f"{ADVICE}"
            ) from None
        return self

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        if self.elementwise:
            if z is None:
                K = np.empty((len(y), len(y)))
                for i, u in enumerate(y):  # half of the matrix, and its mirror image
                    K[i, : i + 1] = K[: i + 1, i] = [self._number(u, v) for v in y[: i + 1]]
                return K
            return np.array([[self._number(u, v) for v in z] for u in y]).reshape(len(y), len(z))
        z = y if z is None else z
        value = self._matrix(y, z)
        if value.dtype.kind not in "fiub":
            raise ValueError(
                f"the kernel function returned values of type {value.dtype}; it must return real "
                "numbers."
            )
        if value.shape != (len(y), len(z)):
            raise ValueError(
                f"the kernel function returned an array of shape {value.shape} for {len(y)} and "
                f"{len(z)} outputs; the shape must be {(len(y), len(z))}. If it takes two single "
                "outputs, pass kernel=FromCallable(function, elementwise=True)."
            )
        return np.array(value, dtype=np.float64)  # a copy: the function may keep its array

    def _matrix(self, y: Outputs, z: Outputs) -> Outputs:
        """Call the function on two arrays, or explain that it takes two single outputs."""
        try:
            value = self.function(y, z)
            return np.asarray(value.todense() if hasattr(value, "todense") else value)
        except Exception as error:
            if not self._takes_single_outputs(y, z):
                raise
            raise ValueError(
                f"the kernel function takes two single outputs: on two arrays of outputs it raises "
                f"{type(error).__name__} ({error}). Pass "
                "kernel=FromCallable(function, elementwise=True)."
            ) from error

    def _takes_single_outputs(self, y: Outputs, z: Outputs) -> bool:
        try:
            value = self.function(y[0], z[0])
            return np.ndim(value) == 0 and np.isfinite(float(value))
        except Exception:
            return False

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        if self.elementwise:
            return np.array([self._number(u, v) for u, v in zip(y, z, strict=True)])
        return super().pairs(y, z)

    def _number(self, u: Any, v: Any) -> float:
        value = self.function(u, v)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"the kernel function returned an object of type {type(value).__name__} for two "
                "outputs; with elementwise=True it must return a number."
            ) from None
