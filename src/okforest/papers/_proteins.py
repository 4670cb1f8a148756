"""The network at hand: yeast proteins, in the place of the networks that the papers had.

Those were given to the authors of the papers: 984 proteins and 2,478 interactions (the talk), 668
enzymes and 2,782 links (both papers). This one has 984 proteins and 2,438 interactions from public
sources, with expression and localization, and without phylogenetic profiles and two-hybrid data.
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

# Of each set of features, its groups in the data.
FEATURES = {
    "all": ("spellman", "eisen", "localization"),
    "expression": ("spellman", "eisen"),
    "localization": ("localization",),
}


class Proteins(NamedTuple):
    """Features of proteins and their links."""

    X: Floats
    graph: Graph
    feature_names: list[str]


@cache
def yeast() -> Bunch:
    """Return the proteins as they are in the files, read once."""
    return fetch_yeast_ppi()


@cache
def proteins(features: str = "all") -> Proteins:
    """Return the proteins with a set of features."""
    data = yeast()
    columns = np.concatenate(
        [np.arange(data.data.shape[1])[data.feature_groups[name]] for name in FEATURES[features]]
    )
    names = [data.feature_names[column] for column in columns]
    return Proteins(data.data[:, columns], Graph(data.graph, data.names), names)


def best_linked(n: int) -> Proteins:
    """Return the n proteins with most links (of equals the first), and the links among them."""
    whole = proteins()
    degrees = np.asarray((whole.graph.adjacency > 0).sum(axis=0)).ravel()
    kept = np.sort(np.argsort(-degrees, kind="stable")[:n])
    return Proteins(whole.X[kept], whole.graph.part(kept), whole.feature_names)


def fold_of(graph: Graph, fold: int, n_folds: int, deleted: float = 0.0) -> Fold:
    """Return one fold of the vertices, with a share of the training links to be hidden."""
    split = folds_of(len(graph.names), n_folds)[fold]
    if deleted:
        return hide_links(graph, split, deleted, np.random.default_rng(fold))
    return split


def linked(adjacency: sp.csr_array, rows: Positions, columns: Positions) -> Any:
    """Return which pairs are linked, as a dense matrix."""
    return (adjacency[rows][:, columns] > 0).toarray()
