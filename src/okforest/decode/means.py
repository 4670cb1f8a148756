"""Outputs in closed form or by iteration: means, majorities, quantiles, medoids, fixed points."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import COUNT, NOT_NEGATIVE, check_parameters
from okforest.decode.base import Decoder, Need
from okforest.decode.search import TrainingSet
from okforest.kernels import RBF, Dirac, Linear, Wasserstein
from okforest.kernels.base import describe_kernel
from okforest.weights import LeafWeights, Span, WeightMatrix, as_weights


class Mean(Decoder):
    """The weighted mean of the training outputs: exact for the linear kernel on vectors.

    Examples
    --------
    >>> from okforest import OKTree
    >>> tree = OKTree(kernel="rbf", decoder="mean").fit([[0]] * 3, [1.0, 2.0, 6.0])
    >>> tree.predict([[0]])
    array([3.])
    """

    def check(self, span: Span) -> None:
        """Check that outputs are numbers."""
        if span.outputs.dtype.kind not in "fiu":
            raise ValueError(
                f"decoder 'mean' needs numeric outputs, got type {span.outputs.dtype}; use "
                "decoder='auto'."
            )
        if span.outputs.dtype.kind in "iu" and not span.kernel.numeric:
            raise ValueError(
                f"decoder 'mean' averages numbers, and {describe_kernel(span.kernel)} treats the "
                "integers in y as positions or labels; use decoder='auto', or pass floats if they "
                "are numbers."
            )

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the explicit features are the outputs."""
        are_outputs = isinstance(span.kernel, Linear) and span.features is not None
        return frozenset(() if are_outputs else {"weights"})

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return W y."""
        W = as_weights(W)
        if not self.needs(span):
            means = None
            if isinstance(W, LeafWeights):  # others know these sums
                means = span.computed_on_device(W, lambda there: there.feature_sums(W))
            means = W.feature_sums(span) if means is None else means
            return means.reshape(W.shape[0], *span.outputs.shape[1:])
        return W @ span.outputs


class Majority(Decoder):
    """The label with the largest total weight, the first of equals: exact for the Dirac kernel.

    Examples
    --------
    >>> from okforest import OKTree
    >>> tree = OKTree(kernel="dirac", decoder="majority").fit([[0]] * 3, ["a", "b", "b"])
    >>> tree.predict([[0]])
    array(['b'], dtype='<U1')
    """

    def check(self, span: Span) -> None:
        """Check that there is one label per row."""
        if span.outputs.ndim != 1:
            raise ValueError(
                f"decoder 'majority' needs one label per row, got outputs of shape "
                f"{span.outputs.shape}; use decoder='auto'."
            )

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the explicit features indicate the classes."""
        return frozenset({"weights"} if _indicated_classes(span) is None else ())

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return the label that wins each row's vote."""
        W, classes = as_weights(W), _indicated_classes(span)
        if classes is not None:
            return classes[_winners(W.feature_sums(span))]
        order = np.argsort(span.training.outputs, kind="stable")
        blocks = span.blocks(W.shape[0], len(order))
        winners = [_winners(span.sums_of_equal(W[rows])[:, order]) for rows in blocks]
        return span.training.outputs[order][np.concatenate(winners)]


def _winners(votes: Floats) -> npt.NDArray[np.intp]:
    """Return the class of most votes in each row, the first of equals."""
    most = votes.max(axis=1, keepdims=True)
    # Votes that differ by rounding are equal; the largest may be negative.
    return np.argmax(votes >= most - 1e-12 * np.abs(most), axis=1)


def _indicated_classes(span: Span) -> Outputs | None:
    """Return the classes whose indicators the explicit features are, if they are."""
    classes = span.kernel.classes if isinstance(span.kernel, Dirac) else None
    return None if classes is None or span.features is None else classes


class Quantiles(Decoder):
    """The weighted mean of quantile functions: exact for the Wasserstein kernel.

    With negative weights, as of boosting and ridge regression, the mean need not ascend. The
    nearest quantile function to it is then returned (isotonic regression).

    Examples
    --------
    >>> from okforest.decode import Quantiles
    >>> from okforest.kernels import Wasserstein
    >>> from okforest.weights import Span
    >>> kernel = Wasserstein(n_levels=2)
    >>> Quantiles().decode([[0.5, 0.5]], Span(kernel, kernel.check([[0.0, 1.0], [4.0, 9.0]])))
    array([[2., 5.]])
    """

    def check(self, span: Span) -> None:
        """Check that outputs are distributions."""
        if not isinstance(span.kernel, Wasserstein):
            raise ValueError(
                "decoder 'quantiles' predicts distributions, and the kernel is "
                f"{describe_kernel(span.kernel)}; use decoder='auto', or kernel=Wasserstein()."
            )

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one quantile function for each row of W."""
        means = as_weights(W) @ span.outputs
        for i in np.flatnonzero((np.diff(means, axis=1) < 0).any(axis=1)):
            means[i] = _isotonic(means[i])
        return means


def _isotonic(values: Floats) -> Floats:
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values).x)


class Medoid(Decoder):
    """The training output with the smallest weighted mean distance Σ_i w_i ‖φ(y) − φ(y_i)‖.

    Distances are not squared, so that single unusual outputs of positive weight count little;
    :class:`TrainingSet` minimises squared distances. Only outputs with a weight are searched.

    Examples
    --------
    >>> from okforest.decode import Medoid
    >>> from okforest.kernels import Curves
    >>> from okforest.weights import Span
    >>> kernel = Curves()
    >>> y = kernel.check([[0.0, 0.0], [1.0, 1.0], [90.0, 90.0]])
    >>> Medoid().decode([[0.3, 0.4, 0.3]], Span(kernel, y))
    array([[1., 1.]])
    """

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one training output for each row of W."""
        W = as_weights(W)
        picks = []
        for i in range(W.shape[0]):
            (terms,), positions = span.terms(W[i : i + 1])
            weights: Floats = np.asarray(terms.tocsr().toarray()[0])
            used = np.flatnonzero(weights) if weights.any() else np.arange(1)
            outputs = span.training.outputs[positions[used]]
            K = span.kernel(outputs)
            squares = np.add.outer(np.diag(K), np.diag(K)) - 2.0 * K
            means = np.sqrt(np.maximum(squares, 0.0)) @ weights[used]
            best = means.min() + 1e-12 * np.abs(means).max()
            picks.append(positions[used[np.flatnonzero(means <= best)[0]]])
        return span.training.outputs[np.array(picks, dtype=np.intp)]


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

    _parameter_constraints: ClassVar[dict[str, Any]] = {"max_iter": [COUNT], "tol": [NOT_NEGATIVE]}

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
        check_parameters(self)

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights" and "training_outputs": the nearest one is the start."""
        return frozenset({"weights", "training_outputs"})

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
