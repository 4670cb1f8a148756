"""Protection of a server: its settings, bounded bodies, a bounded queue, a token, headers."""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

from fastapi import HTTPException, Request
from fastapi.security.utils import get_authorization_scheme_param
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect

from okforest.retrieval.decoder import Decoder
from okforest.retrieval.pictures import FORMATS, Limits

log = logging.getLogger("okforest.retrieval.web")
T = TypeVar("T")

MAX_JSON_BYTES = 4 * 2**20  # leaves, how often each is reached, and their sizes
MAX_DISCARDED_BYTES = 2**26  # a larger body that is refused is not read: the connection ends
SMALL_FRACTION = 1 / 64  # bodies of this part of the largest are read when memory is short

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class ServerSettings:
    """Limits of a server.

    Parameters
    ----------
    token : str, optional
        Secret that requests which change the index must present; without one, none may change it.
    max_bytes : int, default=20 MiB
        Bytes of an uploaded picture.
    max_body_bytes : int, default=256 MiB
        Bytes of all uploads that are held in memory at the same time; more are refused with 503.
        Uploads of up to 1/64 of ``max_bytes`` are read nevertheless.
    max_pixels : int, default=25_000_000
        Height times width of an uploaded picture: photographs of 24 megapixels are read.
    formats : tuple of str
        Formats of uploaded pictures, recognised by their content: by default BMP, GIF, JPEG, PNG,
        TIFF and WEBP.
    workers : int, default=2
        Requests that are computed at the same time.
        Beside these, one large picture is searched for at a time: of more than a megapixel or a
        megabyte, or a tenth of a second to decode.
    queue : int, default=100
        Requests that may wait, and as many with large pictures; more are refused with status 503.
    seconds : float, default=10.0
        Time of a computation, the wait included; later, the answer is 503.
    upload_seconds : float, default=20.0
        Time that a client has to send its request; later, it is refused with 408.
    hosts : tuple of str
        Host names under which the server is reached; empty for any. It protects servers on a
        local address from pages that resolve their name to it.

    Examples
    --------
    >>> from okforest.retrieval import SubwindowIndex
    >>> from okforest.retrieval.web import ServerSettings, serve
    >>> def serve_small_pictures(folder):
    ...     settings = ServerSettings(max_bytes=2**20, hosts=("127.0.0.1", "localhost"))
    ...     serve(SubwindowIndex(folder), port=8000, settings=settings)
    """

    token: str | None = field(default=None, repr=False)
    max_bytes: int = 20 * 2**20
    max_body_bytes: int = 256 * 2**20
    max_pixels: int = 25_000_000
    formats: tuple[str, ...] = FORMATS
    workers: int = 2
    queue: int = 100
    seconds: float = 10.0
    upload_seconds: float = 20.0
    hosts: tuple[str, ...] = ()

    @property
    def limits(self) -> Limits:
        """The limits of pictures."""
        return Limits(self.max_bytes, self.max_pixels, self.formats)


def refusal(request: Request, status: int, reason: str, **headers: str) -> HTTPException:
    """Log why a request is refused, and return the answer to it."""
    client = request.client.host if request.client else "?"
    # repr: a line of the log is one line, whatever the request holds
    log.warning(
        "%s %r from %s refused (%d): %r", request.method, request.url.path, client, status, reason
    )
    return HTTPException(status, reason, headers=headers or None)


def busy(request: Request, **headers: str) -> HTTPException:
    """Log that a request is refused because there are too many."""
    reason = "the server is busy; try again in a moment"
    return refusal(request, 503, reason, **{"Retry-After": "1"}, **headers)


