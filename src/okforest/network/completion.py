"""Completion of a network from features of its vertices: supervised graph inference.

A kernel on the training graph is the output kernel of a model.
Of two vertices, the inner product of what the model predicts for them is their predicted kernel,
which is large between vertices that are likely to be linked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from okforest._compat import Interval, StrOptions
from okforest._typing import Floats, WeightMatrix, Weights
from okforest.embedding import Span
from okforest.kernels import Diffusion, OutputKernel
from okforest.metrics.losses import unwrap
from okforest.network._base import LinkPredictor
from okforest.network._calibration import Calibration, calibrate
from okforest.network._graphs import Graph
from okforest.network._models import final_model, new_model
from okforest.network._pairs import SEEN_UNSEEN, UNSEEN_UNSEEN


@dataclass(frozen=True)
class Placed:
    """Vertices in the span of the seen ones, known by weights: a matrix for each tree, or one."""

    weights: Sequence[WeightMatrix]
    scale: Floats  # what their inner products are multiplied by

    def __len__(self) -> int:
        return len(self.scale)

    def __getitem__(self, rows: slice) -> "Placed":
        return Placed([W[rows] for W in self.weights], self.scale[rows])


class NetworkCompletion(LinkPredictor):
    """Predict links of a network from features of its vertices.

    A model learns to place vertices, by their features, in the feature space of a kernel on the
    graph. The score of a pair is the inner product of two places, divided by a power of their
    lengths. Nothing but the training graph is ever looked at: links of unseen vertices play no
    part.

    Parameters
    ----------
    estimator : estimator, optional
        A model of okforest, or a pipeline that ends with one; its ``kernel`` is set to
        ``vertex_kernel``. By default ``OKExtraTrees(100, max_features=0.25, min_samples_split=5)``.
    vertex_kernel : kernel on vertices, optional
        A kernel of :mod:`okforest.kernels` that is on vertices, without a graph. By default
        ``Diffusion(beta=0.5, normalized=True)``.
    normalize : float, default=0.5
        The power of lengths that inner products are divided by: with 0 scores are inner products,
        with 1 cosines. Predictions that are unsure are short. Inner products favour vertices that
        the model is sure of; with cosines two of which it knows nothing are as alike as can be.
    seen : {"predicted", "known", "mean"}, default="mean"
        Where a seen vertex is: where the model predicts it by its features, where its links place
        it, or half-way between. Features alone do not tell apart vertices whose features are
        equal, or all missing.
    scheme : {"convolve", "average"}, default="convolve"
        Whether the predictions of trees are averaged and then compared, or the other way round.
    calibrate : bool, default=False
        Whether to learn, by cross-validation over vertices, which share of the pairs of a score is
        linked, for :meth:`predict_proba`.
    cv : int, default=5
        Number of folds to calibrate with.

    Attributes
    ----------
    model_ : estimator
        The fitted model.
    adjacency_ : csr_array of shape (n, n)
        The training graph.
    names_ : ndarray of shape (n,)
        Names of its vertices, or their positions.
    seen_weights_ : list of csr_array of shape (n, n)
        Where the seen vertices are, as weights over them.
    calibration_ : dict
        With ``calibrate=True``, for each kind of pair, scores and their probabilities, between
        which lines are straight.

    See Also
    --------
    BipartiteCompletion : Links between two sides, as of drugs and targets.
    cross_validate_links : How good predictions are.
    okforest.kernels.Diffusion : The kernel on vertices.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, "Kernelizing the output of tree-based methods",
    ICML 2006. P. Geurts, N. Touleimat, M. Dutreix, F. d'Alché-Buc, "Inferring biological networks
    with output kernel trees", BMC Bioinformatics 8 (Suppl 2), 2007.

    Examples
    --------
    Two groups, with links within each, and features that tell them apart:

    >>> import numpy as np
    >>> from okforest.network import NetworkCompletion
    >>> rng = np.random.default_rng(0)
    >>> group = np.arange(60) % 2
    >>> links = (group[:, None] == group) & (rng.random((60, 60)) < 0.2)
    >>> links = np.triu(links, 1)
    >>> X = group[:, None] + rng.normal(0.0, 0.3, (60, 3))
    >>> model = NetworkCompletion().fit(X[:50], (links + links.T)[:50, :50])
    >>> model.predict_links(X[50:]).shape
    (10, 50)
    >>> model.predict_links(X[50:], X[50:]).shape
    (10, 10)
    >>> best = model.rank_links(X[50:], names=np.arange(50, 60), top=3)
    >>> (best["source"] - best["target"]) % 2
    array([0, 0, 0])
    """

    model_: Any
    seen_weights_: list[Weights]
    calibration_: Calibration

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # new_model has better messages
        "vertex_kernel": "no_validation",
        "normalize": [Interval(Real, 0.0, 1.0, closed="both")],
        "seen": [StrOptions({"predicted", "known", "mean"})],
        "scheme": [StrOptions({"convolve", "average"})],
        "calibrate": ["boolean"],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any = None,
        vertex_kernel: Any = None,
        *,
        normalize: float = 0.5,
        seen: Literal["predicted", "known", "mean"] = "mean",
        scheme: Literal["convolve", "average"] = "convolve",
        calibrate: bool = False,
        cv: int = 5,
    ):
        self.estimator = estimator
        self.vertex_kernel = vertex_kernel
        self.normalize = normalize
        self.seen = seen
        self.scheme = scheme
        self.calibrate = calibrate
        self.cv = cv

    def _fit(self, X: Any, graph: Graph) -> None:
        self.__dict__.pop("calibration_", None)
        if graph.adjacency.nnz == 0:
            raise ValueError("the graph has no links; there is nothing to learn from.")
        kernel = self._new_kernel().set_params(graph=graph.adjacency)
        model = new_model(self.estimator, kernel, self.scheme)
        self.model_ = model.fit(X, np.arange(len(graph.names)))
        self.seen_weights_ = self._seen_weights(X, len(graph.names))
        if self.calibrate:
            alike = clone(self).set_params(calibrate=False)
            self.calibration_ = calibrate(alike, X, graph, self.cv)

    def _new_kernel(self) -> OutputKernel:
        if self.vertex_kernel is None:
            return Diffusion(beta=0.5, normalized=True)
        if "graph" not in getattr(self.vertex_kernel, "get_params", dict)():
            raise TypeError(
                f"vertex_kernel is {self.vertex_kernel!r}; use a kernel on vertices without a "
                "graph, such as Diffusion(beta=1.0)."
            )
        if self.vertex_kernel.graph is not None:
            raise ValueError(
                "vertex_kernel has a graph already; leave it out: fit puts in the training graph, "
                "and no link of other vertices."
            )
        return clone(self.vertex_kernel)

    def _seen_weights(self, X: Any, n: int) -> list[Weights]:
        """Return where the n seen vertices are, as weights."""
        known = sp.eye_array(n, format="csr")
        if self.seen == "known":
            return (
                [known] * len(final_model(self.model_).trees_)
                if self.scheme == "average"
                else [known]
            )
        predicted = [sp.csr_array(W.tocsr()) for W in self._predicted_weights(X)]
        if self.seen == "predicted":
            return predicted
        return [(0.5 * (W + known)).tocsr() for W in predicted]

    def _predicted_weights(self, X: Any) -> Sequence[WeightMatrix]:
        model, X = unwrap(self.model_, X)
        return model._weights_by_tree(X) if self.scheme == "average" else [model._weights(X)]

    @property
    def _span(self) -> Span:
        return final_model(self.model_).span_

    def _place(self, X: Any) -> Placed:
        weights = self.seen_weights_ if X is None else self._predicted_weights(X)
        n = weights[0].shape[0]
        if self.normalize == 0:
            return Placed(weights, np.ones(n))
        span = self._span
        squares = np.mean([span.squared_norms(W) for W in weights], axis=0)
        lengths = np.maximum(squares, 0.0) ** (0.5 * self.normalize)
        scale = np.divide(1.0, lengths, out=np.zeros(n), where=lengths > 0)
        return Placed(weights, scale)

    def _compare(self, a: Placed, b: Placed) -> Floats:
        scores = self._span.mean_gram(a.weights, b.weights)
        scores *= a.scale[:, None]
        scores *= b.scale
        return scores

    def predict_proba(self, X_new: Any, Z_new: Any = None) -> Floats:
        """Return the probability of links, with ``calibrate=True``.

        Among seen vertices there is none: it depends on how many links are missing.

        Parameters
        ----------
        X_new : array-like, frame or sparse matrix of shape (n, p)
            Features of unseen vertices.
        Z_new : array-like, frame or sparse matrix of shape (m, p), optional
            Features of unseen vertices at the other ends; by default the seen vertices.

        Returns
        -------
        probabilities : ndarray of shape (n, m)
            The share of pairs with such a score that are linked, as seen in cross-validation.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise ValueError("predict_proba needs calibrate=True; predict_links gives scores.")
        if X_new is None:
            raise ValueError(
                "X_new is None; pass features of unseen vertices: among seen ones there are "
                "scores (predict_links), but no probabilities."
            )
        kind = SEEN_UNSEEN if Z_new is None else UNSEEN_UNSEEN
        scores, probabilities = self.calibration_[kind]
        return np.interp(self.predict_links(X_new, Z_new), scores, probabilities)
