"""The input kernel that a forest has learnt, as a scikit-learn transformer."""

from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin, clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.compat import Interval, StrOptions, fit_context
from okforest._utils.resources import check_memory
from okforest._utils.state import Maybe
from okforest.models import OKExtraTrees
from okforest.models.tree_model import TreeModel
from okforest.models.wrapping import Wrapper, check_inner
from okforest.refit.leaves import LeafExpansion, check_trees, leaves_of, warn_if_full_grown


class ForestKernel(TransformerMixin, Wrapper):
    """The input kernel of a forest, as features for other methods.

    Two inputs are similar if they often reach the same leaf. With ``weighted=True`` this is the
    kernel of the forest's own predictions, the mean over trees of 1 / (weight of the leaf) where
    two inputs share a leaf (for forests without bootstrap). Use it in support vector machines,
    kernel principal components, spectral clustering, or any linear model.

    Parameters
    ----------
    estimator : estimator, optional
        A tree or forest of okforest; by default
        ``OKExtraTrees(100, min_samples_leaf=5, random_state=0)``, which takes integers for numbers:
        for class labels pass a forest with ``kernel="dirac"``. ``OKTotallyRandomTrees`` need no
        outputs. Fully grown trees give a kernel that is zero between different rows, with a
        warning: set ``min_samples_leaf``.
    features : {"leaves", "gram", "nystrom"}, default="leaves"
        What ``transform`` returns: sparse features, one for each leaf, whose inner products are the
        kernel; the kernel to the training rows, for methods that take ``kernel="precomputed"``; or
        a few dense features that approximate the kernel.
    weighted : bool, default=True
        Whether small leaves count more, or all leaves the same (the share of trees in which two
        inputs meet). The kernel of a row with itself is 1 / (size of leaves) if weighted, and 1
        otherwise: methods with a penalty, such as support vector machines, need a larger ``C`` with
        the first one.
    n_components : int, default=100
        Number of training rows that span the Nyström features.
    random_state : int, RandomState or None, default=None
        The choice of these rows.

    Attributes
    ----------
    estimator_ : estimator
        The forest.
    landmarks_ : csr_array of shape (m, n_leaves)
        Leaf features of the training rows ("gram"), or of those that span the Nyström features.
    projection_ : ndarray of shape (m, m)
        The inverse square root of the kernel of the landmarks, for "nystrom".

    See Also
    --------
    sklearn.ensemble.RandomTreesEmbedding : Indicators of the leaves of unsupervised trees.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from okforest import OKExtraTrees
    >>> from okforest.refit import ForestKernel
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = OKExtraTrees(50, kernel="dirac", min_samples_leaf=5, random_state=0)
    >>> model = make_pipeline(ForestKernel(forest), LogisticRegression(C=100)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # check_trees has better messages
        "features": [StrOptions({"leaves", "gram", "nystrom"})],
        "weighted": ["boolean"],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    estimator_: Any
    landmarks_: Maybe[sp.csr_array]
    projection_: Maybe[Floats]

    def __init__(
        self,
        estimator: Any = None,
        *,
        features: Literal["leaves", "gram", "nystrom"] = "leaves",
        weighted: bool = True,
        n_components: int = 100,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.features = features
        self.weighted = weighted
        self.n_components = n_components
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like of n outputs, optional
            Outputs, as the estimator takes them.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        forest = self._inner()
        check_trees(forest, "ForestKernel")
        self._keep(clone(forest).fit(X, y, sample_weight))
        trees = self.estimator_.trees_
        effect = "the kernel of two different training rows is about 0"
        warn_if_full_grown(trees, len(trees.row_weight), effect)
        if self.features != "leaves":
            self.landmarks_ = self._landmarks(self._leaf_features(X))
        if self.features == "nystrom":
            self.projection_ = _inverse_root((self.landmarks_ @ self.landmarks_.T).toarray())
        return self

    def _default_estimator(self) -> Any:
        return OKExtraTrees(100, min_samples_leaf=5, random_state=0)

    def _landmarks(self, rows: sp.csr_array) -> sp.csr_array:
        if self.features == "gram" or rows.shape[0] <= self.n_components:
            return rows
        rng = check_random_state(self.random_state)
        chosen = rng.choice(rows.shape[0], self.n_components, replace=False)
        return sp.csr_array(rows[np.sort(chosen)])

    def _leaf_features(self, X: Any) -> sp.csr_array:
        check_is_fitted(self, "estimator_")
        trees = self.estimator_.trees_
        expansion = LeafExpansion(trees)
        rows = expansion.rows(leaves_of(self.estimator_, X))
        if self.weighted:
            rows.data = np.sqrt(rows.data / trees.weight[expansion.nodes[rows.indices]])
        else:
            rows.data = np.sqrt(rows.data)
        return rows

    def transform(self, X: Any) -> sp.csr_array | Floats:
        """Return the features of inputs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        features : csr_array of shape (n, n_leaves), or ndarray of shape (n, n_train) or (n, m)
            As chosen by the parameter ``features``.
        """
        rows = self._leaf_features(X)
        if self.features == "leaves":
            return rows
        check_memory(
            8 * rows.shape[0] * self.landmarks_.shape[0],
            f"the kernel between {rows.shape[0]} and {self.landmarks_.shape[0]} rows",
            "Use features='leaves', or 'nystrom' with fewer components.",
        )
        K = (rows @ self.landmarks_.T).toarray()
        return K if self.features == "gram" else K @ self.projection_

    def gram(self, X: Any, Z: Any = None) -> Floats:
        """Return the kernel between inputs.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        Z : array-like, frame or sparse matrix of shape (m, p), optional
            Other inputs; by default X.

        Returns
        -------
        K : ndarray of shape (n, m)
            The kernel.
        """
        rows = self._leaf_features(X)
        others = rows if Z is None else self._leaf_features(Z)
        return (rows @ others.T).toarray()

    def get_feature_names_out(self, input_features: Any = None) -> Outputs:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Ignored; names of inputs do not matter.

        Returns
        -------
        names : ndarray of str
            Such as ``tree0_leaf4``, ``row12`` or ``nystrom3``.
        """
        check_is_fitted(self, "estimator_")
        if self.features == "leaves":
            trees = self.estimator_.trees_
            leaf = LeafExpansion(trees).nodes
            tree = np.searchsorted(trees.node_offsets, leaf, side="right") - 1
            numbers = leaf - trees.node_offsets[tree]
            names = [f"tree{t}_leaf{node}" for t, node in zip(tree, numbers, strict=True)]
        else:
            prefix = "row" if self.features == "gram" else "nystrom"
            names = [f"{prefix}{i}" for i in range(self.landmarks_.shape[0])]
        return np.array(names, dtype=object)

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        check_inner(self.estimator_, "estimator_", TreeModel)
        if self.features == "leaves":
            return
        m, n_leaves = self.landmarks_.shape
        if n_leaves != LeafExpansion(self.estimator_.trees_).n_leaves:
            raise ValueError("landmarks_ and the leaves of estimator_ differ")
        if self.features == "nystrom" and self.projection_.shape != (m, m):
            raise ValueError(f"projection_ has shape {self.projection_.shape}")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags = get_tags(self._inner()).target_tags
        return tags


def _inverse_root(K: Floats) -> Floats:
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    roots = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return np.asarray((vectors * roots) @ vectors.T)
