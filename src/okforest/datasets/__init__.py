"""Published data sets; readers of files; generators.

Functions named ``load_*`` read files in the folder named by the environment variable
``OKFOREST_DATA``, which cannot be downloaded; an error names their source. Functions named
``fetch_*`` also read that folder, and download the data if there is no such file:
``fetch_usps`` from a published URL, with verified checksums (this needs the extra ``data``), and
``fetch_promoters`` from OpenML by :func:`sklearn.datasets.fetch_openml`.
"""

from okforest.datasets.arff import read_hierarchical_arff, read_multilabel_arff
from okforest.datasets.generators import make_friedman1, make_textures
from okforest.datasets.images import fetch_usps, load_ocr_letters, load_orl_faces
from okforest.datasets.labels import (
    load_hierarchical,
    load_label_ranking,
    load_multilabel,
    read_label_ranking,
)
from okforest.datasets.networks import (
    load_cora,
    load_drug_target,
    load_yeast_kegg150,
    load_yeast_ppi,
)
from okforest.datasets.series import fetch_promoters, load_tecator, load_ucr, read_ucr

__all__ = [
    "fetch_promoters",
    "fetch_usps",
    "load_cora",
    "load_drug_target",
    "load_hierarchical",
    "load_label_ranking",
    "load_multilabel",
    "load_ocr_letters",
    "load_orl_faces",
    "load_tecator",
    "load_ucr",
    "load_yeast_kegg150",
    "load_yeast_ppi",
    "make_friedman1",
    "make_textures",
    "read_hierarchical_arff",
    "read_label_ranking",
    "read_multilabel_arff",
    "read_ucr",
]
