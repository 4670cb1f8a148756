"""The answers of a server to requests with pictures or leaves."""

import time
from collections.abc import Callable
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import PurePath
from threading import Lock

import numpy as np

from okforest.retrieval.decoder import Decoder, PictureError
from okforest.retrieval.index import SubwindowIndex
from okforest.retrieval.pictures import Picture, read_picture
from okforest.retrieval.postings import Words
from okforest.retrieval.segment import Hit
from okforest.retrieval.store import Snapshot
from okforest.retrieval.vocabulary import UInt32s
from okforest.retrieval.web import schemas
from okforest.retrieval.web.guards import ServerSettings

MAX_SEGMENTS = 16  # an added picture is a segment: above this number, small ones are merged
MAX_MERGED_IMAGES = 1000  # larger segments are not rewritten


class SearchService:
    """The answers of a server to each request.

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

    def query_picture(self, decoder: Decoder, source: bytes | int, box: str | None) -> Picture:
        """Return the pixels of an upload or of an image of the index, or a part of them."""
        if isinstance(source, bytes):
            picture = read_picture(source, self.settings.limits, decoder=decoder)
        else:
            picture = self._indexed(decoder, source, Snapshot.likeness)
        if box is None:
            return picture
        left, top, width, height = map(int, box.split(","))
        part = picture[top : top + height, left : left + width]
        if min(part.shape[:2]) < 2:
            raise PictureError(f"the part {box} of the query is smaller than 2 × 2 pixels.")
        return np.ascontiguousarray(part)

    def search(
        self, decoder: Decoder, source: bytes | int, options: schemas.SearchOptions
    ) -> schemas.WireHits:
        """Search for an upload, an image of the index, or a part of one."""
        start = time.perf_counter()
        query = self.query_picture(decoder, source, options.box)
        hits = self.index.search(
            query,
            options.k,
            labels=options.label,
            n_subwindows=options.n_subwindows,
            random_state=options.random_state,
        )
        spent = 1e3 * (time.perf_counter() - start)
        return schemas.WireHits([_wire_hit(hit) for hit in hits], spent, *query.shape[:2])

    def explain(
        self, decoder: Decoder, source: bytes | int, hit: int, options: schemas.PairOptions
    ) -> schemas.WireExplanation:
        """Return the pairs of subwindows that the score of a hit is made of."""
        start = time.perf_counter()
        query = self.query_picture(decoder, source, options.box)
        pixels = self._indexed(decoder, hit, Snapshot.original)
        explanation = self.index.explain(
            query, hit, options.k, hit_picture=pixels, n_subwindows=options.n_subwindows
        )
        pairs = zip(
            explanation.query_boxes.tolist(),
            explanation.hit_boxes.tolist(),
            explanation.weights.tolist(),
            strict=True,
        )
        matches = [schemas.WireMatch(*pair) for pair in pairs]
        return schemas.WireExplanation(
            explanation.score, matches, 1e3 * (time.perf_counter() - start)
        )

    def _indexed(self, decoder: Decoder, image: int, read: Callable[..., Picture]) -> Picture:
        """Return the pixels of an image of the index; errors do not reveal where its file is."""
        row = self.index.row(image)
        try:
            return read(self.index.snapshot, row, decoder)
        except (OSError, ValueError) as error:
            name = _shown_name(row.name)
            if row.file_bytes < 0:
                raise PictureError(
                    f"the pixels of {name} are not kept, since it was not indexed from a file; its "
                    "parts cannot be compared."
                ) from None
            raise PictureError(str(error).replace(row.name, name)) from None

    def sizes(self, body: bytes) -> schemas.WireSizes:
        """Return the sizes of leaves."""
        request = schemas.parse(schemas.WireLeaves, body)
        sizes, generation = self.index.leaf_sizes(self._leaves(request))
        return schemas.WireSizes(sizes.tolist(), generation)

    def shard_hits(self, body: bytes) -> schemas.WireRanked:
        """Return the best hits for leaves and their sizes in all indexes."""
        request = schemas.parse(schemas.WireWords, body)
        leaves = self._leaves(request)
        if not len(leaves) == len(request.times) == len(request.sizes):
            raise ValueError("there must be one time and one size for each leaf")
        ranked = self.index.best_hits(
            Words(leaves, np.array(request.times, dtype=np.uint32)),
            np.array(request.sizes, dtype=np.uint64),
            request.k,
            labels=request.labels,
            random_state=request.random_state,
            generation=request.generation,
        )
        return schemas.WireRanked([_wire_hit(hit) for hit in ranked.hits], ranked.keys)

    def _leaves(self, request: schemas.WireLeaves | schemas.WireWords) -> UInt32s:
        vocabulary = self.index.vocabulary
        if request.vocabulary != vocabulary.key:
            raise ValueError("this index has another vocabulary")
        leaves = np.array(request.leaves, dtype=np.int64)
        if (leaves >= vocabulary.n_leaves).any() or (np.diff(leaves) <= 0).any():
            raise ValueError("leaves must ascend, and be leaves of the vocabulary")
        return leaves.astype(np.uint32)

    def add(self, decoder: Decoder, body: bytes, name: str, label: str) -> schemas.WireAdded:
        """Add a picture."""
        picture = read_picture(body, self.settings.limits, decoder=decoder)
        with self.changing:
            added = self.index.add([picture], names=[name], labels=[label])
            if len(self.index.snapshot.segments) > MAX_SEGMENTS:
                self.index.compact(at_most=MAX_MERGED_IMAGES)
        return schemas.WireAdded(added.n_added, added.n_replaced, added.n_unchanged)

    def remove(self, image: int | str) -> schemas.WireRemoved:
        """Remove the image with a number or a name."""
        with self.changing:
            return schemas.WireRemoved(self.index.remove([image]))

    def images(self, k: int) -> schemas.WireImages:
        """Return k images, spread evenly over the index."""
        snapshot = self.index.snapshot
        positions = np.flatnonzero(snapshot.live)
        chosen = np.linspace(0, len(positions) - 1, min(k, len(positions))).astype(np.intp)
        hits = [_wire_hit(snapshot.hit(int(positions[i]), 0.0)) for i in chosen]
        names = [field.name for field in fields(schemas.WireImage)]
        images = [schemas.WireImage(*(getattr(hit, name) for name in names)) for hit in hits]
        return schemas.WireImages(images)

    def info(self) -> schemas.WireInfo:
        """Return what the index holds."""
        info = self.index.info()
        names = ("images", "subwindows", "trees", "leaves", "vocabulary", "generation")
        return schemas.WireInfo(
            **{name: info[name] for name in names},
            labels=self.index.labels,
            writable=bool(self.settings.token),
            max_bytes=self.settings.max_bytes,
            max_pixels=self.settings.max_pixels,
            version=version("okforest"),
        )


def _wire_hit(hit: Hit) -> schemas.WireHit:
    """Return a hit whose name does not reveal paths outside the root folder."""
    values = asdict(hit) | {"name": _shown_name(hit.name)}
    del values["shard"]
    return schemas.WireHit(**values)


def _shown_name(name: str) -> str:
    return PurePath(name).name if PurePath(name).is_absolute() else name
