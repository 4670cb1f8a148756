"""The pixels of images of an index: from their files, or from their thumbnails."""

from pathlib import Path

import numpy as np

from okforest.retrieval._decoder import Decoder, PictureError
from okforest.retrieval._pictures import Picture, content_hash, read_picture
from okforest.retrieval._store import Snapshot
from okforest.retrieval._table import Row


def read_original(snapshot: Snapshot, row: Row, decoder: Decoder | None = None) -> Picture:
    """Return the pixels that were indexed, or raise a ValueError."""
    if row.file_bytes < 0:
        raise PictureError(
            f"image {row.name!r} was not indexed from a file; pass its pixels, which an index does "
            "not keep."
        )
    picture = read_picture(Path(snapshot.manifest.root) / row.name, name=row.name, decoder=decoder)
    if content_hash(picture) != row.hash:
        raise PictureError(f"the file of image {row.name!r} has changed; add it again.")
    return picture


def read_likeness(snapshot: Snapshot, row: Row, decoder: Decoder | None = None) -> Picture:
    """Return the pixels that were indexed or, without its file, the enlarged thumbnail."""
    try:
        return read_original(snapshot, row, decoder)
    except (OSError, ValueError):
        if not row.thumbnail:
            raise
    small = read_picture(row.thumbnail)
    rows = np.arange(row.height) * small.shape[0] // row.height
    cols = np.arange(row.width) * small.shape[1] // row.width
    return np.ascontiguousarray(small[rows][:, cols])
