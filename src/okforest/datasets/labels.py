"""Data sets with several labels per object: multi-label, hierarchical, label ranking."""

from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest.datasets._arff import read_arff
from okforest.datasets._files import Source
from okforest.datasets.files import hierarchical_bunch, multilabel_bunch, ranking_bunch

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
def fetch_multilabel(name: Multilabel) -> Bunch:
    """Load a multi-label data set.

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
    >>> from okforest.datasets import fetch_multilabel
    >>> emotions = fetch_multilabel("emotions")
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
def fetch_hierarchical(name: Hierarchical) -> Bunch:
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
    >>> from okforest.datasets import fetch_hierarchical
    >>> genes = fetch_hierarchical("derisi")
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
def fetch_label_ranking(name: Ranking) -> Bunch:
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
    >>> from okforest.datasets import fetch_label_ranking
    >>> fetch_label_ranking("iris").target[:2]
    array([[1, 2, 3],
           [1, 2, 3]])
    """
    _check_name(name, Ranking)
    with RANKING.open(f"{name}.csv.gz") as file:
        return ranking_bunch(file, RANKING.text)


def _check_name(name: str, names: object) -> None:
    if name not in get_args(names):
        raise ValueError(f"name={name!r} is unknown; use one of {', '.join(get_args(names))}.")
