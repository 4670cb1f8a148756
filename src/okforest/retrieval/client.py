"""A client of a server, in a few lines, without other packages."""

import json
import os
import tempfile
from collections.abc import Iterable
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np

from okforest._integers import is_integer
from okforest.retrieval._checks import as_integer, as_list
from okforest.retrieval._hits import Hit, IndexChangedError, RankedHits
from okforest.retrieval._pictures import file_content
from okforest.retrieval._postings import UInt32s, UInt64s
from okforest.retrieval._scoring import Words
from okforest.retrieval.vocabulary import Vocabulary

MAX_ANSWER = 2**30  # bytes


class RemoteError(OSError):
    """A server that cannot be reached, or that refused a request; the message has its reason.

    Examples
    --------
    >>> from okforest.retrieval import RemoteError, RemoteIndex
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
        The secret of the server, for changes.
    timeout : float, default=30.0
        Seconds to wait for an answer.

    See Also
    --------
    FederatedIndex : Several indexes, local and remote, that are searched as one.

    Examples
    --------
    >>> from okforest.retrieval import RemoteIndex
    >>> RemoteIndex("http://127.0.0.1:8000")
    RemoteIndex('http://127.0.0.1:8000')
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0):
        if not url.startswith(("http://", "https://")):
            raise ValueError(
                f"url={url!r}; expected an address that begins with http:// or https://"
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
            path.write_bytes(self._request("GET", "/api/vocabulary"))
            return Vocabulary.load(path)  # mapped: it stays although the file is deleted

    @cached_property
    def vocabulary_key(self) -> str:
        """The key of the trees."""
        return str(self.info()["vocabulary"])

    def info(self) -> dict[str, Any]:
        """Return what the index of the server holds.

        Returns
        -------
        info : dict
            Numbers of images and subwindows, labels, key of the vocabulary, limits.
        """
        return self._json("GET", "/api/info")

    def search(
        self,
        query: Any,
        top: int = 10,
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
        top : int, default=10
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
        options: list[tuple[str, Any]] = [("top", top), ("random_state", random_state)]
        if labels is not None:
            wanted = as_list("labels", labels)
            if not wanted:
                return []  # a request without labels has no filter
            options += [("label", label) for label in wanted]
        if n_subwindows is not None:
            options.append(("n_subwindows", n_subwindows))
        query = query.id if isinstance(query, Hit) else query
        if is_integer(query):
            answer = self._json("GET", f"/api/images/{query}/search?{urlencode(options)}")
        else:
            body = file_content(query)
            answer = self._json("POST", f"/api/search?{urlencode(options)}", body)
        return [Hit(**hit) for hit in answer["hits"]]

    def add(self, picture: Any, name: str | None = None, label: str = "") -> dict[str, int]:
        """Add a picture; it needs the token.

        The server keeps a thumbnail of it, not its pixels.

        Parameters
        ----------
        picture : ndarray, path-like or bytes
            An array of bytes, an image file, or its content.
        name : str, optional
            Its name, without slashes; by default that of the file.
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
        query = urlencode({"name": name, "label": label})
        return self._json("POST", f"/api/images?{query}", file_content(picture))

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
        name = f"?{urlencode({'name': image})}" if isinstance(image, str) else f"/{int(image)}"
        return int(self._json("DELETE", f"/api/images{name}")["removed"])

    def leaf_sizes(self, leaves: UInt32s) -> tuple[UInt64s, int]:
        """Return the number of subwindows in leaves: the first step of a federated search.

        Parameters
        ----------
        leaves : ndarray of shape (n,), uint32
            Leaves, ascending.

        Returns
        -------
        sizes : ndarray of shape (n,), uint64
            Number of subwindows.
        generation : int
            The state of the index.
        """
        body = {"vocabulary": self.vocabulary_key, "leaves": leaves.tolist()}
        answer = self._json("POST", "/api/shard/sizes", body)
        return np.array(answer["sizes"], dtype=np.uint64), answer["generation"]

    def best_hits(
        self,
        words: Words,
        sizes: UInt64s,
        top: int,
        *,
        labels: Iterable[str] | None,
        random_state: int,
        generation: int,
    ) -> RankedHits:
        """Return the best images for the leaves of a query: the second step of a federated search.

        Parameters
        ----------
        words : Words
            The leaves of the query.
        sizes : ndarray of shape (n,), uint64
            Sizes of the leaves in all indexes.
        top : int
            Number of hits, at most.
        labels : iterable of str or None
            Only images with these labels are hits.
        random_state : int
            Ties are broken at random, by this seed.
        generation : int
            The state of the index that the sizes are of.

        Returns
        -------
        ranked : RankedHits
            The hits, the best first, and the hashes of their names.
        """
        body = {
            "vocabulary": self.vocabulary_key,
            "leaves": words.leaves.tolist(),
            "times": words.times.tolist(),
            "sizes": sizes.tolist(),
            "generation": generation,
            "top": as_integer("top", top, 1),
            "labels": None if labels is None else as_list("labels", labels),
            "random_state": as_integer("random_state", random_state, 0),
        }
        answer = self._json("POST", "/api/shard/hits", body)
        return RankedHits([Hit(**hit) for hit in answer["hits"]], answer["keys"])

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self._request(method, path, body))

    def _request(self, method: str, path: str, body: Any = None) -> bytes:
        headers = {"Accept": "application/json"}
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        elif body is not None:
            headers["Content-Type"] = "application/octet-stream"
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = Request(self.url + path, data=body, headers=headers, method=method)
        try:
            with urlopen(request, timeout=self.timeout) as answer:
                return bytes(answer.read(MAX_ANSWER))
        except HTTPError as error:
            reason = _reason(error)
            if error.code == 409:
                raise IndexChangedError(f"{self.url}: {reason}") from error
            raise RemoteError(f"{self.url} refused the request ({error.code}): {reason}") from error
        except (URLError, HTTPException, OSError) as error:
            raise RemoteError(f"{self.url} cannot be reached: {error}") from error


def _reason(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(2**16))["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return str(error.reason)
