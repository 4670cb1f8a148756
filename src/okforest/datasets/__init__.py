"""Published data sets, read from a local folder or downloaded; readers of files; generators.

Files are searched in the folder named by the environment variable ``OKFOREST_DATA``, then in the
download cache. Those with a published URL are downloaded and their checksums verified
(this needs the extra ``data``). For the others, an error names the source.
"""

from okforest.datasets.files import (
    read_hierarchical_arff,
    read_label_ranking,
    read_multilabel_arff,
    read_ucr,
)
from okforest.datasets.generators import make_friedman1, make_textures
from okforest.datasets.images import fetch_ocr_letters, fetch_orl_faces, fetch_usps
from okforest.datasets.labels import fetch_hierarchical, fetch_label_ranking, fetch_multilabel
from okforest.datasets.networks import (
    fetch_cora,
    fetch_drug_target,
    fetch_yeast_kegg150,
    fetch_yeast_ppi,
)
from okforest.datasets.series import fetch_promoters, fetch_tecator, fetch_ucr

__all__ = [
    "fetch_cora",
    "fetch_drug_target",
    "fetch_hierarchical",
    "fetch_label_ranking",
    "fetch_multilabel",
    "fetch_ocr_letters",
    "fetch_orl_faces",
    "fetch_promoters",
    "fetch_tecator",
    "fetch_ucr",
    "fetch_usps",
    "fetch_yeast_kegg150",
    "fetch_yeast_ppi",
    "make_friedman1",
    "make_textures",
    "read_hierarchical_arff",
    "read_label_ranking",
    "read_multilabel_arff",
    "read_ucr",
]
