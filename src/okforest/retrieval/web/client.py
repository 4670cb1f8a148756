"""A client of a server."""

import asyncio
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import numpy as np
from anyio.from_thread import start_blocking_portal

from okforest._utils.parameters import as_integer, is_integer
from okforest.retrieval.pictures import as_list, file_content
from okforest.retrieval.postings import UInt64s, Words
from okforest.retrieval.reader import IndexChangedError, RankedHits
from okforest.retrieval.segment import Hit
from okforest.retrieval.vocabulary import UInt32s, Vocabulary
from okforest.retrieval.web import schemas

MAX_VOCABULARY_BYTES = 2**30
MAX_ANSWER_BYTES = 2**23  # answers other than a vocabulary
MAX_REFUSAL_BYTES = 2**16

T = TypeVar("T")


class RemoteError(OSError):
    """A server that cannot be reached, refuses a request, or gives an answer that is not valid.

    The message has the reason.

    Examples
    --------
    >>> from okforest.retrieval.web import RemoteError, RemoteIndex
    >>> try:
    ...     RemoteIndex("http://127.0.0.1:1").search(b"the bytes of a picture")
    ... except RemoteError as error:
    ...     print(type(error).__name__)
    RemoteError
    """


class RemoteIndex:
    """An index that a server has opened.

    Parameters
    ----------
    url : str
        The address of the server, such as ``"http://127.0.0.1:8000"``.
    token : str, optional
        The secret of the server, for changes. It is sent to this address only: redirects are not
        followed.
    timeout : float, default=30.0
        Seconds that a request and its answer may take, all together.

    See Also
    --------
    FederatedIndex : Several indexes, local and remote, that are searched as one.

    Examples
    --------
    >>> from okforest.retrieval.web import RemoteIndex
    >>> RemoteIndex("http://127.0.0.1:8000")
    RemoteIndex('http://127.0.0.1:8000')
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0):
        if not _is_address(url):
            raise ValueError(
                f"url={url!r}; expected an address that begins with http:// or https://, such as "
                "http://127.0.0.1:8000"
            )
        self.url = url.rstrip("/")
        self.token = token
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"RemoteIndex({self.url!r})"

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The trees, downloaded once."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "vocabulary.okf"
            path.write_bytes(self._request("GET", "/api/vocabulary", most=MAX_VOCABULARY_BYTES))
            try:
                return Vocabulary.load(path)  # mapped: it stays although the file is deleted
            except ValueError as error:  # FileFormatError is one
                raise self._invalid(f"the vocabulary: {error}") from None

    @cached_property
    def vocabulary_key(self) -> str:
        """The key of the trees."""
        return self._info().vocabulary

    def info(self) -> dict[str, Any]:
        """Return what the index of the server holds.

        Returns
        -------
        info : dict
            Numbers of images and subwindows, labels, key of the vocabulary, limits.
        """
        return asdict(self._info())

    @property
    def labels(self) -> list[str]:
        """The labels of the images, sorted."""
        return self._info().labels

    def _info(self) -> schemas.WireInfo:
        return self._ask(schemas.WireInfo, "GET", "/api/info")

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        labels: Iterable[str] | None = None,
        n_subwindows: int | None = None,
        random_state: int = 0,
    ) -> list[Hit]:
        """Search for a picture.

        Parameters
        ----------
        query : ndarray, path-like, bytes, int or Hit
            A picture, as an array of bytes, a file or its content, or an image of the index, as its
            number or a hit.
        k : int, default=10
            Number of hits, at most.
        labels : iterable of str, optional
            Only images with these labels are hits.
        n_subwindows : int, optional
            Number of subwindows of the query.
        random_state : int, default=0
            Ties are broken at random, by this seed.

        Returns
        -------
        hits : list of Hit
            The hits, the best first.
        """
        params: dict[str, Any] = {"k": k, "random_state": random_state}
        if labels is not None:
            params["label"] = as_list("labels", labels)
            if not params["label"]:
                return []  # a request without labels has no filter
        if n_subwindows is not None:
            params["n_subwindows"] = n_subwindows
        query = query.id if isinstance(query, Hit) else query
        if is_integer(query):
            path = f"/api/images/{query}/search"
            return _hits(self._ask(schemas.WireHits, "GET", path, params=params).hits)
        content = file_content(query)
        path = "/api/search"
        return _hits(self._ask(schemas.WireHits, "POST", path, params=params, content=content).hits)

    def add(self, picture: Any, name: str | None = None, label: str = "") -> dict[str, int]:
        """Add a picture; it needs the token.

        The server keeps a thumbnail of it, not its pixels.

        Parameters
        ----------
        picture : ndarray, path-like or bytes
            An array of bytes, an image file, or its content.
        name : str, optional
            Its name, without slashes; by default the name of the file.
        label : str, default=""
            Its class.

        Returns
        -------
        added : dict
            How many pictures are new, replaced and unchanged.
        """
        if name is None:
            if not isinstance(picture, str | os.PathLike):
                raise ValueError("the picture is not a file and has no name; pass one: name='x'.")
            name = Path(picture).name
        sent = {"params": {"name": name, "label": label}, "content": file_content(picture)}
        return asdict(self._ask(schemas.WireAdded, "POST", "/api/images", **sent))

    def remove(self, images: int | str | Hit | Iterable[int | str | Hit]) -> int:
        """Remove images; it needs the token.

        Parameters
        ----------
        images : int, str, Hit, or an iterable of them
            Numbers, names or hits. Each image is a request; the first that the index does not have
            raises a RemoteError.

        Returns
        -------
        n_removed : int
            Number of images.
        """
        if isinstance(images, int | np.integer | str | Hit):
            images = [images]
        return sum(self._remove(image) for image in images)

    def _remove(self, image: int | str | Hit) -> int:
        image = image.id if isinstance(image, Hit) else image
        path, params = f"/api/images/{image}", {}
        if isinstance(image, str):
            path, params = "/api/images", {"name": image}
        return self._ask(schemas.WireRemoved, "DELETE", path, params=params).removed

    def leaf_sizes(self, leaves: UInt32s) -> tuple[UInt64s, int]:
        """Return the number of subwindows in leaves: the first step of a federated search.

        Leaves ascend. The second value is the state of the index, for :meth:`best_hits`.
        """
        body = {"vocabulary": self.vocabulary_key, "leaves": leaves.tolist()}
        answer = self._ask(schemas.WireSizes, "POST", "/api/shard/sizes", json=body)
        if len(answer.sizes) != len(leaves):
            raise self._invalid(f"{len(answer.sizes)} sizes of {len(leaves)} leaves")
        return np.array(answer.sizes, dtype=np.uint64), answer.generation

    def best_hits(
        self,
        words: Words,
        sizes: UInt64s,
        k: int,
        *,
        labels: Iterable[str] | None,
        random_state: int,
        generation: int,
    ) -> RankedHits:
        """Return the best images for the leaves of a query: the second step of a federated search.

        The sizes of the leaves are sums over all indexes. If the index is no longer in the state
        (``generation``) in which its leaves were counted, an IndexChangedError is raised.
        """
        body = {
            "vocabulary": self.vocabulary_key,
            "leaves": words.leaves.tolist(),
            "times": words.times.tolist(),
            "sizes": sizes.tolist(),
            "generation": generation,
            "k": as_integer("k", k, 1),
            "labels": None if labels is None else as_list("labels", labels),
            "random_state": as_integer("random_state", random_state, 0),
        }
        answer = self._ask(schemas.WireRanked, "POST", "/api/shard/hits", json=body)
        if len(answer.keys) != len(answer.hits):
            raise self._invalid(f"{len(answer.keys)} keys of {len(answer.hits)} hits")
        return RankedHits(_hits(answer.hits), answer.keys)

    def _ask(self, kind: type[T], method: str, path: str, **sent: Any) -> T:
        """Return the answer to a request, a JSON object of this kind."""
        answer = self._request(method, path, **sent)
        try:
            return schemas.parse(kind, answer)
        except ValueError as error:
            raise self._invalid(str(error)) from None

    def _invalid(self, reason: str) -> RemoteError:
        return RemoteError(
            f"{self.url} gave an answer that is not valid ({reason}); it may not be a server of "
            "okforest, or one of another version"
        )

    def _request(self, method: str, path: str, most: int = MAX_ANSWER_BYTES, **sent: Any) -> bytes:
        try:
            # httpx limits single reads only, so asyncio limits the whole exchange. Its event loop
            # is in another thread because this thread may have one, as in notebooks.
            with start_blocking_portal() as portal:
                status, phrase, answer = portal.call(self._exchange, method, path, most, sent)
        except RemoteError:
            raise
        except TimeoutError:
            reason = f"it took more than {self.timeout:g} seconds"
            raise RemoteError(f"{self.url} has not answered: {reason}") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise RemoteError(f"{self.url} cannot be reached: {error}") from error
        if status == 200:
            return answer
        reason = _reason(answer) or phrase
        if status == 409:
            raise IndexChangedError(f"{self.url}: {reason}")
        raise RemoteError(f"{self.url} refused the request ({status}): {reason}")

    async def _exchange(self, method: str, path: str, most: int, sent: Any) -> tuple[Any, ...]:
        """Return the status of an answer, in a number and in words, and its content."""
        # Without compression, an answer is as large as what is read.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        async with (
            asyncio.timeout(self.timeout),
            httpx.AsyncClient(timeout=None, verify=_certificates()) as client,
            client.stream(method, self.url + path, headers=headers, **sent) as response,
        ):
            status = response.status_code
            if response.is_redirect:
                place = response.headers.get("location", "")[:200]
                raise RemoteError(
                    f"{self.url} redirects to {place!r}, and redirects are not followed; if you "
                    "trust that address, pass it as the url"
                )
            most = most if status == 200 else MAX_REFUSAL_BYTES
            parts, size = [], 0
            async for part in response.aiter_raw():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise RemoteError(
                        f"{self.url} gave an answer of more than {most} bytes, status {status}"
                    )
        return status, response.reason_phrase, b"".join(parts)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port out of range, half an IPv6 address
        return False


@cache
def _certificates() -> Any:
    """Return the certificates that are trusted; to load them takes longer than a request."""
    return httpx.create_ssl_context()


def _hits(hits: list[Any]) -> list[Hit]:
    return [Hit(**asdict(hit)) for hit in hits]


def _reason(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["detail"])[:500]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
