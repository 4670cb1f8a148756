"""Image search on randomised trees: an index of subwindows; ``web`` has its server and client."""

from okforest.retrieval.changes import Added
from okforest.retrieval.decoder import PictureError
from okforest.retrieval.evaluation import RetrievalQuality
from okforest.retrieval.federation import FederatedIndex
from okforest.retrieval.index import SubwindowIndex
from okforest.retrieval.postings import Explanation
from okforest.retrieval.reader import IndexChangedError
from okforest.retrieval.segment import Hit
from okforest.retrieval.store import IndexBusyError
from okforest.retrieval.vocabulary import Vocabulary

__all__ = [
    "Added",
    "Explanation",
    "FederatedIndex",
    "Hit",
    "IndexBusyError",
    "IndexChangedError",
    "PictureError",
    "RetrievalQuality",
    "SubwindowIndex",
    "Vocabulary",
]
