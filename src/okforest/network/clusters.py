"""Clusters of vertices, each defined by a rule on features, and the links between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, logsumexp
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Ints, Outputs
from okforest.inspection import Rule, leaf_clusters
from okforest.models.wrapping import final_model
from okforest.network.completion import NetworkCompletion


@dataclass(frozen=True, eq=False)
class VertexCluster:
    """The vertices that satisfy a rule.

    Parameters
    ----------
    rule : Rule
        The conditions that their features satisfy.
    members : ndarray
        Names of the vertices.
    rows : ndarray of int
        Their rows in the training data.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKTree
    >>> from okforest.network import NetworkCompletion, vertex_clusters
    >>> group = np.arange(6) % 2
    >>> links = (group[:, None] == group) & ~np.eye(6, dtype=bool)
    >>> tree = OKTree(max_leaf_nodes=2, random_state=0)
    >>> network = vertex_clusters(NetworkCompletion(tree).fit(group[:, None].astype(float), links))
    >>> network.clusters[0].members
    array([0, 2, 4])
    """

    rule: Rule
    members: Outputs
    rows: Ints


@dataclass(frozen=True, eq=False)
class ClusterNetwork:
    """Clusters of vertices, and the links within and between them.

    Parameters
    ----------
    clusters : list of VertexCluster
        The leaves of a tree, from left to right.
    links : ndarray of shape (n_clusters, n_clusters)
        Number of links between clusters; within clusters on the diagonal.
    pairs : ndarray of shape (n_clusters, n_clusters)
        Number of pairs of vertices that could be linked.
    enrichment : ndarray of shape (n_clusters, n_clusters)
        The share of linked pairs, divided by the share in the whole network.
    p_values : ndarray of shape (n_clusters, n_clusters)
        The probability of at least this number of links if links were placed on random pairs
        (Fisher's exact test, one-sided).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKTree
    >>> from okforest.network import NetworkCompletion, vertex_clusters
    >>> group = np.arange(20) % 2
    >>> links = (group[:, None] == group) & ~np.eye(20, dtype=bool)
    >>> tree = OKTree(max_leaf_nodes=2, random_state=0)
    >>> network = vertex_clusters(NetworkCompletion(tree).fit(group[:, None].astype(float), links))
    >>> network.links
    array([[45.,  0.],
           [ 0., 45.]])
    """

    clusters: list[VertexCluster]
    links: Floats
    pairs: Floats
    enrichment: Floats
    p_values: Floats

    def enriched(self, level: float = 0.01) -> list[tuple[int, int]]:
        """Return the pairs of clusters with significantly more links than expected by chance.

        Parameters
        ----------
        level : float, default=0.01
            The probability of returning any pair for a random network (Bonferroni correction).

        Returns
        -------
        pairs : list of pairs of int
            Positions of clusters; (i, i) for links within cluster i.
        """
        rows, columns = np.triu_indices(len(self.clusters))
        found = self.p_values[rows, columns] * len(rows) < level
        return list(zip(rows[found].tolist(), columns[found].tolist(), strict=True))


def vertex_clusters(
    model: NetworkCompletion,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    decimals: int = 3,
) -> ClusterNetwork:
    """Return the leaves of a tree as clusters of vertices, with the links between them.

    Parameters
    ----------
    model : NetworkCompletion
        A fitted model whose trees were grown from all vertices, without bootstrap. A tree with few
        leaves, such as ``OKTree(max_leaf_nodes=10)``, is easy to read.
    tree : int, default=0
        The tree of a forest to use.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in ``fit``, or x0, x1, …
    decimals : int, default=3
        Maximum number of decimals of the thresholds in a rule.

    Returns
    -------
    network : ClusterNetwork
        The clusters and their links.

    See Also
    --------
    plot_clusters : Plot the clusters as a network.
    okforest.inspection.leaf_rules : The rules only.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest import OKTree
    >>> from okforest.network import NetworkCompletion, vertex_clusters
    >>> group = np.arange(40) % 2
    >>> links = (group[:, None] == group) & ~np.eye(40, dtype=bool)
    >>> tree = OKTree(max_leaf_nodes=2, random_state=0)
    >>> model = NetworkCompletion(tree).fit(group[:, None].astype(float), links)
    >>> network = vertex_clusters(model, feature_names=["group"])
    >>> for cluster in network.clusters:
    ...     print(len(cluster.members), cluster.rule)
    20 group ≤ 0.5
    20 group > 0.5
    >>> network.enriched()
    [(0, 0), (1, 1)]
    """
    if not isinstance(model, NetworkCompletion):
        raise TypeError(
            f"model is {model!r}; pass a fitted NetworkCompletion, such as "
            "NetworkCompletion(OKTree(max_leaf_nodes=10))."
        )
    check_is_fitted(model)
    trees = final_model(model.model_)
    leaves = leaf_clusters(trees, tree, feature_names=feature_names, decimals=decimals)
    rows = [leaf.members for leaf in leaves]
    n_drawn, n_vertices = sum(map(len, rows)), len(model.names_)
    if n_drawn < n_vertices:
        raise ValueError(
            f"tree {tree} was grown from {n_drawn} of {n_vertices} vertices, and the leaves of the "
            "others are not stored; use trees grown from all vertices: an OKTree, or a forest with "
            "bootstrap=False."
        )
    clusters = [
        VertexCluster(leaf.rule, model.names_[leaf.members], leaf.members) for leaf in leaves
    ]
    return ClusterNetwork(clusters, *_count(model.adjacency_, rows))


def _count(adjacency: sp.csr_array, rows: list[Ints]) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the links and pairs between clusters, their enrichment and p-values."""
    sizes = np.array([len(members) for members in rows], dtype=np.float64)
    pairs = np.outer(sizes, sizes)
    np.fill_diagonal(pairs, sizes * (sizes - 1) / 2)
    owner = np.repeat(np.arange(len(rows)), sizes.astype(int))
    members = np.concatenate(rows)
    shape = (len(rows), adjacency.shape[0])
    indicator = sp.csr_array((np.ones(len(members)), (owner, members)), shape=shape)
    present = adjacency.astype(bool).astype(np.float64)
    links = (indicator @ present @ indicator.T).toarray()
    links[np.diag_indices(len(rows))] /= 2  # each link was counted from both ends
    upper = np.triu_indices(len(rows))
    n_links, n_pairs = links[upper].sum(), pairs[upper].sum()
    expected = pairs * n_links / n_pairs
    enrichment = np.divide(links, expected, out=np.zeros_like(links), where=expected > 0)
    p_values = np.ones_like(links)
    for i, j in zip(*upper, strict=True):
        p_values[i, j] = p_values[j, i] = _hypergeometric_tail(
            links[i, j], pairs[i, j], n_links, n_pairs
        )
    return links, pairs, enrichment, p_values


def _hypergeometric_tail(found: float, drawn: float, marked: float, total: float) -> float:
    """Return the probability that at least ``found`` of those drawn are marked."""
    k = np.arange(found, min(drawn, marked) + 1)

    def log_choose(n: Any, r: Any) -> Any:
        return gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)

    k = k[drawn - k <= total - marked]
    if len(k) == 0:
        return 0.0
    logs = log_choose(marked, k) + log_choose(total - marked, drawn - k)
    return float(min(1.0, np.exp(logsumexp(logs) - log_choose(total, drawn))))
