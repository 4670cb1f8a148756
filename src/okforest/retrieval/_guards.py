"""What protects a server: bounded bodies, a bounded queue, a token, headers, slow clients."""

import asyncio
import hmac
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from okforest.retrieval._settings import ServerSettings

log = logging.getLogger("okforest.retrieval.server")
T = TypeVar("T")

SIZES_PATH, HITS_PATH = JSON_PATHS = ("/api/shard/sizes", "/api/shard/hits")
MOST_JSON = 4 * 2**20  # bytes: the leaves of a request, how often each is reached, their sizes

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


async def read_body(request: Request) -> bytes:
    """Return the body of a request, which must not be empty, nor a form."""
    if request.headers.get("content-type", "").startswith("multipart/"):
        reason = "the body is a form; send the bytes of the picture alone (curl --data-binary)"
        raise refusal(request, 415, reason)
    try:
        body = await request.body()
    except ClientDisconnect:
        raise refusal(request, 400, "the client went away while it sent its request") from None
    if not body:
        raise refusal(request, 400, "the request has no body; send the bytes of a picture, or JSON")
    return body


class BoundedBody:
    """Refuses bodies that are too large, or too many, or that take too long to arrive.

    Parameters
    ----------
    app : callable
        The application.
    settings : ServerSettings
        The limits.
    """

    def __init__(self, app: Any, settings: ServerSettings):
        self.app, self.settings = app, settings
        self.n_bytes = 0  # of the bodies of all requests

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, settings = Request(scope), self.settings
        path = request.url.path
        most = min(MOST_JSON, settings.max_bytes) if path in JSON_PATHS else settings.max_bytes
        limit = f"{most} bytes, the limit of this server ({most / 2**20:.3g} MB)"
        too_large = f"the body is larger than {limit}; send less"
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > most:
            error = refusal(request, 413, too_large, Connection="close")
            await self._refuse(error, scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + settings.upload_seconds
        size, complete = 0, False

        async def bounded() -> Any:
            nonlocal size, complete
            if complete:  # what follows is the end of the connection
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError as error:
                reason = f"the upload took more than {settings.upload_seconds:g} seconds"
                raise refusal(request, 408, reason, Connection="close") from error
            n_new = len(message.get("body", b""))
            size += n_new
            self.n_bytes += n_new
            if size > most:
                raise refusal(request, 413, too_large, Connection="close")
            if self.n_bytes > max(settings.max_body_bytes, settings.max_bytes):
                raise busy(request, Connection="close")
            complete = not message.get("more_body", False)
            return message

        try:
            await self.app(scope, bounded, send)
        finally:
            self.n_bytes -= size

    async def _refuse(self, error: HTTPException, scope: Any, receive: Any, send: Any) -> None:
        """Answer at once, then discard the body for as long as an upload may take.

        Many clients read the answer after they have sent everything. If the connection were closed
        before, it would be reset, and they would not get the answer.
        """

        async def send_unfinished(message: Any) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "more_body": True}
            await send(message)

        answer = JSONResponse({"detail": error.detail}, error.status_code, error.headers)
        await answer(scope, receive, send_unfinished)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.upload_seconds):
                while (await receive()).get("more_body", False):
                    pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class KnownHosts:
    """Refuses requests for other host names, such as those of pages that resolve to this machine.

    Parameters
    ----------
    app : callable
        The application.
    hosts : sequence of str
        Host names and addresses.
    """

    def __init__(self, app: Any, hosts: Sequence[str]):
        self.app, self.hosts = app, frozenset(hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            request = Request(scope)
            if _host(request.headers.get("host", "")) not in self.hosts:
                error = refusal(request, 400, "this server does not answer for this host name")
                await JSONResponse({"detail": error.detail}, 400)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _host(header: str) -> str:
    """Return the name or address of a Host header, without the port."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def check_token(request: Request, settings: ServerSettings) -> None:
    """Refuse a request that changes the index, unless it presents the token.

    Hashes are compared, in a time that does not depend on how much of the token is right.
    """
    if not settings.token:
        reason = "this server is read-only; start it with a token to allow changes"
        raise refusal(request, 403, reason)
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        given = ""
    digests = [sha256(text.encode()).digest() for text in (given, settings.token)]
    if not hmac.compare_digest(*digests):
        reason = "changes need the header 'Authorization: Bearer TOKEN' with the right token"
        raise refusal(request, 401, reason, **{"WWW-Authenticate": "Bearer"})


class WorkQueue:
    """Runs computations in threads: a few at a time, some wait, and the rest are refused.

    Parameters
    ----------
    settings : ServerSettings
        How many, and for how long.
    """

    def __init__(self, settings: ServerSettings):
        self.settings = settings
        self.n_taken = 0  # computed or waiting
        self.slots = asyncio.Semaphore(settings.workers)
        self.tasks: set[asyncio.Task[Any]] = set()

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """Return what a function returns, or refuse the request with 503."""
        if self.n_taken >= self.settings.workers + self.settings.queue:
            raise busy(request)
        self.n_taken += 1
        task = asyncio.create_task(self._run(work))
        self.tasks.add(task)  # a task that nobody refers to may be collected
        task.add_done_callback(self._forget)
        try:
            # Threads cannot be stopped: one that is late keeps its slot until it has finished.
            return await asyncio.wait_for(asyncio.shield(task), self.settings.seconds)
        except TimeoutError as error:
            reason = f"the answer took more than {self.settings.seconds:g} seconds"
            raise refusal(request, 503, reason, **{"Retry-After": "5"}) from error

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.discard(task)
        self.n_taken -= 1
        if not task.cancelled():
            task.exception()  # of a late task, nobody else asks for it

    async def _run(self, work: Callable[[], T]) -> T:
        async with self.slots:
            return await run_in_threadpool(work)


class SecurityHeaders:
    """Adds headers to every answer.

    Parameters
    ----------
    app : callable
        The application.
    headers : mapping of str to str, optional
        The headers.
    """

    def __init__(self, app: Any, headers: Mapping[str, str] = HEADERS):
        self.app = app
        self.headers = [(k.lower().encode(), v.encode()) for k, v in headers.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self.headers]
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class ImpatientProtocol(H11Protocol):
    """HTTP that ends connections on which a request, or the reading of an answer, takes too long.

    A request must arrive within some seconds of the connection, or of the answer to the one before.
    """

    header_seconds = 10.0
    reading_seconds = 30.0
    silence: asyncio.TimerHandle | None = None
    stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self._wait_for_request()

    def on_response_complete(self) -> None:
        """Start to wait for the next request."""
        super().on_response_complete()
        self._wait_for_request()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop waiting."""
        for timer in (self.silence, self.stall):
            if timer:
                timer.cancel()
        super().connection_lost(error)

    def pause_writing(self) -> None:
        """Start to wait for the client to read."""
        super().pause_writing()
        self.stall = self.loop.call_later(self.reading_seconds, self._end, "does not read")

    def resume_writing(self) -> None:
        """Stop waiting for the client to read."""
        super().resume_writing()
        if self.stall:
            self.stall.cancel()

    def _wait_for_request(self) -> None:
        if self.silence:
            self.silence.cancel()
        self.silence = self.loop.call_later(self.header_seconds, self._end_if_silent)

    def _end_if_silent(self) -> None:
        # While a request is answered, the time for the next one has not begun.
        if self.cycle is None or self.cycle.response_complete:
            self._end(f"sent no request within {self.header_seconds:g} seconds")

    def _end(self, reason: str) -> None:
        log.warning("the connection of a client that %s was closed", reason)
        self.transport.abort()
