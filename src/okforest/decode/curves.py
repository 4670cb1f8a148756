"""From weights to curves and distributions."""

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.decode._base import Decoder
from okforest.kernels import Wasserstein
from okforest.kernels._description import describe_kernel
from okforest.weights import Span, WeightMatrix, as_weights


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
