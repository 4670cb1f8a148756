"""Baseline models of links: similarity of features, and a classifier of pairs."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest._utils.arrays import Floats
from okforest._utils.compat import HasMethods, Interval, StrOptions
from okforest.network.graphs import Graph
from okforest.network.links import LinkPredictor

BLOCK_BYTES = 2**27  # memory for the features of the pairs scored at a time


class InputSimilarity(LinkPredictor):
    """Score pairs by the similarity of their features; nothing is learnt from the links.

    Parameters
    ----------
    metric : str, default="cosine"
        A kernel known to :func:`sklearn.metrics.pairwise.pairwise_kernels`.

    Attributes
    ----------
    adjacency_ : csr_array of shape (n, n)
        The training graph.
    names_ : ndarray of shape (n,)
        Names of the vertices, or their positions.

    See Also
    --------
    NetworkCompletion : A model that learns from the links.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> model = InputSimilarity().fit(X, [(0, 1)])
    >>> model.predict_links(np.array([[0.0, 2.0]])).round(2)
    array([[0.  , 0.11, 1.  ]])
    """

    imputer_: SimpleImputer
    inputs_: Floats

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [StrOptions(set(PAIRWISE_KERNEL_FUNCTIONS))],
    }

    def __init__(self, metric: str = "cosine"):
        self.metric = metric

    def _fit(self, X: Any, graph: Graph) -> None:
        self.imputer_ = SimpleImputer(keep_empty_features=True).fit(X)
        self.inputs_ = self.imputer_.transform(X)

    def _represent(self, X: Any) -> "FeatureRows":
        return FeatureRows(self.inputs_ if X is None else self.imputer_.transform(X))

    def _score_pairs(self, a: "FeatureRows", b: "FeatureRows") -> Floats:
        scores = pairwise_kernels(a.values, b.values, metric=self.metric)
        return _dense(scores)


class PairClassifier(LinkPredictor):
    """Score pairs with a classifier whose features are ``|x − z|`` and ``x · z``, by element.

    Parameters
    ----------
    estimator : classifier, optional
        A scikit-learn classifier with ``predict_proba``. By default, logistic regression after
        imputation of missing values by means, and scaling.
    n_negatives : int, default=5
        Number of unlinked pairs drawn for each link.
    random_state : int, default=0
        Seed for drawing the unlinked pairs.

    Attributes
    ----------
    classifier_ : classifier
        The fitted classifier.
    adjacency_ : csr_array of shape (n, n)
        The training graph.
    names_ : ndarray of shape (n,)
        Names of the vertices, or their positions.

    See Also
    --------
    NetworkCompletion : A model of vertices rather than of pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import PairClassifier
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> links = np.abs(X[:, :1] - X[:, 0]) < 0.2
    >>> PairClassifier().fit(X, links).predict_links(X[:3], X[:5]).shape
    (3, 5)
    """

    classifier_: Any
    inputs_: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "n_negatives": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, estimator: Any = None, n_negatives: int = 5, random_state: int = 0):
        self.estimator = estimator
        self.n_negatives = n_negatives
        self.random_state = random_state

    def _fit(self, X: Any, graph: Graph) -> None:
        inputs = _dense(X)
        links = sp.triu(graph.adjacency, k=1).tocoo()
        n = len(graph.names)
        unlinked = np.flatnonzero(np.triu(graph.adjacency.toarray() == 0, k=1))
        if links.nnz == 0 or len(unlinked) == 0:
            raise ValueError(
                f"the graph has {links.nnz} linked and {len(unlinked)} unlinked pairs; a "
                "classifier of pairs needs both."
            )
        n_negatives = min(len(unlinked), self.n_negatives * links.nnz)
        rng = np.random.default_rng(self.random_state)
        drawn = np.unravel_index(rng.choice(unlinked, n_negatives, replace=False), (n, n))
        rows = np.r_[links.row, drawn[0]]
        columns = np.r_[links.col, drawn[1]]
        labels = np.r_[np.ones(links.nnz), np.zeros(n_negatives)]
        classifier = _default_classifier() if self.estimator is None else clone(self.estimator)
        self.classifier_ = classifier.fit(_pair_features(inputs[rows], inputs[columns]), labels)
        self.inputs_ = inputs

    def _represent(self, X: Any) -> "FeatureRows":
        return FeatureRows(self.inputs_ if X is None else _dense(X))

    def _score_pairs(self, a: "FeatureRows", b: "FeatureRows") -> Floats:
        scores = np.empty((len(a), len(b)))
        size = max(1, BLOCK_BYTES // (16 * a.values.shape[1] * max(1, len(b))))
        for start in range(0, len(a), size):
            block = a.values[start : start + size]
            left = np.repeat(block, len(b), axis=0)
            right = np.tile(b.values, (len(block), 1))
            probabilities = self.classifier_.predict_proba(_pair_features(left, right))[:, 1]
            scores[start : start + size] = probabilities.reshape(len(block), len(b))
        return scores


class FeatureRows:
    """Rows of features, dense or sparse, with a length and slices.

    Parameters
    ----------
    values : ndarray or sparse matrix of shape (n, p)
        The features.
    """

    def __init__(self, values: Any):
        self.values = values

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, rows: slice) -> "FeatureRows":
        return FeatureRows(self.values[rows])


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _pair_features(left: Floats, right: Floats) -> Floats:
    return np.hstack([np.abs(left - right), left * right])


def _default_classifier() -> Any:
    return make_pipeline(
        SimpleImputer(keep_empty_features=True), StandardScaler(), LogisticRegression(max_iter=500)
    )
