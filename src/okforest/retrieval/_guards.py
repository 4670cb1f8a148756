"""What protects a server: bounded bodies, a bounded queue, a token, headers, slow clients."""

import asyncio
import hmac
import logging
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.h11_impl import H11Protocol

from okforest.retrieval._settings import ServerSettings

log = logging.getLogger("okforest.retrieval.server")
T = TypeVar("T")

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


async def read_body(request: Request) -> bytes:
    """Return the body of a request, which must not be empty."""
    body = await request.body()
    if not body:
        raise refusal(request, 400, "the request has no body; send the bytes of a picture")
    return body


class BoundedBody:
    """Refuses bodies that are too large, or that take too long to arrive.

    Parameters
    ----------
    app : callable
        The application.
    settings : ServerSettings
        The limits.
    """

    def __init__(self, app: Any, settings: ServerSettings):
        self.app, self.settings = app, settings

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, settings = Request(scope), self.settings
        too_large = (
            f"the upload is larger than {settings.max_bytes} bytes, the limit of this server; send "
            "a smaller picture"
        )
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > settings.max_bytes:
            error = refusal(request, 413, too_large, Connection="close")
            await JSONResponse({"detail": error.detail}, 413, error.headers)(scope, receive, send)
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
            size += len(message.get("body", b""))
            if size > settings.max_bytes:
                raise refusal(request, 413, too_large, Connection="close")
            complete = not message.get("more_body", False)
            return message

        await self.app(scope, bounded, send)


def check_token(request: Request, settings: ServerSettings) -> None:
    """Refuse a request that changes the index, unless it presents the token.

    Hashes are compared, in a time that does not depend on how much of the token is right.
    """
    if not settings.token:
        reason = "this server is read-only; start it with a token to allow changes"
        raise refusal(request, 403, reason)
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
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
            reason = "the server is busy; try again in a moment"
            raise refusal(request, 503, reason, **{"Retry-After": "1"})
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
    """HTTP that closes connections whose first request does not arrive within some seconds."""

    header_seconds = 10.0

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self.loop.call_later(self.header_seconds, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            log.warning("a client sent no request within %g seconds", self.header_seconds)
            self.transport.close()
