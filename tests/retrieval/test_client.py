"""The client and servers that are hostile, or not what they should be."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from importlib import import_module
from threading import Event, Thread

import numpy as np
import pytest

from okforest._utils.errors import install_extra
from okforest.retrieval import FederatedIndex
from okforest.retrieval.postings import Words

web = pytest.importorskip("okforest.retrieval.web", reason="the extra serve is not installed")

RemoteError, RemoteIndex = web.RemoteError, web.RemoteIndex

HIT = {"id": 1, "name": "a", "label": "", "height": 9, "width": 9, "score": 0.5}
HITS = {"hits": [HIT], "milliseconds": 1.0, "query_height": 9, "query_width": 9}
INFO = {
    **dict.fromkeys(("images", "subwindows", "trees", "leaves", "generation"), 1),
    **dict.fromkeys(("max_bytes", "max_pixels"), 1),
    **{"labels": [], "vocabulary": "key", "writable": False, "version": "1"},
}


@contextmanager
def hostile(answer):
    """Serve what a function sends to a connection; return the address, and requests that came."""
    requests, ended = [], Event()

    def handle(connection):
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(2**16)
            requests.append(head)
            try:
                answer(connection, ended)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(2**16):  # a reset could overtake the answer
                    pass
            except OSError:
                pass

    def accept():
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.settimeout(20)
            Thread(target=handle, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", requests
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def answering(content, status="200 OK", *headers):
    """Return a function that sends an answer."""
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers))
    return lambda connection, ended: connection.sendall(head.encode() + b"\r\n\r\n" + content)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_the_token_stays_where_it_belongs(status):
    """A redirect is an error that names the other address; nothing is sent there."""
    with (
        hostile(answering({"added": 1, "replaced": 0, "unchanged": 0})) as (other, requests),
        hostile(answering(b"", status, f"Location: {other}/x")) as (url, _),
    ):
        remote = RemoteIndex(url, token="s3cret")
        for ask in (lambda: remote.add(b"picture", "name"), remote.info, lambda: remote.remove(1)):
            with pytest.raises(RemoteError, match=f"redirects to '{other}/x', and redirects are"):
                ask()
        assert requests == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>", "Invalid JSON"),
        (b"\xff\xfe", "Invalid JSON"),
        (b"[" * 100_000, "recursion limit"),
        (b'{"hits": ' + b'{"a":' * 1000 + b"1" + b"}" * 1001, "recursion limit"),
        ([], "object"),
        ({"hits": []}, "milliseconds"),
        (HITS | {"hits": 3}, "hits"),
        (HITS | {"hits": [{"id": 1}]}, "hits.0.name"),
        (HITS | {"hits": [HIT | {"score": "0.5"}]}, "hits.0.score"),
        (HITS | {"hits": [HIT | {"score": float("nan")}]}, "finite"),
        (HITS | {"hits": [HIT | {"score": float("inf")}]}, "finite"),
        (HITS | {"hits": [HIT | {"id": 1.5}]}, "hits.0.id"),
        (HITS | {"hits": [HIT | {"id": True}]}, "hits.0.id"),
        (HITS | {"hits": [HIT | {"height": -1}]}, "hits.0.height"),
    ],
    ids=range(14),
)
def test_answers_that_are_not_valid(content, reason):
    """They are errors, whatever they hold."""
    with (
        hostile(answering(content)) as (url, _),
        pytest.raises(RemoteError, match=f"an answer that is not valid .*{reason}"),
    ):
        RemoteIndex(url).search(b"picture")


def test_memory_of_answers_that_are_not_valid():
    """A megabyte of empty hits, each of which lacks every field, took two gigabytes."""
    program = """
        import resource
        from okforest.retrieval.web import schemas
        rest = b'"milliseconds": 1, "query_height": 1, "query_width": 1'
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + 2**29,) * 2)
        for kind, body in (
            (schemas.WireHits, b'{"hits": [' + b"{}," * 2**18 + b"{}], " + rest + b"}"),
            (schemas.WireWords, b"{" + b",".join(b'"%d":[]' % i for i in range(2**17)) + b"}"),
        ):
            try:
                schemas.parse(kind, body)
            except ValueError as error:
                print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.splitlines() == [
        "hits.0.id: Field required",
        "vocabulary: Field required",
    ]


