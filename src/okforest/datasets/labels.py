"""Data sets with several labels per object: multi-label, hierarchical, label ranking."""

import csv
import re
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest.datasets.arff import hierarchical_bunch, multilabel_bunch, read_arff
from okforest.datasets.sources import Source, open_text
from okforest.kernels import Spearman

Multilabel = Literal["yeast", "emotions", "bibtex"]
Hierarchical = Literal["cellcycle", "derisi"]
Ranking = Literal[
    "iris", "glass", "wine", "vehicle", "vowel", "stock", "wisconsin", "cold", "heat", "spo"
]

MULTILABEL = Source(
    folder="multilabel",
    title="Multi-label classification",
    description=(
        "yeast: 2,417 genes (the first 1,500 for training), 103 attributes, 14 functions. "
        "emotions: 593 pieces of music, 72 attributes, 6 emotions. bibtex: 4,880 bibliographic "
        "entries for training and 2,515 for testing, 1,836 words, 159 tags."
    ),
    citation=(
        "Elisseeff and Weston, NIPS 2001 (yeast); Trohidis et al., ISMIR 2008 (emotions); Katakis "
        "et al., ECML/PKDD Discovery Challenge 2008 (bibtex)."
    ),
    origin=(
        "the MULAN and MEKA collections, compressed by gzip: yeast.arff.gz (MEKA's, labels first), "
        "emotions.arff.gz, bibtex-train.arff.gz, bibtex-test.arff.gz (labels last)"
    ),
)
HIERARCHICAL = Source(
    folder="hmc",
    title="Functions of yeast genes (FunCat)",
    description=(
        "Genes and their functions in a hierarchy of 499 classes. cellcycle: 77 "
        "attributes, 1,628 + 848 + 1,281 genes for training, validation and testing. derisi: 63 "
        "attributes, 1,608 + 842 + 1,275 genes."
    ),
    citation="Clare, PhD thesis, 2003; Vens et al., Machine Learning 73:185, 2008.",
    origin=(
        "KU Leuven, https://dtai.cs.kuleuven.be/clus/hmcdatasets/, compressed by gzip: "
        "{cellcycle,derisi}_FUN.{train,valid,test}.arff.gz"
    ),
)
RANKING = Source(
    folder="label_ranking",
    title="Label ranking",
    description=(
        "Each object has a ranking of all labels. iris, glass, wine, vehicle, vowel, stock and "
        "wisconsin are semi-synthetic; cold, heat and spo rank the time points of a series of "
        "yeast expression by level, highest first."
    ),
    citation=(
        "Cheng, Hühn and Hüllermeier, ICML 2009; Hüllermeier et al., Artificial Intelligence "
        "172:1897, 2008 (cold, heat, spo)."
    ),
    origin=(
        "the authors' collection, converted: name.csv.gz, without a header; the attributes are "
        "followed by the ranking, such as L3>L1>L2, most preferred first"
    ),
)


@MULTILABEL.loader
def load_multilabel(name: Multilabel) -> Bunch:
    """Load a multi-label data set.

    ``sklearn.datasets.fetch_openml("yeast", version=4)`` downloads yeast from OpenML.

    Parameters
    ----------
    name : {"yeast", "emotions", "bibtex"}
        Name of the data set.

    Returns
    -------
    bunch : Bunch
        ``data``, an array (a csr_array for bibtex); ``target`` of shape (n, n_labels), 0 or 1;
        ``feature_names``; ``target_names``; ``split``, "train" or "test", if there is a published
        split; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_multilabel
    >>> emotions = load_multilabel("emotions")
    >>> emotions.data.shape, emotions.target.shape
    ((593, 72), (593, 6))
    """
    _check_name(name, Multilabel)
    files = [f"{name}-train.arff.gz", f"{name}-test.arff.gz"]
    if name != "bibtex":
        files = [f"{name}.arff.gz"]
    n_labels = {"yeast": 14, "emotions": -6, "bibtex": -159}[name]
    parts = []
    for file_name in files:
        with MULTILABEL.open(file_name) as file:
            parts.append(multilabel_bunch(read_arff(file), n_labels))
    bunch = Bunch(**parts[0])
    lengths = [part.data.shape[0] for part in parts]
    if name == "yeast":
        n_train = min(1500, lengths[0])
        lengths = [n_train, lengths[0] - n_train]
    if name == "bibtex":
        bunch.data = sp.csr_array(sp.vstack([part.data for part in parts]))
        bunch.target = np.concatenate([part.target for part in parts])
    bunch.DESCR = MULTILABEL.text
    if name != "emotions":
        bunch.split = np.repeat(["train", "test"], lengths)
    return bunch


