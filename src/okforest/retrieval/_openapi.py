"""What /openapi.json says of bodies, errors, files and the token."""

from dataclasses import dataclass
from typing import Any

from fastapi import Security
from fastapi.security import HTTPBearer
from pydantic import TypeAdapter

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
UPLOAD = (400, 408, 413, 415, 422)
NEEDS_TOKEN = [
    Security(HTTPBearer(auto_error=False, scheme_name="token", description="Secret for changes."))
]


@dataclass
class Problem:
    """Why a request is refused."""

    detail: str


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe refusals with these statuses; any request may meet a busy server."""
    return {
        status: {"model": Problem, "description": REASONS[status]}
        for status in sorted({*statuses, 422, 503})
    }


def file(media_type: str) -> dict[int | str, dict[str, Any]]:
    """Describe an answer that is a file of a type."""
    return {200: {"content": {media_type: {"schema": {"type": "string", "format": "binary"}}}}}


def _body(media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}


def json_body(kind: type[Any]) -> dict[str, Any]:
    """Describe a JSON body that the server parses itself."""
    return _body("application/json", TypeAdapter(kind).json_schema())


# The format is found by the content, whatever the type in the request.
PICTURE_BODY = _body("application/octet-stream", {"type": "string", "format": "binary"})
