"""A server of an index: an interface for programs, and a page for people."""

import asyncio
import errno
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import uvicorn
from fastapi import FastAPI, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.security import HTTPBearer
from starlette.middleware.trustedhost import TrustedHostMiddleware

from okforest.persistence import FileFormatError
from okforest.retrieval.changes import UnknownImageError
from okforest.retrieval.decoder import Decoder, ExpensivePictureError
from okforest.retrieval.index import SubwindowIndex
from okforest.retrieval.reader import IndexChangedError
from okforest.retrieval.store import VOCABULARY, IndexBusyError
from okforest.retrieval.web import schemas
from okforest.retrieval.web.guards import (
    HEADERS,
    MAX_JSON_BYTES,
    SecurityHeaders,
    ServerSettings,
    Uploads,
    WorkQueue,
    check_token,
    log,
    refusal,
)
from okforest.retrieval.web.schemas import file, refusals, upload
from okforest.retrieval.web.service import SearchService
from okforest.segments.images import require_pillow

# Pictures above one of these limits wait for each other, so that they do not hold up small ones.
QUICK_BYTES, QUICK_PIXELS = 2**20, 1_000_000
QUICK_SECONDS, SLOW_SECONDS = 0.1, 5.0  # CPU time to decode a picture

PAGE = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
NAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,200}")
NEEDS_TOKEN = [
    Security(HTTPBearer(auto_error=False, scheme_name="token", description="Secret for changes."))
]
SearchOptions = Annotated[schemas.SearchOptions, Query()]
PairOptions = Annotated[schemas.PairOptions, Query()]

# Answers a request by a function of a decoder, which is run in a thread; a body may follow.
Answer = Callable[..., Awaitable[Any]]


