"""Pre-images of the RBF kernel on vectors that are not training outputs."""

from typing import Any

import numpy as np

from okforest._integers import is_integer
from okforest._typing import Floats, Outputs
from okforest.decode._base import Decoder
from okforest.decode.search import TrainingSet
from okforest.kernels import RBF
from okforest.kernels._description import describe_kernel
from okforest.weights import Span, WeightMatrix, as_weights


class FixedPoint(Decoder):
    """The vector nearest to the prediction in the feature space of the RBF kernel.

    The squared distance is least where Σ_i w_i k(y_i, y) is largest, and there
    y = Σ_i w_i k(y_i, y) y_i / Σ_i w_i k(y_i, y). This equation is iterated from the training
    output nearest to the prediction, so the result is at least as near. It is a local optimum.

    Parameters
    ----------
    max_iter : int, default=100
        Number of iterations at most.
    tol : float, default=1e-6
        Iterations end when no value of a prediction moves by more than this fraction of the
        kernel's width sigma.

    References
    ----------
    S. Mika et al., "Kernel PCA and de-noising in feature spaces", NIPS 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKTree
    >>> from okforest.decode import FixedPoint
    >>> from okforest.kernels import RBF
    >>> X, y = np.zeros((2, 1)), np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> OKTree(kernel=RBF(sigma=2.0), decoder=FixedPoint()).fit(X, y).predict(X[:1]).round(3)
    array([[0.5, 0.5]])
    """

    def __init__(self, max_iter: int = 100, tol: float = 1e-6):
        self.max_iter = max_iter
        self.tol = tol

    def check(self, span: Span) -> None:
        """Check the parameters, and that the kernel is RBF on vectors."""
        if not isinstance(span.kernel, RBF) or span.kernel.base is not None:
            raise ValueError(
                "FixedPoint needs the kernel RBF() on vectors, and the kernel is "
                f"{describe_kernel(span.kernel)}; use decoder='auto'."
            )
        if not is_integer(self.max_iter) or self.max_iter < 1 or not self.tol >= 0:
            raise ValueError(
                f"FixedPoint got max_iter={self.max_iter!r} and tol={self.tol!r}; use an integer "
                "of at least 1, and a number of at least 0."
            )

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one vector for each row of W."""
        self.check(span)
        W = as_weights(W)
        start = TrainingSet().decode(W, span)
        vectors = start.reshape(len(start), -1).copy()
        for rows in span.blocks(W.shape[0], len(span)):
            vectors[rows] = self._improve(vectors[rows], W[rows], span)
        return vectors.reshape(start.shape)

    def _improve(self, vectors: Floats, W: WeightMatrix, span: Span) -> Floats:
        """Iterate the equation for some rows; a step that does not improve a row ends it."""
        (weights,), positions = span.terms(W)
        outputs = span.training.outputs[positions]
        rows = outputs.reshape(len(outputs), -1)
        entries: Any = weights.entries()
        dense = entries if isinstance(entries, np.ndarray) else entries.toarray()
        kernel = span.kernel
        assert isinstance(kernel, RBF)
        limit = self.tol * float(kernel.sigma)
        vectors = vectors.copy()
        products = dense * kernel(vectors, rows)
        values = products.sum(axis=1)
        active = np.flatnonzero(values > 0)  # elsewhere the equation has no meaning
        products = products[active]
        for _ in range(self.max_iter):
            if not len(active):
                break
            new = products @ rows / values[active, None]
            products = dense[active] * kernel(new, rows)
            found = products.sum(axis=1)
            better = found > values[active]
            moved = np.abs(new - vectors[active]).max(axis=1) > limit
            vectors[active[better]] = new[better]
            values[active[better]] = found[better]
            active, products = active[better & moved], products[better & moved]
        return vectors
