"""Messages between servers and clients: queries, hits and leaves; the description of each.

Scores travel as JSON numbers in Python's shortest form, which is read back to the same bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import from_json

MAX_LEAVES = 2**17  # a request holds at most 13,000 subwindows in ten trees
MAX_HITS = 10_000
MAX_IMAGES_PER_PAGE = 2**17

Count = Annotated[StrictInt, Field(ge=0)]
Number = Annotated[StrictInt, Field(ge=0, lt=2**32)]
Size = Annotated[StrictInt, Field(ge=0, lt=2**53)]
Key = Annotated[StrictInt, Field(ge=0, lt=2**64)]
Finite = Annotated[StrictFloat, Field(allow_inf_nan=False)]
# The first entry that is wrong ends the check of a list: an error takes kilobytes.
Numbers = Annotated[list[Number], Field(max_length=MAX_LEAVES, fail_fast=True)]
Sizes = Annotated[list[Size], Field(max_length=MAX_LEAVES, fail_fast=True)]
Label = Annotated[StrictStr, Field(max_length=200)]
Labels = Annotated[list[Label], Field(max_length=1000, fail_fast=True)]


class PairOptions(BaseModel):
    """Parameters of an explanation."""

    k: int = Field(20, ge=1, le=100, description="Number of hits or pairs, at most.")
    box: str | None = Field(
        None,
        pattern=r"^\d{1,6},\d{1,6},\d{1,6},\d{1,6}$",
        description="Part of the query: left, top, width and height in pixels.",
    )
    n_subwindows: int | None = Field(None, ge=1, le=2000, description="Subwindows of the query.")


class SearchOptions(PairOptions):
    """Parameters of a search."""

    label: list[str] | None = Field(None, max_length=100, description="Only these labels.")
    random_state: int = Field(0, ge=0, lt=2**63, description="Seed that breaks ties.")


@dataclass
class WireImage:
    """An image of the index."""

    id: Count
    name: StrictStr
    label: StrictStr
    height: Count
    width: Count


@dataclass
class WireHit(WireImage):
    """An image that a search has found."""

    score: Finite


@dataclass
class WireImages:
    """Some images of the index."""

    images: Annotated[list[WireImage], Field(max_length=MAX_IMAGES_PER_PAGE, fail_fast=True)]


@dataclass
class WireHits:
    """Answer to a search."""

    hits: Annotated[list[WireHit], Field(max_length=MAX_HITS, fail_fast=True)]
    milliseconds: Finite
    query_height: Count
    query_width: Count


@dataclass
class WireRanked:
    """Answer to the second step of a federated search: hits and the hashes of their names."""

    hits: Annotated[list[WireHit], Field(max_length=MAX_HITS, fail_fast=True)]
    keys: Annotated[list[Key], Field(max_length=MAX_HITS, fail_fast=True)]


@dataclass
class WireMatch:
    """A subwindow of the query, [row, column, side], one of the hit, and what they add."""

    query: Annotated[list[Count], Field(max_length=3)]
    hit: Annotated[list[Count], Field(max_length=3)]
    weight: Finite


@dataclass
class WireExplanation:
    """Answer to the question why an image is a hit."""

    score: Finite
    matches: Annotated[list[WireMatch], Field(fail_fast=True)]
    milliseconds: Finite


@dataclass
class WireInfo:
    """The content of a server's index."""

    images: Count
    labels: Annotated[list[StrictStr], Field(fail_fast=True)]
    subwindows: Count
    trees: Count
    leaves: Count
    vocabulary: StrictStr
    generation: Count
    writable: StrictBool
    max_bytes: Count
    max_pixels: Count
    version: StrictStr


@dataclass
class WireLeaves:
    """Leaves of a query, ascending, on the vocabulary with this key."""

    vocabulary: Label
    leaves: Numbers


@dataclass
class WireSizes:
    """Number of subwindows in each leaf, and the state of the index."""

    sizes: Sizes
    generation: Count


@dataclass
class WireWords:
    """Leaves of a query, how often each is reached, and their sizes in all indexes together."""

    vocabulary: Label
    leaves: Numbers
    times: Numbers
    sizes: Sizes
    generation: Count
    k: Annotated[StrictInt, Field(ge=1, le=MAX_HITS)]
    labels: Labels | None
    random_state: Annotated[StrictInt, Field(ge=0, lt=2**63)]


@dataclass
class WireAdded:
    """The outcome of adding an image."""

    added: Count
    replaced: Count
    unchanged: Count


@dataclass
class WireRemoved:
    """Number of images that were removed."""

    removed: Count


T = TypeVar("T")


def parse(kind: type[T], body: bytes) -> T:
    """Read the JSON of a message, or raise a ValueError that names the wrong part."""
    # In two steps: validate_json copies the whole object for every field that it lacks.
    try:
        content = from_json(body)
    except ValueError as error:
        raise ValueError(f"Invalid JSON: {error}") from None
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        raise ValueError(problem(error.errors(include_input=False, include_url=False)[0])) from None


def problem(error: Mapping[str, Any]) -> str:
    """Describe an error of pydantic, without what was sent."""
    place = ".".join(str(part) for part in error["loc"])[:80]
    problem = "an object is expected" if error["type"] == "dataclass_type" else error["msg"]
    return f"{place or 'the body'}: {problem}"


REASONS = {
    400: "The request has no body, or is for another host name.",
    401: "The token is missing or wrong.",
    403: "The server is read-only.",
    404: "The index has no such image.",
    408: "The upload took too long.",
    409: "The index has changed since its leaves were counted.",
    413: "The body is too large.",
    415: "The body is a form, not the bytes of a picture.",
    422: "A parameter or the picture is wrong; the detail says how.",
    503: "The server is busy; try again after the seconds in Retry-After.",
}


@dataclass
class Problem:
    """Why a request is refused."""

    detail: str


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe refusals with these statuses; any request may meet a busy server."""
    return {
        status: {"model": Problem, "description": REASONS[status]}
        for status in sorted({*statuses, 422, 503})
    }


def file(media_type: str) -> dict[int | str, dict[str, Any]]:
    """Describe an answer that is a file of a type."""
    return {200: {"content": {media_type: {"schema": {"type": "string", "format": "binary"}}}}}


def upload(kind: type[Any] | None, *statuses: int) -> dict[str, Any]:
    """Describe a body that the server reads itself: a message, or a picture of any format."""
    media_type = "application/json" if kind else "application/octet-stream"
    schema = TypeAdapter(kind).json_schema() if kind else {"type": "string", "format": "binary"}
    body = {"required": True, "content": {media_type: {"schema": schema}}}
    return {
        "openapi_extra": {"requestBody": body},
        "responses": refusals(400, 408, 413, 415, *statuses),
    }
