"""A server of an index: an interface for programs, and a page for people.

It needs FastAPI and uvicorn, the extra ``serve``.
"""

import asyncio
import errno
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import uvicorn
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.middleware.trustedhost import TrustedHostMiddleware

from okforest.persistence import FileFormatError
from okforest.retrieval import _openapi as openapi
from okforest.retrieval import _wire as wire
from okforest.retrieval._changes import UnknownImageError
from okforest.retrieval._decoder import Decoder, ExpensivePictureError
from okforest.retrieval._guards import (
    HEADERS,
    MOST_JSON,
    SecurityHeaders,
    Uploads,
    WorkQueue,
    check_token,
    log,
    refusal,
)
from okforest.retrieval._hits import IndexChangedError
from okforest.retrieval._service import SearchService
from okforest.retrieval._settings import ServerSettings
from okforest.retrieval._store import VOCABULARY, IndexBusyError
from okforest.retrieval.index import SubwindowIndex
from okforest.segments.images import require_pillow

# Pictures above one of these limits wait for each other, so that they do not hold up small ones.
QUICK_BYTES, QUICK_PIXELS = 2**20, 1_000_000
QUICK_SECONDS, SLOW_SECONDS = 0.1, 5.0  # CPU time to decode a picture

STATIC = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
NAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,200}")
DAY = "public, max-age=86400"

# Answers a request by a function of a decoder, which is run in a thread; a body may follow.
Answer = Callable[..., Awaitable[Any]]

Top = Annotated[int, Query(ge=1, le=100, description="Number of hits, at most.")]
Count = Annotated[int | None, Query(ge=1, le=2000, description="Subwindows of the query.")]
Seed = Annotated[int, Query(ge=0, lt=2**63, description="Seed that breaks ties.")]
Label = Annotated[list[str] | None, Query(max_length=100, description="Only these labels.")]
Box = Annotated[
    str | None,
    Query(
        pattern=r"^\d{1,6},\d{1,6},\d{1,6},\d{1,6}$",
        description="Part of the query: left, top, width and height in pixels.",
    ),
]


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
        refused = refusal(request, 422, wire.problem(error.errors()[0]))
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
    @app.get("/api/info", summary="What the index holds", responses=openapi.errors())
    async def info(request: Request) -> wire.WireInfo:
        return await answer(request, lambda _: service.info())

    @app.get("/api/images", summary="Some images of the index", responses=openapi.errors())
    async def images(request: Request, top: Top = 24) -> wire.WireImages:
        return await answer(request, lambda _: service.images(top))

    @app.post(
        "/api/search",
        summary="Search for the picture in the body",
        openapi_extra=openapi.PICTURE_BODY,
        responses=openapi.errors(*openapi.UPLOAD),
    )
    async def search(
        request: Request,
        top: Top = 20,
        label: Label = None,
        box: Box = None,
        n_subwindows: Count = None,
        random_state: Seed = 0,
    ) -> wire.WireHits:
        async with uploads.body(request) as body:
            return await answer(
                request,
                lambda decoder: service.search(
                    decoder, body, box, top, label, n_subwindows, random_state
                ),
                body,
            )

    @app.get(
        "/api/images/{image}/search",
        summary="Search for an image of the index",
        responses=openapi.errors(404),
    )
    async def search_image(
        request: Request,
        image: int,
        top: Top = 20,
        label: Label = None,
        box: Box = None,
        n_subwindows: Count = None,
        random_state: Seed = 0,
    ) -> wire.WireHits:
        return await answer(
            request,
            lambda decoder: service.search(
                decoder, image, box, top, label, n_subwindows, random_state
            ),
        )

    @app.post(
        "/api/explain/{hit}",
        summary="Why an image is a hit for the picture in the body",
        openapi_extra=openapi.PICTURE_BODY,
        responses=openapi.errors(404, *openapi.UPLOAD),
    )
    async def explain(
        request: Request, hit: int, top: Top = 20, box: Box = None, n_subwindows: Count = None
    ) -> wire.WireExplanation:
        async with uploads.body(request) as body:
            return await answer(
                request,
                lambda decoder: service.explain(decoder, body, box, hit, top, n_subwindows),
                body,
            )

    @app.get(
        "/api/images/{image}/explain/{hit}",
        summary="Why an image is a hit for another",
        responses=openapi.errors(404),
    )
    async def explain_image(
        request: Request,
        image: int,
        hit: int,
        top: Top = 20,
        box: Box = None,
        n_subwindows: Count = None,
    ) -> wire.WireExplanation:
        return await answer(
            request,
            lambda decoder: service.explain(decoder, image, box, hit, top, n_subwindows),
        )


