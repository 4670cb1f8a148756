"""A single output kernel tree."""

from typing import Any, Literal

from sklearn.base import clone
from sklearn.utils import Bunch

from okforest._utils.arrays import Ints
from okforest._utils.codings import CategoricalEncoding
from okforest.embedding import EmbeddingKind, SearchRank
from okforest.engine import DeviceName, pruning_path
from okforest.models.parameter_docs import document
from okforest.models.tree_model import TreeModel


@document
class OKTree(TreeModel):
    """An output kernel tree (OK3).

    With the linear kernel it is a multi-output regression tree, with the Dirac kernel a
    classification tree with the Gini index.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    OKExtraTrees : A forest, more accurate.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, "Kernelizing the output of tree-based methods",
    ICML 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKTree
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = OKTree(kernel="dirac", max_depth=2, random_state=0).fit(X, y)
    >>> tree.predict(X[::50])
    array([0, 1, 2])
    """

    def __init__(
        self,
        *,
        kernel: Any = "linear",
        splitter: Literal["best", "random"] = "best",
        criterion: Literal["variance", "frobenius"] = "variance",
        max_features: Any = None,
        ignore_constant: bool = False,
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float | Literal["auto"] = "auto",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        categorical_features: Any = "from_dtype",
        categorical_encoding: CategoricalEncoding = "auto",
        embedding: EmbeddingKind | Literal["auto"] = "auto",
        embedding_rank: int | None = None,
        search_rank: SearchRank = "auto",
        decoder: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        device: DeviceName = "cpu",
        verbose: int = 0,
    ):
        self.kernel = kernel
        self.splitter = splitter
        self.criterion = criterion
        self.max_features = max_features
        self.ignore_constant = ignore_constant
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.categorical_features = categorical_features
        self.categorical_encoding = categorical_encoding
        self.embedding = embedding
        self.embedding_rank = embedding_rank
        self.search_rank = search_rank
        self.decoder = decoder
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return the sequence of prunings of a tree grown on this data.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like of n outputs
            Outputs.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        path : Bunch
            ``ccp_alphas``, the alpha from which each pruning is optimal, and ``impurities``, the
            variance of the outputs within its leaves.

        See Also
        --------
        okforest.select_ccp_alpha : Choose an alpha by cross-validation.
        """
        whole = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        alphas, variances = pruning_path(whole.trees_[0])
        return Bunch(ccp_alphas=alphas, impurities=variances)

    def apply(self, X: Any) -> Ints:
        """Return the leaves that inputs reach.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.

        Returns
        -------
        leaves : ndarray of shape (n,)
            Node numbers.
        """
        return super().apply(X)[:, 0]
