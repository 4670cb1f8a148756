"""Data for network completion: yeast proteins, in place of the networks of the papers.

The papers' networks are not public: 984 proteins with 2,478 interactions (the talk), and 668
enzymes with 2,782 links (both papers). This network, rebuilt from public sources, has 984 proteins
with 2,438 interactions, and expression and localization as features. It lacks the phylogenetic
profiles and two-hybrid data of the papers.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest._typing import Floats
from okforest.datasets import fetch_yeast_ppi
from okforest.network._folds import Fold, folds_of, hide_links
from okforest.network._graphs import Graph
from okforest.network._pairs import Positions

# Sets of features, as groups of columns in the data.
FEATURE_SETS = {
    "all": ("spellman", "eisen", "localization"),
    "expression": ("spellman", "eisen"),
    "localization": ("localization",),
}


class ProteinNetwork(NamedTuple):
    """Features of proteins and the graph of their interactions."""

    X: Floats
    graph: Graph
    feature_names: list[str]


@cache
def load_yeast() -> Bunch:
    """Return the yeast proteins, read once."""
    return fetch_yeast_ppi()


@cache
def load_network(features: str = "all") -> ProteinNetwork:
    """Return the network with a set of features."""
    yeast = load_yeast()
    every_column = np.arange(yeast.data.shape[1])
    columns = np.concatenate(
        [every_column[yeast.feature_groups[group]] for group in FEATURE_SETS[features]]
    )
    names = [yeast.feature_names[column] for column in columns]
    return ProteinNetwork(yeast.data[:, columns], Graph(yeast.graph, yeast.names), names)


def most_connected(n: int) -> ProteinNetwork:
    """Return the subgraph of the n proteins of highest degree; ties keep the file order."""
    whole = load_network()
    degrees = np.asarray((whole.graph.adjacency > 0).sum(axis=0)).ravel()
    kept = np.sort(np.argsort(-degrees, kind="stable")[:n])
    return ProteinNetwork(whole.X[kept], whole.graph.part(kept), whole.feature_names)


def network_fold(graph: Graph, fold: int, n_folds: int, deleted: float = 0.0) -> Fold:
    """Return one fold of the vertices, with a fraction of the training links deleted."""
    split = folds_of(len(graph.names), n_folds)[fold]
    if deleted:
        return hide_links(graph, split, deleted, np.random.default_rng(fold))
    return split


def are_linked(adjacency: sp.csr_array, rows: Positions, columns: Positions) -> Any:
    """Return a dense boolean matrix of the pairs that are linked."""
    return (adjacency[rows][:, columns] > 0).toarray()