@HIERARCHICAL.loader
def load_hierarchical(name: Hierarchical) -> Bunch:
    """Load a hierarchical multi-label classification data set.

    Parameters
    ----------
    name : {"cellcycle", "derisi"}
        Name of the data set.

    Returns
    -------
    bunch : Bunch
        ``data``, with NaN for missing values; ``target`` of shape (n, n_classes), 1 for the classes
        of a gene and their ancestors; ``target_names``, such as "01/01/03"; ``parents`` of shape
        (n_classes,), the position of the parent class, or -1; ``labels``, the most specific classes
        as in the file, such as "01/01/03@10/03"; ``split``, "train", "valid" or "test";
        ``feature_names``; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_hierarchical
    >>> genes = load_hierarchical("derisi")
    >>> genes.data.shape, genes.target.shape
    ((3725, 63), (3725, 499))
    >>> genes.labels[0]
    np.str_('01/05/06/07@01/07/01@02/16/13@02/45@42/01')
    """
    _check_name(name, Hierarchical)
    splits = ("train", "valid", "test")
    parts = []
    for split in splits:
        with HIERARCHICAL.open(f"{name}_FUN.{split}.arff.gz") as file:
            parts.append(read_arff(file))
    bunch = hierarchical_bunch(parts)
    bunch.split = np.repeat(splits, [len(part.values) for part in parts])
    bunch.DESCR = HIERARCHICAL.text
    return bunch


@RANKING.loader
def load_label_ranking(name: Ranking) -> Bunch:
    """Load a label ranking data set.

    Parameters
    ----------
    name : str
        "iris", "glass", "wine", "vehicle", "vowel", "stock", "wisconsin", "cold", "heat" or "spo".

    Returns
    -------
    bunch : Bunch
        ``data``; ``target`` of shape (n, n_labels), the rank of each label, 1 for the most
        preferred; ``target_names``; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_label_ranking
    >>> load_label_ranking("iris").target[:2]
    array([[1, 2, 3],
           [1, 2, 3]])
    """
    _check_name(name, Ranking)
    with RANKING.open(f"{name}.csv.gz") as file:
        return ranking_bunch(file, RANKING.text)


def read_label_ranking(path: str | PathLike[str]) -> Bunch:
    r"""Read a label ranking data set: attributes, then the ranking, such as ``L3>L1>L2``.

    Parameters
    ----------
    path : path-like
        A file of comma-separated values, which may be compressed by gzip (``.gz``). The last cell
        of a row is its ranking, most preferred first; ``=`` ties labels, and labels may be left
        out. Attributes are numbers, or ``?`` for a missing value. A header is recognised by cells
        that are not numbers, and its last one, which has no ``>``.

    Returns
    -------
    bunch : Bunch
        ``data``; ``target`` of shape (n, n_labels), the rank of each label, 1 for the most
        preferred, NaN for labels without a rank; ``target_names``; ``feature_names``, if there is a
        header.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from okforest.datasets import read_label_ranking
    >>> path = Path(mkdtemp()) / "taste.csv"
    >>> _ = path.write_text("0.1,a>b>c\n0.7,c>a>b\n")
    >>> read_label_ranking(path).target
    array([[1, 2, 3],
           [2, 3, 1]])
    """
    with open_text(path) as file:
        return ranking_bunch(file)


def ranking_bunch(file: Iterable[str], description: str | None = None) -> Bunch:
    """Return attributes and rankings of rows of text."""
    rows = [row for row in csv.reader(file) if row]
    header = rows.pop(0) if rows and _is_header(rows[0]) else None
    if not rows:
        raise ValueError("the file is empty.")
    kernel = Spearman()
    rankings = kernel.check([row[-1].strip() for row in rows])
    kernel = kernel.resolve(rankings)
    ranks = kernel.ranks(rankings)
    whole = not np.isnan(ranks).any() and (ranks == np.round(ranks)).all()
    bunch = Bunch(
        data=np.array([[_value(cell, i) for cell in row[:-1]] for i, row in enumerate(rows)]),
        target=ranks.astype(np.int64) if whole else ranks,
        target_names=kernel.labels,
    )
    if header is not None:
        bunch.feature_names = header[:-1]
    if description is not None:
        bunch.DESCR = description
    return bunch


def _is_header(row: Sequence[str]) -> bool:
    """Return whether a row has names: neither a ranking of several labels nor numbers only."""
    if re.search("[>=]", row[-1]):
        return False
    try:
        for cell in row[:-1]:
            _value(cell, 0)
    except ValueError:
        return True
    return False


def _value(cell: str, i: int) -> float:
    if cell.strip() in ("", "?"):
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        raise ValueError(
            f"row {i + 1} has the attribute {cell!r}; attributes are numbers, and '?' is a missing "
            "value. Encode categories as numbers."
        ) from None


def _check_name(name: str, names: object) -> None:
    if name not in get_args(names):
        raise ValueError(f"name={name!r} is unknown; use one of {', '.join(get_args(names))}.")
