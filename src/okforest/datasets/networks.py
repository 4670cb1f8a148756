"""Networks: proteins, drugs and targets, citations."""

from importlib import import_module
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest.datasets._files import Source
from okforest.datasets._tables import Names, read_links, read_rows, read_table, undirected

YEAST_PPI = Source(
    folder="yeast_ppi",
    title="Yeast protein–protein interactions",
    description=(
        "The 2,438 high-confidence interactions of 984 yeast proteins, restricted to those that "
        "Spellman et al. measured, as in Kato, Tsuda and Asai (Bioinformatics 21:2488, 2005): a "
        "reconstruction from public sources, not the authors' file. Features: 77 log-ratios of "
        "expression over the cell cycle (Spellman), with missing values; 79 log-ratios (Eisen), "
        "missing for 330 proteins; whether the protein was seen, and 23 places in the cell (zeros "
        "in all of them are unknown)."
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
        "150 of the 769 proteins of the publication, 168 links between proteins of successive "
        "steps of a pathway, and a positive definite kernel from expression, interactions, "
        "localization and phylogenetic profiles."
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
        "drugs, 90 interactions) and G-protein coupled receptors (95, 223, 635). The drugs' "
        "similarities are slightly asymmetric as published, and symmetrised here; those of gpcr "
        "then have a smallest eigenvalue of -0.011."
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
        "2,708 papers of 7 subjects, 5,429 citations (5,278 different links without direction) and "
        "1,433 words that papers have or not."
    ),
    citation="McCallum et al., 2000; Sen et al., AI Magazine 29(3), 2008.",
    origin=(
        "the archive of Shchur et al. (2018), converted: cora.npz has source, target, attr_indptr, "
        "attr_indices, n_attributes, labels"
    ),
    terms="MIT (the archive).",
)


@YEAST_PPI.loader
def fetch_yeast_ppi(as_frame: bool = False) -> Bunch:
    """Load yeast protein–protein interactions, with features of the proteins.

    Parameters
    ----------
    as_frame : bool, default=False
        Whether ``data`` is a pandas DataFrame, with names of proteins as index.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (984, 180), float32, NaN where missing; ``feature_names``;
        ``feature_groups``, the columns of "spellman", "eisen" and "localization", as slices;
        ``graph``, the adjacency matrix; ``names``, those of the proteins; ``mips_class``, a letter
        for each, "" if unknown; ``DESCR``.
    """
    _, nodes = read_rows(YEAST_PPI.open("nodes.csv.gz"))
    names = np.array([node[0] for node in nodes])
    tables = [read_table(YEAST_PPI.open(file)) for file in YEAST_FEATURES.values()]
    _check_same(names, *(table.rows for table in tables))
    ends = np.cumsum([table.values.shape[1] for table in tables]).tolist()
    groups = {
        name: slice(begin, end)
        for name, begin, end in zip(YEAST_FEATURES, [0, *ends], ends, strict=False)
    }
    feature_names = [
        f"{group}: {column}"
        for group, table in zip(YEAST_FEATURES, tables, strict=True)
        for column in table.columns
    ]
    data = np.hstack([table.values for table in tables]).astype(np.float32)
    return Bunch(
        data=_frame(data, names, feature_names) if as_frame else data,
        feature_names=feature_names,
        feature_groups=groups,
        graph=read_links(YEAST_PPI.open("edges.csv.gz"), names),
        names=names,
        mips_class=np.array([node[1] for node in nodes]),
        DESCR=YEAST_PPI.text,
    )


@YEAST_KEGG150.loader
def fetch_yeast_kegg150() -> Bunch:
    """Load a part of the yeast pathway network, with a kernel on the proteins.

    Returns
    -------
    bunch : Bunch
        ``graph``, the adjacency matrix; ``kernel`` of shape (150, 150), a Gram matrix of the
        proteins as inputs; ``names``; ``DESCR``.
    """
    adjacency = read_table(YEAST_KEGG150.open("adjacency.csv.gz"))
    kernel = read_table(YEAST_KEGG150.open("kernel.csv.gz"))
    _check_same(adjacency.columns, adjacency.rows, kernel.rows, kernel.columns)
    return Bunch(
        graph=sp.csr_array(adjacency.values),
        kernel=kernel.values,
        names=adjacency.rows,
        DESCR=YEAST_KEGG150.text,
    )


@DRUG_TARGET.loader
def fetch_drug_target(name: Literal["nr", "gpcr"] = "nr") -> Bunch:
    """Load interactions of drugs and target proteins.

    Parameters
    ----------
    name : {"nr", "gpcr"}, default="nr"
        Nuclear receptors, or G-protein coupled receptors.

    Returns
    -------
    bunch : Bunch
        ``interactions`` of shape (n_targets, n_drugs), 0 or 1; ``drug_similarity`` and
        ``target_similarity``, symmetric; ``drug_names``; ``target_names``; ``DESCR``.
    """
    if name not in ("nr", "gpcr"):
        raise ValueError(f"fetch_drug_target got name={name!r}; use 'nr' or 'gpcr'.")
    kinds = ("admat_dgc", "simmat_dc", "simmat_dg")
    links, drugs, targets = (
        read_table(DRUG_TARGET.open(f"{name}_{kind}.txt.gz"), "\t") for kind in kinds
    )
    _check_same(links.columns, drugs.rows, drugs.columns)
    _check_same(links.rows, targets.rows, targets.columns)
    return Bunch(
        interactions=links.values.astype(np.int64),
        drug_similarity=(drugs.values + drugs.values.T) / 2,
        target_similarity=(targets.values + targets.values.T) / 2,
        drug_names=links.columns,
        target_names=links.rows,
        DESCR=DRUG_TARGET.text,
    )


@CORA.loader
def fetch_cora() -> Bunch:
    """Load the Cora citation graph.

    Returns
    -------
    bunch : Bunch
        ``data``, a csr_array of shape (2708, 1433), 1 where a paper has a word; ``target``, the
        subject, 0 to 6; ``graph``, the adjacency matrix without direction; ``citations`` of shape
        (5429, 2), the papers that cite and are cited; ``DESCR``.
    """
    file = CORA.arrays("cora.npz")
    indices, indptr = file["attr_indices"], file["attr_indptr"]
    shape = (len(indptr) - 1, int(file["n_attributes"]))
    citations = np.column_stack([file["source"], file["target"]]).astype(np.int64)
    labels = file["labels"].astype(np.int64)
    return Bunch(
        data=sp.csr_array((np.ones(len(indices)), indices, indptr), shape=shape),
        target=labels,
        graph=undirected(citations, len(labels)),
        citations=citations,
        DESCR=CORA.text,
    )


def _check_same(first: Names, *others: Names) -> None:
    """Raise a ValueError unless files have the same names in the same order."""
    if not all(np.array_equal(first, other) for other in others):
        raise ValueError(
            "the files of this data set name their rows and columns differently; they must be of "
            "one source."
        )


def _frame(data: Any, names: Names, feature_names: list[str]) -> Any:
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas, which is not installed; pip install pandas"
        ) from error
    return pandas.DataFrame(data, index=names, columns=feature_names)
