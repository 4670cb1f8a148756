"""Networks: protein interactions, drug–target interactions, citations."""

from importlib import import_module
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest.datasets.sources import (
    Names,
    Source,
    make_adjacency,
    read_edges,
    read_matrix,
    read_rows,
)

YEAST_PPI = Source(
    folder="yeast_ppi",
    title="Yeast protein–protein interactions",
    description=(
        "2,438 high-confidence interactions of 984 yeast proteins, restricted to those measured by "
        "Spellman et al., as in Kato, Tsuda and Asai (Bioinformatics 21:2488, 2005); rebuilt from "
        "public sources, not the authors' file. Features: 77 expression log-ratios over the cell "
        "cycle (Spellman), with missing values; 79 log-ratios (Eisen), missing for 330 proteins; "
        "whether the protein was visualised, and 23 locations in the cell (unknown if all are "
        "zero)."
    ),
    citation=(
        "von Mering et al., Nature 417:399, 2002 (interactions); Spellman et al., Mol. Biol. Cell "
        "9:3273, 1998; Eisen et al., PNAS 95:14863, 1998; Huh et al., Nature 425:686, 2003."
    ),
    origin=(
        "R package igraphdata (interactions) and the publications' supplements, converted: "
        "nodes.csv.gz, edges.csv.gz, expression_spellman.csv.gz, expression_eisen.csv.gz, "
        "localization.csv.gz"
    ),
    terms="igraphdata: CC BY-SA 4.0. Others not stated; use for research and cite.",
)
YEAST_FEATURES = {
    "spellman": "expression_spellman.csv.gz",
    "eisen": "expression_eisen.csv.gz",
    "localization": "localization.csv.gz",
}
YEAST_KEGG150 = Source(
    folder="yeast_kegg150",
    title="Part of the yeast pathway network",
    description=(
        "150 of the 769 proteins of the publication, 168 links between proteins in successive "
        "steps of a pathway, and a positive definite kernel computed from expression, "
        "interactions, localization and phylogenetic profiles."
    ),
    citation="Yamanishi, Vert and Kanehisa, Bioinformatics 20:i363, 2004.",
    origin="R package xnet, converted: adjacency.csv.gz, kernel.csv.gz",
    terms="GPL-3 (xnet).",
)
DRUG_TARGET = Source(
    folder="drug_target",
    title="Drug–target interactions",
    description=(
        "Interactions of drugs and target proteins, chemical similarities of drugs (SIMCOMP) and "
        "normalised Smith–Waterman similarities of targets: nuclear receptors (26 targets, 54 "
        "drugs, 90 interactions) and G-protein coupled receptors (95, 223, 635). The published "
        "drug similarities are slightly asymmetric and are symmetrised here; the smallest "
        "eigenvalue for gpcr is then -0.011."
    ),
    citation="Yamanishi et al., Bioinformatics 24:i232, 2008.",
    origin=(
        "http://web.kuicr.kyoto-u.ac.jp/supp/yoshi/drugtarget/, compressed by gzip: "
        "{nr,gpcr}_admat_dgc.txt.gz, _simmat_dc.txt.gz, _simmat_dg.txt.gz"
    ),
    terms="Not stated; academic use.",
)
CORA = Source(
    folder="cora",
    title="Cora citations",
    description=(
        "2,708 papers in 7 subjects, 5,429 citations (5,278 distinct undirected links), and the "
        "presence of 1,433 words in each paper."
    ),
    citation="McCallum et al., 2000; Sen et al., AI Magazine 29(3), 2008.",
    origin=(
        "the archive of Shchur et al. (2018), converted: cora.npz contains source, target, "
        "attr_indptr, attr_indices, n_attributes, labels"
    ),
    terms="MIT (the archive).",
)


@YEAST_PPI.loader
def load_yeast_ppi(as_frame: bool = False) -> Bunch:
    """Load yeast protein–protein interactions and features of the proteins.

    Parameters
    ----------
    as_frame : bool, default=False
        Whether to return ``data`` as a pandas DataFrame indexed by the protein names.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (984, 180), float32, with NaN for missing values; ``feature_names``;
        ``feature_groups``, the columns of "spellman", "eisen" and "localization" as slices;
        ``graph``, the adjacency matrix; ``names`` of the proteins; ``mips_class``, the functional
        class of each protein as a letter, "" if unknown; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_yeast_ppi
    >>> yeast = load_yeast_ppi()
    >>> yeast.data.shape, yeast.graph.shape, list(yeast.feature_groups)
    ((984, 180), (984, 984), ['spellman', 'eisen', 'localization'])
    """
    _, nodes = read_rows(YEAST_PPI.open("nodes.csv.gz"))
    names = np.array([node[0] for node in nodes])
    tables = [read_matrix(YEAST_PPI.open(file)) for file in YEAST_FEATURES.values()]
    _check_same(names, *(table.row_names for table in tables))
    ends = np.cumsum([table.values.shape[1] for table in tables]).tolist()
    groups = {
        name: slice(begin, end)
        for name, begin, end in zip(YEAST_FEATURES, [0, *ends], ends, strict=False)
    }
    feature_names = [
        f"{group}: {column}"
        for group, table in zip(YEAST_FEATURES, tables, strict=True)
        for column in table.column_names
    ]
    data = np.hstack([table.values for table in tables]).astype(np.float32)
    return Bunch(
        data=_frame(data, names, feature_names) if as_frame else data,
        feature_names=feature_names,
        feature_groups=groups,
        graph=read_edges(YEAST_PPI.open("edges.csv.gz"), names),
        names=names,
        mips_class=np.array([node[1] for node in nodes]),
        DESCR=YEAST_PPI.text,
    )


