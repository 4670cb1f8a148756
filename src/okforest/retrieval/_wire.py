"""What servers and clients send each other about hits and leaves.

Scores travel as JSON numbers in Python's shortest form, which is read back to the same bits.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

Number = Annotated[int, Field(ge=0, lt=2**32)]
Size = Annotated[int, Field(ge=0, lt=2**53)]


@dataclass
class WireHit:
    """An image that a search has found."""

    id: int
    name: str
    label: str
    score: float
    height: int
    width: int


@dataclass
class WireHits:
    """Answer to a search."""

    hits: list[WireHit]
    milliseconds: float
    query_height: int
    query_width: int


@dataclass
class WireMatch:
    """A subwindow of the query, [row, column, side], one of the hit, and what they add."""

    query: list[int]
    hit: list[int]
    weight: float


@dataclass
class WireExplanation:
    """Answer to the question why an image is a hit."""

    score: float
    matches: list[WireMatch]
    milliseconds: float


@dataclass
class WireInfo:
    """What the index of a server holds."""

    images: int
    labels: list[str]
    subwindows: int
    trees: int
    leaves: int
    vocabulary: str
    generation: int
    writable: bool
    max_bytes: int
    max_pixels: int
    version: str


@dataclass
class WireLeaves:
    """Leaves of a query, ascending, on the vocabulary with this key."""

    vocabulary: str
    leaves: list[Number]


@dataclass
class WireSizes:
    """Number of subwindows in each leaf, and the state of the index."""

    sizes: list[Size]
    generation: int


@dataclass
class WireWords:
    """Leaves of a query, how often each is reached, and their sizes in all indexes together."""

    vocabulary: str
    leaves: list[Number]
    times: list[Number]
    sizes: list[Size]
    generation: int
    top: Annotated[int, Field(ge=1, le=10_000)]
    labels: list[str] | None
    random_state: Annotated[int, Field(ge=0, lt=2**63)]


@dataclass
class WireAdded:
    """What became of an image that was to be added."""

    added: int
    replaced: int
    unchanged: int


@dataclass
class WireRemoved:
    """Number of images that were removed."""

    removed: int