class Uploads:
    """Reads bodies that are not too large, nor too many, and arrive in time.

    Parameters
    ----------
    settings : ServerSettings
        The limits.
    """

    def __init__(self, settings: ServerSettings):
        self.settings = settings
        self.n_bytes = 0  # all requests together

    @asynccontextmanager
    async def body(self, request: Request, most: int | None = None) -> AsyncIterator[bytes]:
        """Read the body of a request, which must not be empty, nor a form."""
        largest = self.settings.max_bytes
        if request.headers.get("content-type", "").startswith("multipart/"):
            reason = "the body is a form; send the bytes of the picture alone (curl --data-binary)"
            raise refusal(request, 415, reason)
        parts: list[bytes] = []
        try:
            await self._read(request, parts, min(most or largest, largest))
            parts[:] = [b"".join(parts)]
            if not parts[0]:
                reason = "the request has no body; send the bytes of a picture, or JSON"
                raise refusal(request, 400, reason)
            yield parts[0]
        finally:
            self.n_bytes -= sum(map(len, parts))

    async def _read(self, request: Request, parts: list[bytes], most: int) -> None:
        settings, size = self.settings, 0
        limit = f"{most} bytes, the limit of this server ({most / 2**20:.3g} MB)"
        too_large = f"the body is larger than {limit}; send less"
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > max(most, MAX_DISCARDED_BYTES):
            raise refusal(request, 413, too_large, Connection="close")
        if int(length) > most:
            # uvicorn discards the body: many clients read the answer when they have sent all.
            raise refusal(request, 413, too_large)
        try:
            async with asyncio.timeout(settings.upload_seconds):
                async for part in request.stream():
                    parts.append(part)
                    size += len(part)
                    self.n_bytes += len(part)
                    if size > most:
                        raise refusal(request, 413, too_large, Connection="close")
                    # Large uploads that take their time must not keep small ones out.
                    if self.n_bytes > settings.max_body_bytes and size > most * SMALL_FRACTION:
                        raise busy(request, Connection="close")
        except TimeoutError:
            reason = f"the upload took more than {settings.upload_seconds:g} seconds"
            raise refusal(request, 408, reason, Connection="close") from None
        except ClientDisconnect:
            raise refusal(request, 400, "the client went away while it sent its request") from None


def check_token(request: Request, settings: ServerSettings) -> None:
    """Refuse a request that changes the index, unless it presents the token.

    Hashes are compared, in a time that does not depend on how much of the token is right.
    """
    if not settings.token:
        reason = "this server is read-only; start it with a token to allow changes"
        raise refusal(request, 403, reason)
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    if scheme.lower() != "bearer":
        token = ""
    digests = [sha256(text.encode()).digest() for text in (token, settings.token)]
    if not hmac.compare_digest(*digests):
        reason = "changes need the header 'Authorization: Bearer TOKEN' with the right token"
        raise refusal(request, 401, reason, **{"WWW-Authenticate": "Bearer"})


class WorkQueue:
    """Runs computations in threads: a few at a time, some wait, and the rest are refused.

    Parameters
    ----------
    settings : ServerSettings
        How many may wait.
    decoders : list of Decoder
        One for each computation at a time.
    """

    def __init__(self, settings: ServerSettings, decoders: list[Decoder]):
        self.settings = settings
        self.idle = list(decoders)
        self.slots = asyncio.Semaphore(len(decoders))
        self.most_taken = len(decoders) + settings.queue
        self.n_taken = 0  # requests that run or wait
        self.tasks: set[asyncio.Task[Any]] = set()

    async def run(self, request: Request, work: Callable[[Decoder], T], until: float) -> T:
        """Return what a function returns, or refuse the request.

        If the client goes away, or time is up, before the function has been called, it is not
        called. Threads cannot be stopped: a late one keeps its slot until it has finished.
        """
        if self.n_taken >= self.most_taken:
            raise busy(request)
        self.n_taken += 1
        called = asyncio.Event()
        task = asyncio.create_task(self._run(work, called))
        gone = asyncio.create_task(_disconnected(request))
        self.tasks.add(task)  # a task without references may be collected
        task.add_done_callback(self._forget)
        try:
            left = until - asyncio.get_running_loop().time()
            await asyncio.wait({task, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if gone.done():
                raise refusal(request, 400, "the client went away before it had its answer")
            reason = f"the answer took more than {self.settings.seconds:g} seconds"
            raise refusal(request, 503, reason, **{"Retry-After": "5"})
        finally:
            gone.cancel()
            if not called.is_set():
                task.cancel()

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.discard(task)
        self.n_taken -= 1
        if not task.cancelled():
            task.exception()  # retrieve it, so that asyncio does not log it if nobody waits

    async def _run(self, work: Callable[[Decoder], T], called: asyncio.Event) -> T:
        async with self.slots:
            called.set()
            decoder = self.idle.pop()
            try:
                return await run_in_threadpool(work, decoder)
            finally:
                self.idle.append(decoder)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class SecurityHeaders:
    """Adds headers to every answer.

    Parameters
    ----------
    app : callable
        The application.
    """

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)