@YEAST_KEGG150.loader
def load_yeast_kegg150() -> Bunch:
    """Load a part of the yeast pathway network and a kernel on the proteins.

    Returns
    -------
    bunch : Bunch
        ``graph``, the adjacency matrix; ``kernel`` of shape (150, 150), a Gram matrix of the
        proteins as inputs; ``names``; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_yeast_kegg150
    >>> yeast = load_yeast_kegg150()
    >>> yeast.graph.shape, yeast.kernel.shape
    ((150, 150), (150, 150))
    """
    adjacency = read_matrix(YEAST_KEGG150.open("adjacency.csv.gz"))
    kernel = read_matrix(YEAST_KEGG150.open("kernel.csv.gz"))
    _check_same(adjacency.column_names, adjacency.row_names, kernel.row_names, kernel.column_names)
    return Bunch(
        graph=sp.csr_array(adjacency.values),
        kernel=kernel.values,
        names=adjacency.row_names,
        DESCR=YEAST_KEGG150.text,
    )


@DRUG_TARGET.loader
def load_drug_target(name: Literal["nr", "gpcr"] = "nr") -> Bunch:
    """Load drug–target interactions.

    Parameters
    ----------
    name : {"nr", "gpcr"}, default="nr"
        Nuclear receptors, or G-protein coupled receptors.

    Returns
    -------
    bunch : Bunch
        ``interactions`` of shape (n_targets, n_drugs), 0 or 1; ``drug_similarity`` and
        ``target_similarity``, symmetric; ``drug_names``; ``target_names``; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_drug_target
    >>> load_drug_target("nr").interactions.shape
    (26, 54)
    """
    if name not in ("nr", "gpcr"):
        raise ValueError(f"name={name!r} is unknown; use 'nr' or 'gpcr'.")
    kinds = ("admat_dgc", "simmat_dc", "simmat_dg")
    links, drugs, targets = (
        read_matrix(DRUG_TARGET.open(f"{name}_{kind}.txt.gz"), "\t") for kind in kinds
    )
    _check_same(links.column_names, drugs.row_names, drugs.column_names)
    _check_same(links.row_names, targets.row_names, targets.column_names)
    return Bunch(
        interactions=links.values.astype(np.int64),
        drug_similarity=(drugs.values + drugs.values.T) / 2,
        target_similarity=(targets.values + targets.values.T) / 2,
        drug_names=links.column_names,
        target_names=links.row_names,
        DESCR=DRUG_TARGET.text,
    )


@CORA.loader
def load_cora() -> Bunch:
    """Load the Cora citation graph.

    Returns
    -------
    bunch : Bunch
        ``data``, a csr_array of shape (2708, 1433), 1 if a paper contains a word; ``target``, the
        subject, from 0 to 6; ``graph``, the undirected adjacency matrix; ``citations`` of shape
        (5429, 2), positions of the citing and the cited paper; ``DESCR``.

    Examples
    --------
    >>> from okforest.datasets import load_cora
    >>> cora = load_cora()
    >>> cora.data.shape, cora.graph.shape
    ((2708, 1433), (2708, 2708))
    """
    file = CORA.arrays("cora.npz")
    indices, indptr = file["attr_indices"], file["attr_indptr"]
    shape = (len(indptr) - 1, int(file["n_attributes"]))
    citations = np.column_stack([file["source"], file["target"]]).astype(np.int64)
    labels = file["labels"].astype(np.int64)
    return Bunch(
        data=sp.csr_array((np.ones(len(indices)), indices, indptr), shape=shape),
        target=labels,
        graph=make_adjacency(citations, len(labels)),
        citations=citations,
        DESCR=CORA.text,
    )


def _check_same(first: Names, *others: Names) -> None:
    """Raise a ValueError unless all files have the same names in the same order."""
    if not all(np.array_equal(first, other) for other in others):
        raise ValueError(
            "the names of rows and columns differ between the files; use files from one source."
        )


def _frame(data: Any, names: Names, feature_names: list[str]) -> Any:
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas, which is not installed: pip install pandas"
        ) from error
    return pandas.DataFrame(data, index=names, columns=feature_names)
