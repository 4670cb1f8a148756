"""What servers and clients send each other about hits and leaves.

Scores travel as JSON numbers in Python's shortest form, which is read back to the same bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

MOST_LEAVES = 2**17  # of a request: 13,000 subwindows in ten trees

Number = Annotated[int, Field(ge=0, lt=2**32)]
Size = Annotated[int, Field(ge=0, lt=2**53)]
Key = Annotated[int, Field(ge=0, lt=2**64)]
# The first number that is wrong ends the check: every error takes kilobytes.
Numbers = Annotated[list[Number], Field(max_length=MOST_LEAVES, fail_fast=True)]
Sizes = Annotated[list[Size], Field(max_length=MOST_LEAVES, fail_fast=True)]
Label = Annotated[str, Field(max_length=200)]
Labels = Annotated[list[Label], Field(max_length=1000, fail_fast=True)]


@dataclass
class WireImage:
    """An image of the index."""

    id: int
    name: str
    label: str
    height: int
    width: int


@dataclass
class WireHit(WireImage):
    """An image that a search has found."""

    score: Annotated[float, Field(allow_inf_nan=False)]


@dataclass
class WireImages:
    """Some images of the index."""

    images: list[WireImage]


@dataclass
class WireHits:
    """Answer to a search."""

    hits: list[WireHit]
    milliseconds: float
    query_height: int
    query_width: int


@dataclass
class WireRanked:
    """Answer to the second step of a federated search: hits and the hashes of their names."""

    hits: list[WireHit]
    keys: list[Key]


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

    vocabulary: Annotated[str, Field(max_length=200)]
    leaves: Numbers


@dataclass
class WireSizes:
    """Number of subwindows in each leaf, and the state of the index."""

    sizes: list[Size]
    generation: int


@dataclass
class WireWords:
    """Leaves of a query, how often each is reached, and their sizes in all indexes together."""

    vocabulary: Annotated[str, Field(max_length=200)]
    leaves: Numbers
    times: Numbers
    sizes: Sizes
    generation: int
    top: Annotated[int, Field(ge=1, le=10_000)]
    labels: Labels | None
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


T = TypeVar("T")


def parse(kind: type[T], body: bytes) -> T:
    """Read the JSON of a message, or raise a ValueError that says what is wrong with it."""
    try:
        return TypeAdapter(kind).validate_json(body, strict=True)
    except ValidationError as error:
        raise ValueError(problem(error.errors(include_input=False, include_url=False)[0])) from None


def problem(error: Mapping[str, Any]) -> str:
    """Describe an error of pydantic, without what was sent."""
    place = ".".join(str(part) for part in error["loc"])[:80]
    return f"{place or 'the body'}: {error['msg']}"
