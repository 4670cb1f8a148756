"""Image search on randomised trees: an index of subwindows, its store, server and page."""

from okforest.retrieval._changes import Added
from okforest.retrieval._decoder import PictureError
from okforest.retrieval._evaluation import RetrievalQuality
from okforest.retrieval._hits import Hit, IndexChangedError
from okforest.retrieval._matches import Explanation
from okforest.retrieval._settings import ServerSettings
from okforest.retrieval._store import IndexBusyError
from okforest.retrieval.client import RemoteError, RemoteIndex
from okforest.retrieval.federation import FederatedIndex
from okforest.retrieval.index import SubwindowIndex
from okforest.retrieval.vocabulary import Vocabulary

__all__ = [
    "Added",
    "Explanation",
    "FederatedIndex",
    "Hit",
    "IndexBusyError",
    "IndexChangedError",
    "PictureError",
    "RemoteError",
    "RemoteIndex",
    "RetrievalQuality",
    "ServerSettings",
    "SubwindowIndex",
    "Vocabulary",
]