def _add_shard(app: FastAPI, service: SearchService, uploads: Uploads, answer: Answer) -> None:
    # Bodies are parsed by the thread that answers: a large one does not hold up other requests.
    @app.post(
        "/api/shard/sizes",
        summary="Federated search, step 1: sizes of leaves",
        openapi_extra=openapi.json_body(wire.WireLeaves),
        responses=openapi.errors(*openapi.UPLOAD),
    )
    async def sizes(request: Request) -> wire.WireSizes:
        async with uploads.body(request, MOST_JSON) as body:
            return await answer(request, lambda _: service.sizes(body))

    @app.post(
        "/api/shard/hits",
        summary="Federated search, step 2: hits, given all sizes",
        openapi_extra=openapi.json_body(wire.WireWords),
        responses=openapi.errors(409, *openapi.UPLOAD),
    )
    async def shard_hits(request: Request) -> wire.WireRanked:
        async with uploads.body(request, MOST_JSON) as body:
            return await answer(request, lambda _: service.shard_hits(body))


def _add_changes(app: FastAPI, service: SearchService, uploads: Uploads, answer: Answer) -> None:
    settings = service.settings

    @app.post(
        "/api/images",
        summary="Add the picture in the body (needs the token)",
        openapi_extra=openapi.PICTURE_BODY,
        dependencies=openapi.NEEDS_TOKEN,
        responses=openapi.errors(401, 403, *openapi.UPLOAD),
    )
    async def add(
        request: Request,
        name: Annotated[str, Query(description="Name of the image: no path.")],
        label: Annotated[str, Query(max_length=200)] = "",
    ) -> wire.WireAdded:
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

    async def removed(request: Request, image: int | str) -> wire.WireRemoved:
        check_token(request, settings)
        count = await answer(request, lambda _: service.remove(image))
        log.info("image %r was removed", image)
        return count

    @app.delete(
        "/api/images/{image}",
        summary="Remove an image (needs the token)",
        dependencies=openapi.NEEDS_TOKEN,
        responses=openapi.errors(401, 403, 404),
    )
    async def remove(request: Request, image: int) -> wire.WireRemoved:
        return await removed(request, image)

    @app.delete(
        "/api/images",
        summary="Remove the image with a name (needs the token)",
        dependencies=openapi.NEEDS_TOKEN,
        responses=openapi.errors(401, 403, 404),
    )
    async def remove_named(request: Request, name: str) -> wire.WireRemoved:
        return await removed(request, name)


def _add_files(app: FastAPI, index: SubwindowIndex) -> None:
    @app.get(
        "/api/vocabulary",
        summary="The file of the trees",
        response_class=FileResponse,
        responses=openapi.file("application/octet-stream"),
    )
    async def vocabulary() -> FileResponse:
        return FileResponse(Path(index.path) / VOCABULARY, media_type="application/octet-stream")

    @app.get(
        "/api/images/{image}/thumbnail",
        summary="A small JPEG",
        response_class=Response,
        responses=openapi.file("image/jpeg") | openapi.errors(404),
    )
    def thumbnail(request: Request, image: int) -> Response:
        try:
            row = index.row(image)
        except UnknownImageError as error:
            raise refusal(request, 404, _unknown(error)) from error
        if not row.thumbnail:
            raise refusal(request, 404, f"image {image} has no thumbnail")
        headers = {"Cache-Control": DAY, "ETag": f'"{row.hash.hex()}"'}
        return Response(row.thumbnail, media_type="image/jpeg", headers=headers)

    def static(name: str, media_type: str) -> Callable[[], Any]:
        content = (files("okforest.retrieval") / "static" / name).read_bytes()

        async def page() -> Response:
            return Response(content, media_type=media_type, headers={"Cache-Control": "no-cache"})

        return page

    for path, (name, media_type) in STATIC.items():
        route = app.api_route(path, methods=["GET", "HEAD"], include_in_schema=False)
        route(static(name, media_type))


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
    with _listen(host, port) as listening:
        if ready is not None:
            ready()
        uvicorn.Server(config).run([listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise OSError(
            f"the server cannot listen on port {port} of {host}: {reason}. Choose another one."
        ) from error
