"""Completion of a network from the features of its vertices (supervised graph inference).

A model is fitted with a kernel on the vertices of the training graph as its output kernel. The
predicted kernel of two vertices, the inner product of their predictions in the feature space of
that kernel, is large if they are likely to be linked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import Interval, StrOptions
from okforest._utils.state import Maybe
from okforest.kernels import Diffusion, OutputKernel, Precomputed
from okforest.kernels.graphs import VertexKernel
from okforest.kernels.laplacian import Vertices
from okforest.metrics.losses import unwrap
from okforest.models.wrapping import final_model
from okforest.network.evaluation import folds_of, join, score_fold
from okforest.network.graphs import KNOWN_NEW, NEW_NEW, Graph, PairKind
from okforest.network.links import (
    LinkPredictor,
    check_inner_model,
    check_matrix,
    check_names,
    new_model,
    predicted_weights,
    predicted_weights_by_tree,
)
from okforest.weights import Span, WeightMatrix, as_weights

KNOWN = "squared norms of the known vertices"  # kept for later predictions
# For each kind of pair, increasing scores and the corresponding probabilities of a link.
Calibration = dict[PairKind, tuple[Floats, Floats]]


def calibrate(model: LinkPredictor, X: Any, graph: Graph, n_folds: int) -> Calibration:
    """Return, for each kind of pair, an isotonic regression of links on scores.

    Vertices held out stand for new ones. Each kind of pair has its own regression because the
    scores of different kinds are not comparable.
    """
    pairs = [score_fold(model, X, graph, fold) for fold in folds_of(len(graph.names), n_folds)]
    calibration: Calibration = {}
    for kind in (KNOWN_NEW, NEW_NEW):
        truth, scores = join(fold[kind] for fold in pairs)
        isotonic = IsotonicRegression(out_of_bounds="clip").fit(scores, truth)
        calibration[kind] = isotonic.X_thresholds_, isotonic.y_thresholds_
    return calibration


def check_calibration(calibration: Any) -> None:
    """Raise a ValueError if a restored calibration cannot be interpolated."""
    kinds = {KNOWN_NEW, NEW_NEW}
    if not isinstance(calibration, dict) or set(calibration) != kinds:
        raise ValueError(f"calibration_ does not have the kinds {sorted(kinds)}")
    for kind, points in calibration.items():
        curve = isinstance(points, tuple | list) and len(points) == 2
        if not curve or not all(_is_vector(part) for part in points):
            raise ValueError(f"calibration_[{kind!r}] is not a pair of arrays of floats")
        scores, probabilities = points
        if len(scores) != len(probabilities) or (np.diff(scores) < 0).any():
            raise ValueError(f"calibration_[{kind!r}] is not a curve over increasing scores")


def _is_vector(values: Any) -> bool:
    is_array = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return is_array and values.ndim == 1 and len(values) > 0


@dataclass(frozen=True)
class VertexEmbedding:
    """Vertices in the kernel's feature space, as weighted sums of the known ones.

    There is one matrix of weights, or one for each tree. Inner products are multiplied by the
    scales of both vertices.
    """

    weights: Sequence[WeightMatrix]
    scale: Floats

    def __len__(self) -> int:
        return len(self.scale)

    def __getitem__(self, rows: slice) -> "VertexEmbedding":
        return VertexEmbedding([W[rows] for W in self.weights], self.scale[rows])


class NetworkCompletion(LinkPredictor):
    """Predict the links of a network from the features of its vertices.

    A kernel on the training graph measures how close two vertices are through their links. The
    model learns to map the features of a vertex to its position in the feature space of that
    kernel. The score of a pair is the inner product of two positions, divided by a power of their
    norms. Only the training graph is used: links of new vertices have no influence.

    Parameters
    ----------
    estimator : estimator, optional
        A model of okforest, or a pipeline that ends with one; its ``kernel`` is replaced by
        ``vertex_kernel``. By default ``OKExtraTrees(100, max_features=0.25, min_samples_split=5)``.
    vertex_kernel : kernel on vertices, optional
        A kernel on vertices of :mod:`okforest.kernels`, without a graph. By default
        ``Diffusion(beta=0.5, normalize=True)``.
    normalize : float, default=0.5
        The power of the norms by which inner products are divided: with 0 scores are inner
        products, with 1 cosines. Uncertain predictions have small norms, so inner products favour
        vertices with confident predictions. With cosines, two vertices without any features get
        the highest possible score.
    known : {"predicted", "links", "mean"}, default="mean"
        The position of a known vertex: as predicted from its features, as given by its links, or
        the mean of the two. Features alone cannot distinguish vertices whose features are equal,
        or all missing.
    scheme : {"convolve", "average"}, default="convolve"
        Compare the averaged predictions of the trees ("convolve"), or average the comparisons made
        in each tree ("average").
    calibrate : bool, default=False
        Whether to estimate the probability of a link given its score, by cross-validation over
        vertices, for :meth:`predict_proba`.
    cv : int, default=5
        Number of folds of the calibration.

    Attributes
    ----------
    model_ : estimator
        The fitted model.
    adjacency_ : csr_array of shape (n, n)
        The training graph.
    names_ : ndarray of shape (n,)
        Names of the vertices, or their positions.
    known_weights_ : list of csr_array of shape (n, n)
        Positions of the known vertices, as weights over the known vertices.
    calibration_ : dict
        With ``calibrate=True``, for each kind of pair, scores and the corresponding probabilities,
        which are interpolated linearly.

    See Also
    --------
    BipartiteCompletion : Links between two sets of vertices, such as drugs and targets.
    cross_validate_links : Evaluate predictions by cross-validation.
    okforest.kernels.Diffusion : The kernel on vertices.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, "Kernelizing the output of tree-based methods",
    ICML 2006. P. Geurts, N. Touleimat, M. Dutreix, F. d'Alché-Buc, "Inferring biological networks
    with output kernel trees", BMC Bioinformatics 8 (Suppl 2), 2007.

    Examples
    --------
    Two groups with links within each, and features that differ between the groups:

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
    >>> best = model.rank_links(X[50:], names=np.arange(50, 60), k=3)
    >>> (best["source"] - best["target"]) % 2
    array([0, 0, 0])
    """

    model_: Any
    known_weights_: list[sp.csr_array]
    calibration_: Maybe[Calibration]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # new_model has better messages
        "vertex_kernel": "no_validation",
        "normalize": [Interval(Real, 0.0, 1.0, closed="both")],
        "known": [StrOptions({"predicted", "links", "mean"})],
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
        known: Literal["predicted", "links", "mean"] = "mean",
        scheme: Literal["convolve", "average"] = "convolve",
        calibrate: bool = False,
        cv: int = 5,
    ):
        self.estimator = estimator
        self.vertex_kernel = vertex_kernel
        self.normalize = normalize
        self.known = known
        self.scheme = scheme
        self.calibrate = calibrate
        self.cv = cv

    def _fit(self, X: Any, graph: Graph) -> None:
        if graph.adjacency.nnz == 0:
            raise ValueError("the graph has no links; pass at least one link to learn from.")
        model = new_model(self.estimator, self._new_kernel(graph), self.scheme)
        self.model_ = model.fit(X, np.arange(len(graph.names)))
        self.known_weights_ = self._known_weights(X, len(graph.names))
        if self.calibrate:
            uncalibrated = clone(self).set_params(calibrate=False)
            self.calibration_ = calibrate(uncalibrated, X, graph, self.cv)

    def _new_kernel(self, graph: Graph) -> OutputKernel:
        """Return the kernel on the vertices of the training graph, which is not read again."""
        kernel = Diffusion(beta=0.5, normalize=True)
        if self.vertex_kernel is not None:
            self._check_vertex_kernel()
            kernel = clone(self.vertex_kernel)
        if isinstance(kernel, VertexKernel):
            return kernel.on(Vertices.of(graph.adjacency))
        return kernel.set_params(graph=graph.adjacency)

    def _check_vertex_kernel(self) -> None:
        if "graph" not in getattr(self.vertex_kernel, "get_params", dict)():
            raise TypeError(
                f"vertex_kernel is {self.vertex_kernel!r}; use a kernel on vertices without a "
                "graph, such as Diffusion(beta=1.0)."
            )
        if self.vertex_kernel.graph is not None:
            raise ValueError(
                "vertex_kernel already has a graph; pass the kernel without one: fit uses the "
                "training graph."
            )

    def _known_weights(self, X: Any, n: int) -> list[sp.csr_array]:
        """Return the positions of the n known vertices, as weights."""
        identity = sp.eye_array(n, format="csr")
        if self.known == "links":
            return [identity] * self._n_weight_matrices()
        predicted = [sp.csr_array(W.tocsr()) for W in self._predicted_weights(X)]
        if self.known == "predicted":
            return predicted
        return [(0.5 * (W + identity)).tocsr() for W in predicted]

    def _predicted_weights(self, X: Any) -> Sequence[WeightMatrix]:
        if self.scheme == "average":
            return predicted_weights_by_tree(self.model_, X)
        return [predicted_weights(self.model_, X)]

    def _n_weight_matrices(self) -> int:
        trees = getattr(final_model(self.model_), "trees_", ())
        return len(trees) if self.scheme == "average" else 1

    @property
    def _span(self) -> Span:
        return final_model(self.model_).span_

    def _represent(self, X: Any) -> VertexEmbedding:
        weights: Sequence[WeightMatrix]
        if X is None:
            weights = [as_weights(W) for W in self.known_weights_]
        else:
            weights = self._predicted_weights(X)
        n = weights[0].shape[0]
        if self.normalize == 0:
            return VertexEmbedding(weights, np.ones(n))

        def squared_norms() -> Floats:
            squares: Floats = np.mean([self._span.squared_norms(W) for W in weights], axis=0)
            return squares

        squares = self._span.kept(KNOWN, squared_norms) if X is None else squared_norms()
        powers = np.maximum(squares, 0.0) ** (0.5 * self.normalize)
        scale = np.divide(1.0, powers, out=np.zeros(n), where=powers > 0)
        return VertexEmbedding(weights, scale)

    def _score_pairs(self, a: VertexEmbedding, b: VertexEmbedding) -> Floats:
        scores = self._span.mean_gram(a.weights, b.weights)
        scores *= a.scale[:, None]
        scores *= b.scale
        return scores

    def predict_proba(self, X_new: Any, Z_new: Any = None) -> Floats:
        """Return the probability of links; requires ``calibrate=True``.

        There is no probability for pairs of known vertices, because it would depend on the unknown
        number of missing links.

        Parameters
        ----------
        X_new : array-like, frame or sparse matrix of shape (n, p)
            Features of new vertices.
        Z_new : array-like, frame or sparse matrix of shape (m, p), optional
            Features of new vertices at the other end of the links; by default the known vertices.

        Returns
        -------
        probabilities : ndarray of shape (n, m)
            The share of linked pairs among those with the same score, in cross-validation.
        """
        check_is_fitted(self)
        check_sparse(X_new, "X_new")
        check_sparse(Z_new, "Z_new")
        if not hasattr(self, "calibration_"):
            raise ValueError(
                "predict_proba requires calibrate=True; refit with it, or use the scores of "
                "predict_links."
            )
        if X_new is None:
            raise ValueError(
                "X_new is None; pass the features of new vertices. Pairs of known vertices have "
                "scores (predict_links) but no probabilities."
            )
        kind = KNOWN_NEW if Z_new is None else NEW_NEW
        scores, probabilities = self.calibration_[kind]
        return np.interp(self.predict_links(X_new, Z_new), scores, probabilities)

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        n = check_inner_model(self.model_, "model_")
        check_names(self.names_, "names_", n)
        check_matrix(self.adjacency_, "adjacency_", (n, n))
        weights = self.known_weights_
        expected = self._n_weight_matrices()
        if not weights or len(weights) != expected:
            raise ValueError(f"known_weights_ is not a list of {expected} matrices")
        for i, W in enumerate(weights):
            check_matrix(W, f"known_weights_[{i}]", (n, n))
        if hasattr(self, "calibration_"):
            check_calibration(self.calibration_)


def complete_kernel(
    K_known: Any,
    X_known: Any,
    X_new: Any,
    estimator: Any = None,
    scheme: Literal["convolve", "average"] = "convolve",
) -> Floats:
    """Complete a Gram matrix: predict its entries for new objects from their features.

    The values among known objects do not change. In the feature space of the kernel, a known object
    is φ_i and a new one is its prediction F(x), so that k̂(i, x) = ⟨φ_i, F(x)⟩ and
    k̂(x, z) = ⟨F(x), F(z)⟩. The result is positive semi-definite if K_known is.

    Parameters
    ----------
    K_known : array-like of shape (n, n)
        The Gram matrix of the known objects.
    X_known : array-like, frame or sparse matrix of shape (n, p)
        Features of the known objects.
    X_new : array-like, frame or sparse matrix of shape (m, p)
        Features of the new objects.
    estimator : estimator, optional
        A model of okforest, or a pipeline that ends with one; its ``kernel`` is replaced. By
        default ``OKExtraTrees(100, max_features=0.25, min_samples_split=5)``.
    scheme : {"convolve", "average"}, default="convolve"
        How trees predict the kernel between new objects: see
        :meth:`okforest.OKExtraTrees.predict_kernel`.

    Returns
    -------
    K : ndarray of shape (n + m, n + m)
        The Gram matrix of all objects, known ones first.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import complete_kernel
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> K = np.exp(-((X - X.T) ** 2))
    >>> known = np.arange(50) % 5 > 0
    >>> completed = complete_kernel(K[np.ix_(known, known)], X[known], X[~known])
    >>> bool(np.abs(completed[:40, 40:] - K[np.ix_(known, ~known)]).max() < 0.1)
    True
    """
    check_sparse(X_known, "X_known")
    check_sparse(X_new, "X_new")
    K = np.asarray(K_known)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"K_known has shape {K.shape}; pass the square Gram matrix of the known objects."
        )
    model = new_model(estimator, Precomputed(K), scheme).fit(X_known, np.arange(len(K)))
    final, X_final = unwrap(model, X_new)
    across = predicted_weights(final, X_final) @ K
    new = final.predict_kernel(X_final, scheme=scheme)
    return np.block([[K, across.T], [across, new]])
