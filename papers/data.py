"""The data of the papers: digits in folds, networks of proteins and enzymes, X-ray images.

Digits are the first 100 USPS images of each digit in file order, with raw values. Fold f holds
images 20f to 20f + 19 of each digit. With 200 training images, one fold is for training and four
for testing; with 800, the other way round. The output kernel is exp(−‖y − y'‖² / 2σ²), σ = 7.0711.

The papers' networks are not available to us: 984 proteins with 2,478 interactions (the talk), and
668 enzymes with 2,782 links (both papers). Our network, rebuilt from public sources, has 984
proteins with 2,438 interactions, and expression and localization as features. It lacks the
phylogenetic profiles and two-hybrid data of the papers. A user's copies of the enzymes and of the
X-ray images are read from the folders ``enzymes`` and ``irma``.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import Bunch

from okforest._utils.arrays import Floats
from okforest.datasets import fetch_usps, load_yeast_ppi
from okforest.datasets.sources import Source, read_edges, read_matrix
from okforest.kernels import RBF
from okforest.network.evaluation import Fold, folds_of, hide_links
from okforest.network.graphs import Graph, Positions
from okforest.segments import list_images

SIGMA = 7.0711
KERNEL = RBF(SIGMA)
FOLDS = 5
IMAGES_PER_FOLD = 20
HALF = 128  # pixels

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


class ImageFold(NamedTuple):
    """Upper halves (X) and lower halves (Y) of the training and test images."""

    X: Floats
    Y: Floats
    X_test: Floats
    Y_test: Floats


@cache
def load_usps() -> Bunch:
    """Return the USPS digits, read once."""
    return fetch_usps()


@cache
def load_images() -> Floats:
    """Return 100 images of each digit, of shape (10, 100, 256)."""
    usps = load_usps()
    chosen = []
    for digit in range(10):
        found = usps.data[(usps.target == digit) & (usps.split == "train")]
        if len(found) < 100:
            raise ValueError(
                f"{usps.files[0]} has {len(found)} training images of the digit {digit}; the "
                "experiment needs 100. Download the published file again."
            )
        chosen.append(found[:100])
    return np.array(chosen)


def fold_positions(n_train: int, fold: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the positions of training and test images among the 100 images of each digit."""
    is_train = np.arange(100) // IMAGES_PER_FOLD == fold
    if n_train == 800:
        is_train = ~is_train
    return np.flatnonzero(is_train), np.flatnonzero(~is_train)


def image_fold(n_train: int, fold: int) -> ImageFold:
    """Return the halves of the images of a fold, sorted by digit and then in file order."""
    train, test = (
        load_images()[:, positions].reshape(-1, 2 * HALF)
        for positions in fold_positions(n_train, fold)
    )
    return ImageFold(train[:, :HALF], train[:, HALF:], test[:, :HALF], test[:, HALF:])


def inner_folds(n_train: int) -> PredefinedSplit:
    """Return five folds of the training images, in blocks as the outer ones."""
    blocks = np.repeat(np.arange(FOLDS), n_train // (10 * FOLDS))
    return PredefinedSplit(np.tile(blocks, 10))


class ProteinNetwork(NamedTuple):
    """Features of proteins and the graph of their interactions."""

    X: Floats
    graph: Graph
    feature_names: list[str]


@cache
def load_yeast() -> Bunch:
    """Return the yeast proteins, read once."""
    return load_yeast_ppi()


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


def load_irma() -> Bunch:
    """Return the files and classes of the training and the test images."""
    folder = Path(os.environ.get("OKFOREST_DATA", "")) / "irma"
    parts = [folder / part for part in ("train", "test")]
    if "OKFOREST_DATA" not in os.environ or not all(part.is_dir() for part in parts):
        raise FileNotFoundError(
            "there are no folders irma/train and irma/test in the folder named by the environment "
            f"variable OKFOREST_DATA ({os.environ.get('OKFOREST_DATA', 'which is not set')}). The "
            "images of ImageCLEFmed are not available to us. Put your copy there, each image in a "
            "folder named by its class, as in irma/train/CLASS/IMAGE.png."
        )
    train, test = (list_images(part) for part in parts)
    return Bunch(
        train=train.paths,
        target=train.target,
        test=test.paths,
        test_target=test.target,
        files=[Path(path) for path in (*train.paths, *test.paths)],
    )
