"""What a server does for each request: pictures and leaves in, answers out."""

import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import PurePosixPath
from threading import Lock
from typing import Any

import numpy as np

from okforest.retrieval import _wire as wire
from okforest.retrieval._hits import Hit
from okforest.retrieval._pictures import Picture, PictureError, read_picture
from okforest.retrieval._postings import UInt32s
from okforest.retrieval._scoring import Words
from okforest.retrieval._settings import ServerSettings
from okforest.retrieval.index import SubwindowIndex

MOST_SEGMENTS = 16  # every added picture is a segment: small ones are merged beyond this number
SMALL = 1000  # images


class SearchService:
    """What the server does for each request.

    Parameters
    ----------
    index : SubwindowIndex
        The index.
    settings : ServerSettings
        The limits.
    """

    def __init__(self, index: SubwindowIndex, settings: ServerSettings):
        self.index, self.settings = index, settings
        self.changing = Lock()  # changes wait for each other

    def query_picture(self, source: bytes | int, box: str | None) -> Picture:
        """Return the pixels of an upload or of an image of the index, or a part of them."""
        if isinstance(source, bytes):
            picture = read_picture(source, self.settings.limits)
        else:
            picture = self.indexed_picture(source)
        if box is None:
            return picture
        left, top, width, height = map(int, box.split(","))
        part = picture[top : top + height, left : left + width]
        if min(part.shape[:2]) < 2:
            raise PictureError(f"the part {box} of the query is smaller than 2 × 2 pixels.")
        return np.ascontiguousarray(part)

    def indexed_picture(self, image: int) -> Picture:
        """Return an image of the index, from its file or, without it, from its thumbnail."""
        try:
            return self.index.picture(image)
        except ValueError:
            row = self.index.row(image)
            if not row.thumbnail:
                raise PictureError(
                    f"the file of image {image} is missing, and it has no thumbnail."
                ) from None
            small = read_picture(row.thumbnail)
            rows = np.arange(row.height) * small.shape[0] // row.height
            cols = np.arange(row.width) * small.shape[1] // row.width
            return np.ascontiguousarray(small[rows][:, cols])

    def search(
        self,
        source: bytes | int,
        box: str | None,
        top: int,
        labels: list[str] | None,
        n_subwindows: int | None,
        random_state: int,
    ) -> wire.WireHits:
        """Search for an upload, an image of the index, or a part of one."""
        start = time.perf_counter()
        query = self.query_picture(source, box)
        hits = self.index.search(
            query, top, labels=labels, n_subwindows=n_subwindows, random_state=random_state
        )
        spent = 1e3 * (time.perf_counter() - start)
        return wire.WireHits([_wire_hit(hit) for hit in hits], spent, *query.shape[:2])

    def explain(
        self, source: bytes | int, box: str | None, hit: int, top: int, n_subwindows: int | None
    ) -> wire.WireExplanation:
        """Return the pairs of subwindows that the score of a hit is made of."""
        start = time.perf_counter()
        query = self.query_picture(source, box)
        explanation = self.index.explain(query, hit, top, n_subwindows=n_subwindows)
        pairs = zip(
            explanation.query_boxes.tolist(),
            explanation.hit_boxes.tolist(),
            explanation.weights.tolist(),
            strict=True,
        )
        matches = [wire.WireMatch(*pair) for pair in pairs]
        return wire.WireExplanation(explanation.score, matches, 1e3 * (time.perf_counter() - start))

    def sizes(self, leaves: UInt32s) -> wire.WireSizes:
        """Return the sizes of leaves."""
        sizes, generation = self.index.leaf_sizes(leaves)
        return wire.WireSizes(sizes.tolist(), generation)

    def shard_hits(self, body: wire.WireWords, leaves: UInt32s) -> wire.WireHits:
        """Return the best hits for leaves and their sizes in all indexes."""
        start = time.perf_counter()
        hits = self.index.best_hits(
            Words(leaves, np.array(body.times, dtype=np.uint32)),
            np.array(body.sizes, dtype=np.uint64),
            body.top,
            labels=body.labels,
            random_state=body.random_state,
            generation=body.generation,
        )
        spent = 1e3 * (time.perf_counter() - start)
        return wire.WireHits([wire.WireHit(**_plain(hit)) for hit in hits], spent, 0, 0)

    def add(self, body: bytes, name: str, label: str) -> wire.WireAdded:
        """Add a picture."""
        picture = read_picture(body, self.settings.limits)
        with self.changing:
            added = self.index.add([picture], names=[name], labels=[label])
            if len(self.index.snapshot.segments) > MOST_SEGMENTS:
                self.index.compact(at_most=SMALL)
        return wire.WireAdded(added.n_added, added.n_replaced, added.n_unchanged)

    def remove(self, image: int) -> wire.WireRemoved:
        """Remove an image."""
        with self.changing:
            return wire.WireRemoved(self.index.remove([image]))

    def info(self) -> wire.WireInfo:
        """Return what the index holds."""
        info = self.index.info()
        names = ("images", "subwindows", "trees", "leaves", "vocabulary", "generation")
        return wire.WireInfo(
            **{name: info[name] for name in names},
            labels=self.index.labels,
            writable=bool(self.settings.token),
            max_bytes=self.settings.max_bytes,
            max_pixels=self.settings.max_pixels,
            version=version("okforest"),
        )


def _plain(hit: Hit) -> dict[str, Any]:
    values = asdict(hit)
    del values["shard"]
    return values


def _wire_hit(hit: Hit) -> wire.WireHit:
    """Return a hit whose name does not tell where files outside the root folder are."""
    values = _plain(hit)
    if hit.name.startswith("/"):
        values["name"] = PurePosixPath(hit.name).name
    return wire.WireHit(**values)