def test_answers_of_the_steps_of_a_federated_search():
    """As many sizes as leaves, as many keys as hits; keys have 64 bits."""
    words = Words(np.arange(3, dtype=np.uint32), np.ones(3, dtype=np.uint32))

    def ask(content):
        with hostile(answering(content)) as (url, _):
            remote = RemoteIndex(url)
            remote.vocabulary_key = "key"
            if "sizes" in content:
                return remote.leaf_sizes(words.leaves)
            sizes = np.ones(3, dtype=np.uint64)
            options = {"labels": None, "random_state": 0, "generation": 1}
            return remote.best_hits(words, sizes, 3, **options)

    assert ask({"sizes": [1, 2, 3], "generation": 7})[1] == 7
    assert ask({"hits": [HIT], "keys": [2**64 - 1]}).keys == [2**64 - 1]
    for content in (
        {"sizes": [1, 2], "generation": 7},
        {"sizes": [1, 2, -1], "generation": 7},
        {"sizes": [1, 2, 3], "generation": "7"},
        {"hits": [HIT], "keys": []},
        {"hits": [HIT], "keys": [2**64]},
        {"hits": [HIT], "keys": [-1]},
    ):
        with pytest.raises(RemoteError, match="an answer that is not valid"):
            ask(content)


def test_a_vocabulary_that_is_none():
    """A federated search reports what the server has sent."""
    with (
        hostile(answering(INFO)) as (url, _),
        pytest.raises(RemoteError, match=r"an answer that is not valid \(the vocabulary: "),
    ):
        FederatedIndex([RemoteIndex(url)])


def dripping_body(connection, ended):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
    while not ended.wait(0.1):
        connection.sendall(b" ")


def dripping_head(connection, ended):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not ended.wait(0.1):
        connection.sendall(b"x")


def silent(connection, ended):
    ended.wait(20)


def interim(connection, ended):
    while not ended.wait(0.1):
        connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")


@pytest.mark.parametrize("answer", [dripping_body, dripping_head, silent, interim])
def test_the_timeout_is_for_all_of_a_request(answer):
    """A server that sends a byte now and then does not hold the client."""
    with (
        hostile(answer) as (url, _),
        pytest.raises(RemoteError, match=r"has not answered: it took more than 0.5 seconds"),
    ):
        RemoteIndex(url, timeout=0.5).info()


def endless_body(connection, ended):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not ended.is_set():
        connection.sendall(b"10000\r\n" + bytes(2**16) + b"\r\n")


def endless_head(connection, ended):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not ended.is_set():
        connection.sendall(b"X: " + b"x" * 2**12 + b"\r\n")


def test_the_size_of_answers_is_bounded(monkeypatch):
    """More than the limit is not read: of an answer, of a refusal, of headers."""
    with hostile(endless_head) as (url, _), pytest.raises(RemoteError, match="cannot be reached"):
        RemoteIndex(url).info()
    with (
        hostile(answering(bytes(2**17), "500 Failed")) as (url, _),
        pytest.raises(RemoteError, match="more than 65536 bytes, status 500"),
    ):
        RemoteIndex(url).info()
    monkeypatch.setattr(RemoteIndex._request, "__defaults__", (2**20,))
    with (
        hostile(endless_body) as (url, _),
        pytest.raises(RemoteError, match="an answer of more than 1048576 bytes"),
    ):
        RemoteIndex(url).info()


def test_compressed_answers():
    """They were not asked for and are not decompressed."""
    answer = answering(b"\x1f\x8b" + bytes(100), "200 OK", "Content-Encoding: gzip")
    with hostile(answer) as (url, requests), pytest.raises(RemoteError, match="not valid"):
        RemoteIndex(url).info()
    assert b"accept-encoding: identity" in requests[0].lower()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"detail": "because"}, "because"),
        ({"detail": "x" * 9999}, "x" * 500 + "$"),
        (b"[" * 60_000, "Teapot"),
        (b"", "Teapot"),
        ({}, "Teapot"),
    ],
    ids=range(5),
)
def test_reasons_of_refusals(content, reason):
    """The server's reason is shown, or the words of the status."""
    with (
        hostile(answering(content, "418 Teapot")) as (url, _),
        pytest.raises(RemoteError, match=rf"refused the request \(418\): {reason}"),
    ):
        RemoteIndex(url).info()


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:99999", "http://", "127.0.0.1"])
def test_addresses_that_are_wrong(url):
    """They are refused before anything is sent."""
    with pytest.raises(ValueError, match="expected an address that begins with http"):
        RemoteIndex(url)


def test_within_an_event_loop():
    """Notebooks run one; the client does not need it."""

    async def ask():
        with hostile(answering(INFO)) as (url, _):
            return RemoteIndex(url).info()

    assert asyncio.run(ask())["images"] == 1


def test_without_httpx(monkeypatch):
    """The error says how to install the extra."""
    for name in [name for name in sys.modules if name.startswith("okforest.retrieval.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ImportError, match=f"needs httpx, .*: {re.escape(install_extra('serve'))}"):
        import_module("okforest.retrieval.web")


def test_a_server_that_goes_away():
    """A connection that ends within an answer is an error."""

    def answer(connection, ended):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nabc")

    with hostile(answer) as (url, _), pytest.raises(RemoteError, match="cannot be reached"):
        RemoteIndex(url).info()
