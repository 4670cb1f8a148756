"""Data for network completion: yeast proteins, in place of the networks of the papers.

The papers' networks are not available to us: 984 proteins with 2,478 interactions (the talk), and
668 enzymes with 2,782 links (both papers). A user's copy of the enzymes is read from the folder
``enzymes``. Our network, rebuilt from public sources, has 984 proteins
with 2,438 interactions, and expression and localization as features. It lacks the phylogenetic
profiles and two-hybrid data of the papers.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest._utils.arrays import Floats
from okforest.datasets import fetch_yeast_ppi
from okforest.datasets._files import Source
from okforest.datasets._tables import read_edges, read_matrix
from okforest.network.evaluation import Fold, folds_of, hide_links
from okforest.network.graphs import Graph, Positions

# Sets of features, as groups of columns in the data.
FEATURE_SETS = {
    "all": ("spellman", "eisen", "localization"),
    "expression": ("spellman", "eisen"),
    "localization": ("localization",),
}
ENZYME_GROUPS = ("expression", "localization", "phylogenetic")
ENZYME_FEATURES = ("all", "expression", "localization", "phylogenetic profiles")
ENZYME_SETS = {
    "all": ENZYME_GROUPS,
    **{name: (name.split()[0],) for name in ENZYME_FEATURES[1:]},
}
ENZYMES = Source(
    folder="enzymes",
    title="Yeast enzymes",
    description="668 enzymes, 2,782 links between successive reactions, and 325 features.",
    citation="Yamanishi, Vert and Kanehisa, Bioinformatics 21:i468, 2005.",
    origin=(
        "the authors, converted: expression.csv, localization.csv and phylogenetic.csv have a "
        "header, and the name of an enzyme in the first column; edges.csv has a header, and two "
        "names in every row"
    ),
)


class ProteinNetwork(NamedTuple):
    """Features of proteins and the graph of their interactions."""

    X: Floats
    graph: Graph
    feature_names: list[str]


@cache
def load_yeast() -> Bunch:
    """Return the yeast proteins, read once."""
    return fetch_yeast_ppi()


def has_enzymes() -> bool:
    """Return whether there is a folder with a copy of the enzyme network."""
    return (Path(os.environ.get("OKFOREST_DATA", "")).absolute() / ENZYMES.folder).is_dir()


@ENZYMES.loader
def load_enzymes() -> Bunch:
    """Return the enzymes, in the form of the yeast proteins."""
    tables = [
        read_matrix(ENZYMES.open(f"{group}.csv", f"{group}.csv.gz")) for group in ENZYME_GROUPS
    ]
    names = tables[0].row_names
    for group, table in zip(ENZYME_GROUPS, tables, strict=True):
        if table.row_names.tolist() != names.tolist():
            raise ValueError(f"{group}.csv has other names of rows than {ENZYME_GROUPS[0]}.csv")
    ends = np.cumsum([table.values.shape[1] for table in tables]).tolist()
    slices = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    return Bunch(
        data=np.hstack([table.values for table in tables]).astype(np.float32),
        feature_names=[column for table in tables for column in table.column_names],
        feature_groups=dict(zip(ENZYME_GROUPS, slices, strict=True)),
        graph=read_edges(ENZYMES.open("edges.csv", "edges.csv.gz"), names),
        names=names,
    )


@cache
def load_network(features: str = "all", network: str = "proteins") -> ProteinNetwork:
    """Return a network with a set of features."""
    yeast = load_yeast() if network == "proteins" else load_enzymes()
    sets = FEATURE_SETS if network == "proteins" else ENZYME_SETS
    every_column = np.arange(yeast.data.shape[1])
    columns = np.concatenate(
        [every_column[yeast.feature_groups[group]] for group in sets[features]]
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