def create_app(index: SubwindowIndex, settings: ServerSettings | None = None) -> FastAPI:
    """Return an application for any ASGI server.

    Parameters
    ----------
    index : SubwindowIndex
        The index.
    settings : ServerSettings, optional
        Limits, and the token for changes.

    Returns
    -------
    app : FastAPI
        The application; ``/openapi.json`` documents its interface.

    Examples
    --------
    >>> from okforest.retrieval import SubwindowIndex
    >>> from okforest.retrieval.web import create_app
    >>> def application(folder):
    ...     return create_app(SubwindowIndex(folder))  # for uvicorn, hypercorn, …
    """
    require_pillow()
    settings = ServerSettings() if settings is None else settings
    service, uploads = SearchService(index, settings), Uploads(settings)
    quick = [Decoder(QUICK_SECONDS, QUICK_PIXELS) for _ in range(settings.workers)]
    slow = [Decoder(SLOW_SECONDS)]

    @asynccontextmanager
    async def decoding(app: FastAPI) -> AsyncIterator[None]:
        for decoder in quick + slow:
            decoder.start()
        yield
        for decoder in quick + slow:
            decoder.close()

    app = FastAPI(
        title="okforest image search",
        description="Search an index of images by parts that look alike.",
        version=version("okforest"),
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=decoding,
    )
    if settings.hosts:
        hosts = [f"[{host}]" if ":" in host else host for host in settings.hosts]
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    app.add_middleware(SecurityHeaders)
    queues = WorkQueue(settings, quick), WorkQueue(settings, slow)
    answer = _answer_by(queues, index, settings.seconds)
    _add_searches(app, service, uploads, answer)
    _add_shard(app, service, uploads, answer)
    _add_changes(app, service, uploads, answer)
    _add_files(app, index)

    @app.exception_handler(Exception)
    async def failure(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %r failed", request.method, request.url.path, exc_info=error)
        # This answer is made outside of the other guards.
        return JSONResponse({"detail": "the server has failed; its log says why"}, 500, HEADERS)

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> JSONResponse:
        refused = refusal(request, 422, schemas.problem(error.errors()[0]))
        return JSONResponse({"detail": refused.detail}, 422)

    return app


class _Refused(NamedTuple):
    """Why a request cannot be answered.

    It is returned, not raised: an error would refer to what was computed with, such as a snapshot
    of the index, and keep it for a while.
    """

    status: int
    reason: str
    retry_after: str = ""


EXPENSIVE = _Refused(
    422, f"the picture takes more than {SLOW_SECONDS:g} seconds to decode; send a smaller one"
)


def _answer_by(queues: tuple[WorkQueue, ...], index: SubwindowIndex, seconds: float) -> Answer:
    """Return a function that runs work on the index as it is now, and answers its errors.

    What is too expensive for one queue goes to the next.
    """

    def attempt(work: Callable[[Decoder], Any], decoder: Decoder) -> Any:
        try:
            index.refresh()
            return work(decoder)
        except ExpensivePictureError:
            return EXPENSIVE
        except IndexChangedError:
            return _Refused(409, "the index has changed since its leaves were counted")
        except IndexBusyError:
            return _Refused(503, "another change is being written; try again in a moment", "1")
        except (FileFormatError, OSError) as error:
            log.error("the index cannot be read or written: %s", error)
            return _Refused(503, "the index cannot be read or written; the log says why", "60")
        except UnknownImageError as error:
            return _Refused(404, _unknown(error))
        except ValueError as error:  # PictureError is one
            return _Refused(422, str(error))

    async def answer(request: Request, work: Callable[[Decoder], Any], body: bytes = b"") -> Any:
        until = asyncio.get_running_loop().time() + seconds
        for queue in queues if len(body) <= QUICK_BYTES else queues[-1:]:
            result = await queue.run(request, partial(attempt, work), until)
            if result is not EXPENSIVE:
                break
        if isinstance(result, _Refused):
            headers = {"Retry-After": result.retry_after} if result.retry_after else {}
            raise refusal(request, result.status, result.reason, **headers)
        return result

    return answer


def _unknown(error: UnknownImageError) -> str:
    return f"the index has no image {error.image!r}"


def _add_searches(app: FastAPI, service: SearchService, uploads: Uploads, answer: Answer) -> None:
    @app.get("/api/info", responses=refusals())
    async def info(request: Request) -> schemas.WireInfo:
        """Describe what the index holds."""
        return await answer(request, lambda _: service.info())

    @app.get("/api/images", responses=refusals())
    async def images(
        request: Request, k: Annotated[int, Query(ge=1, le=100)] = 24
    ) -> schemas.WireImages:
        """List images of the index, to start with."""
        return await answer(request, lambda _: service.images(k))

    @app.post("/api/search", **upload(None))
    async def search(request: Request, options: SearchOptions) -> schemas.WireHits:
        """Search for the picture in the body."""
        async with uploads.body(request) as body:
            return await answer(
                request, lambda decoder: service.search(decoder, body, options), body
            )

    @app.get(
        "/api/images/{image}/search",
        responses=refusals(404),
    )
    async def search_image(
        request: Request, image: int, options: SearchOptions
    ) -> schemas.WireHits:
        """Search for an image of the index."""
        return await answer(request, lambda decoder: service.search(decoder, image, options))

    @app.post(
        "/api/explain/{hit}",
        **upload(None, 404),
    )
    async def explain(request: Request, hit: int, options: PairOptions) -> schemas.WireExplanation:
        """Explain why an image is a hit for the picture in the body."""
        async with uploads.body(request) as body:
            return await answer(
                request, lambda decoder: service.explain(decoder, body, hit, options), body
            )

    @app.get(
        "/api/images/{image}/explain/{hit}",
        responses=refusals(404),
    )
    async def explain_image(
        request: Request, image: int, hit: int, options: PairOptions
    ) -> schemas.WireExplanation:
        """Explain why an image is a hit for another."""
        return await answer(request, lambda decoder: service.explain(decoder, image, hit, options))


def _add_shard(app: FastAPI, service: SearchService, uploads: Uploads, answer: Answer) -> None:
    # Bodies are parsed by the thread that answers: a large one does not hold up other requests.
    @app.post(
        "/api/shard/sizes",
        **upload(schemas.WireLeaves),
    )
    async def sizes(request: Request) -> schemas.WireSizes:
        """Count the subwindows in leaves: step 1 of a federated search."""
        async with uploads.body(request, MAX_JSON_BYTES) as body:
            return await answer(request, lambda _: service.sizes(body))

    @app.post(
        "/api/shard/hits",
        **upload(schemas.WireWords, 409),
    )
    async def shard_hits(request: Request) -> schemas.WireRanked:
        """Rank images by the sizes of leaves in all indexes: step 2 of a federated search."""
        async with uploads.body(request, MAX_JSON_BYTES) as body:
            return await answer(request, lambda _: service.shard_hits(body))


def _add_changes(app: FastAPI, service: SearchService, uploads: Uploads, answer: Answer) -> None:
    settings = service.settings
    removing: dict[str, Any] = {
        "dependencies": NEEDS_TOKEN,
        "responses": refusals(401, 403, 404),
    }

    @app.post(
        "/api/images",
        dependencies=NEEDS_TOKEN,
        **upload(None, 401, 403),
    )
    async def add(
        request: Request,
        name: Annotated[str, Query(description="Name of the image: no path.")],
        label: Annotated[str, Query(max_length=200)] = "",
    ) -> schemas.WireAdded:
        """Add the picture in the body (needs the token)."""
        check_token(request, settings)
        if not NAME.fullmatch(name) or name in (".", ".."):
            reason = f"the name {name[:80]!r} is not allowed; use up to 200 characters, no slashes"
            raise refusal(request, 422, reason)
        async with uploads.body(request) as body:
            added = await answer(
                request, lambda decoder: service.add(decoder, body, name, label), body
            )
        log.info("image %r was added", name)
        return added

    async def removed(request: Request, image: int | str) -> schemas.WireRemoved:
        check_token(request, settings)
        count = await answer(request, lambda _: service.remove(image))
        log.info("image %r was removed", image)
        return count

    @app.delete("/api/images/{image}", **removing)
    async def remove(request: Request, image: int) -> schemas.WireRemoved:
        """Remove an image (needs the token)."""
        return await removed(request, image)

    @app.delete("/api/images", **removing)
    async def remove_named(request: Request, name: str) -> schemas.WireRemoved:
        """Remove the image with a name (needs the token)."""
        return await removed(request, name)


def _add_files(app: FastAPI, index: SubwindowIndex) -> None:
    @app.get(
        "/api/vocabulary",
        response_class=FileResponse,
        responses=file("application/octet-stream"),
    )
    async def vocabulary() -> FileResponse:
        """Send the file of the trees."""
        return FileResponse(Path(index.path) / VOCABULARY, media_type="application/octet-stream")

    @app.get(
        "/api/images/{image}/thumbnail",
        response_class=Response,
        responses=file("image/jpeg") | refusals(404),
    )
    def thumbnail(request: Request, image: int) -> Response:
        """Send a small JPEG."""
        try:
            row = index.row(image)
        except UnknownImageError as error:
            raise refusal(request, 404, _unknown(error)) from error
        if not row.thumbnail:
            raise refusal(request, 404, f"image {image} has no thumbnail")
        headers = {"Cache-Control": "public, max-age=86400", "ETag": f'"{row.hash.hex()}"'}
        return Response(row.thumbnail, media_type="image/jpeg", headers=headers)

    def part_of_page(name: str, media_type: str, request: Request) -> FileResponse:
        path = Path(__file__).with_name("page") / name
        return FileResponse(path, media_type=media_type, headers={"Cache-Control": "no-cache"})

    for path, (name, media_type) in PAGE.items():
        app.add_route(path, partial(part_of_page, name, media_type), include_in_schema=False)


def serve(
    index: SubwindowIndex,
    host: str = "127.0.0.1",
    port: int = 8000,
    settings: ServerSettings | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Serve an index until Ctrl-C.

    If the port is in use, an OSError is raised.

    Parameters
    ----------
    index : SubwindowIndex
        The index.
    host : str, default="127.0.0.1"
        The address to listen on; the default is reached from this machine only.
    port : int, default=8000
        The port.
    settings : ServerSettings, optional
        Limits, and the token for changes.
    ready : callable, optional
        Called when the server listens.

    Examples
    --------
    >>> from okforest.retrieval import SubwindowIndex
    >>> from okforest.retrieval.web import serve
    >>> def serve_folder(folder):
    ...     serve(SubwindowIndex(folder), port=8000)  # until Ctrl-C
    """
    settings = ServerSettings() if settings is None else settings
    config = uvicorn.Config(
        create_app(index, settings),
        http="h11",  # the bytes of headers are bounded
        ws="none",
        limit_concurrency=4 * (settings.workers + settings.queue) + 64,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=2**16,
        server_header=False,
        log_config=None,  # logging is the caller's
        log_level="warning",
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise OSError(
            f"the server cannot listen on port {port} of {host}: {reason}. Choose another one."
        ) from error
    with listening:
        if ready is not None:
            ready()
        uvicorn.Server(config).run([listening])
