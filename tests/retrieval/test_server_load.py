"""The server under load: slow clients, many requests at a time, late answers."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from okforest.retrieval import RemoteError, RemoteIndex, SubwindowIndex
from reference.retrieval import make_images
from reference.web import encoded, request

pytest.importorskip("fastapi", reason="FastAPI is not installed")


@contextmanager
def connected(url):
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        yield client


def read_until_closed(client):
    """Return what a server sends until it closes the connection."""
    content = b""
    try:
        while part := client.recv(2**16):
            content += part
    except ConnectionResetError:
        pass
    return content


def test_500_megabytes(files, serving):
    """The length is refused before the body is sent; without a length, once it is too long."""
    url = serving(files[0], max_bytes=2**20)
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        client.sendall(
            b"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: 524288000\r\n\r\n"
            + bytes(100)
        )
        assert b" 413 " in client.recv(100)
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        client.sendall(
            b"POST /api/search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        sent = 0
        try:
            while sent < 500 * 2**20:
                client.sendall(b"10000\r\n" + bytes(2**16) + b"\r\n")
                sent += 2**16
        except OSError:  # closed by the server
            pass
        assert sent < 50 * 2**20


def test_large_uploads_get_their_answer(build, serving):
    """A client that reads only after it has sent everything is told why it is refused."""
    url = serving(build(range(2)), max_bytes=2**20, upload_seconds=120)
    with pytest.raises(RemoteError, match=r"\(413\): the body is larger than 1048576 bytes"):
        RemoteIndex(url).search(bytes(32 * 2**20))


def test_large_uploads_take_no_longer_than_others(build, serving):
    """What follows an upload that was refused is read for a limited time."""
    url = serving(build(range(2)), max_bytes=2**20, upload_seconds=0.3)
    with connected(url) as client:
        client.sendall(b"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\nx")
        answer = read_until_closed(client)
    assert answer.startswith(b"HTTP/1.1 413")
    assert answer.endswith(b'send less"}')


def test_slow_clients(files, serving, caplog, monkeypatch):
    """A client that sends its body or its headers too slowly is cut off."""
    from okforest.retrieval.server import ImpatientProtocol

    monkeypatch.setattr(ImpatientProtocol, "header_seconds", 0.3)
    url = serving(files[0], upload_seconds=0.3)
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        client.sendall(b"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\nabc")
        answer = client.recv(2000)
        assert b" 408 " in answer
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        client.sendall(b"GET / HT")
        assert client.recv(100) == b""  # closed
    assert request(url, "GET", "/api/info")[0] == 200


def test_queue(files, serving, monkeypatch):
    """Requests beyond the queue are refused with 503 and the advice to come back."""
    index, images = files
    gate = threading.Event()
    search = SubwindowIndex.search

    def slow(self, *arguments, **options):
        gate.wait(60)
        return search(self, *arguments, **options)

    monkeypatch.setattr(SubwindowIndex, "search", slow)
    url = serving(index, workers=1, queue=2, seconds=60)
    results = []

    def ask():
        results.append(request(url, "POST", "/api/search", encoded(images[0]))[:2])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(results) < 5:
        time.sleep(0.01)
    gate.set()
    for thread in threads:
        thread.join()
    assert sorted(status for status, _ in results) == [200] * 3 + [503] * 5
    assert all(headers["Retry-After"] for status, headers in results if status == 503)


def test_answered_requests_leave_the_queue(build, serving):
    """A server answers more requests, one after the other, than its queue holds."""
    url = serving(build(range(2)), workers=1, queue=1)
    assert {request(url, "GET", "/api/info")[0] for _ in range(8)} == {200}


def test_late_answers_keep_their_slots(build, serving, monkeypatch):
    """A search that is late still counts until its thread has finished."""
    gate = threading.Event()
    monkeypatch.setattr(SubwindowIndex, "search", lambda *a, **k: gate.wait(30) and [])
    url = serving(build(range(2)), workers=1, queue=1, seconds=0.3)
    body = encoded(make_images()[0][0])
    details = [request(url, "POST", "/api/search", body)[2]["detail"] for _ in range(3)]
    gate.set()
    assert ["took more than" in detail for detail in details] == [True, True, False]
    assert "busy" in details[2]
    for _ in range(100):
        if request(url, "GET", "/api/info")[0] == 200:
            return
        time.sleep(0.05)
    raise AssertionError("the slots are not free again")


def test_time_limit(files, serving, monkeypatch):
    """An answer that takes too long is 503, not an error of the server."""
    index, images = files
    monkeypatch.setattr(SubwindowIndex, "search", lambda *a, **k: time.sleep(1.5))
    url = serving(index, seconds=0.2)
    status, _, answer = request(url, "POST", "/api/search", encoded(images[0]))
    assert (status, answer["detail"]) == (503, "the answer took more than 0.2 seconds")


def test_connections_are_bounded(build, monkeypatch):
    """Serve passes its limits to uvicorn."""
    from okforest.retrieval import server

    configs = []

    def run(self, sockets):
        configs.append((self.config, sockets[0].getsockname()))

    monkeypatch.setattr(server.uvicorn.Server, "run", run)
    server.serve(build(range(2)), port=8123, settings=server.ServerSettings(workers=1, queue=3))
    ((config, address),) = configs
    assert config.limit_concurrency == 4 * (1 + 3) + 64
    assert address == ("127.0.0.1", 8123)
    assert config.http is server.ImpatientProtocol
    assert config.server_header is False


def test_slow_clients_that_have_been_answered(files, serving, caplog, monkeypatch):
    """Half of a second request, or more of a body that nobody reads, does not hold a connection."""
    from okforest.retrieval.server import ImpatientProtocol

    monkeypatch.setattr(ImpatientProtocol, "header_seconds", 1.0)
    url = serving(files[0])
    whole = b"GET /api/info HTTP/1.1\r\nHost: x\r\n"
    for first, rest in (
        (whole + b"\r\n", b"GET / HT"),
        (whole + b"Content-Length: 99\r\n\r\n", b"x"),
    ):
        with connected(url) as client:
            client.sendall(first + rest)
            start = time.monotonic()
            assert read_until_closed(client).startswith(b"HTTP/1.1 200")
            assert time.monotonic() - start < 4  # before uvicorn's own limit for idle connections
    assert "sent no request within 1 seconds" in caplog.text
    client = HTTPConnection(urlsplit(url).netloc, timeout=20)
    client.connect()
    kept = client.sock
    for _ in range(12):  # requests that come in time are answered
        time.sleep(0.1)
        client.request("GET", "/api/info")
        assert client.getresponse().read()
    assert client.sock is kept
    client.close()


def test_clients_that_do_not_read(files, serving, caplog, monkeypatch):
    """An answer that a client does not read does not hold the connection."""
    from okforest.retrieval import server

    monkeypatch.setattr(server.ImpatientProtocol, "reading_seconds", 0.5)
    index, _ = files
    large = index.path / "large.okf"
    large.write_bytes(bytes(2**26))
    monkeypatch.setattr(server, "VOCABULARY", large.name)  # what is sent
    with connected(serving(index)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        client.sendall(b"GET /api/vocabulary HTTP/1.1\r\nHost: x\r\n\r\n")
        until = time.monotonic() + 20
        while "does not read" not in caplog.text:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert len(read_until_closed(client)) < 2**26


def test_clients_that_read_again():
    """The time to read ends when the client has read: nothing closes the connection later."""
    from unittest.mock import Mock

    from okforest.retrieval.server import ImpatientProtocol

    protocol = ImpatientProtocol.__new__(ImpatientProtocol)
    protocol.loop, protocol.flow, protocol.transport = Mock(), Mock(), Mock()
    protocol.pause_writing()
    timer = protocol.loop.call_later.return_value
    assert protocol.loop.call_later.call_args.args[0] == ImpatientProtocol.reading_seconds
    timer.cancel.assert_not_called()
    protocol.resume_writing()
    timer.cancel.assert_called_once_with()
    protocol.flow.resume_writing.assert_called_once_with()


def test_uploads_at_the_same_time():
    """The bodies of all requests together are bounded; later there is room again."""
    from fastapi import HTTPException

    from okforest.retrieval._guards import BoundedBody
    from okforest.retrieval.server import ServerSettings

    async def read(scope, receive, send):
        while (await receive())["more_body"]:
            pass

    guard = BoundedBody(read, ServerSettings(max_bytes=1000, max_body_bytes=2000))
    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    scope |= {"server": ("x", 80), "query_string": b"", "scheme": "http"}

    async def upload(n_bytes, gate):
        async def receive():
            if gate.is_set():
                await asyncio.sleep(0.3)  # until all others have come
                return {"body": b"", "more_body": False}
            gate.set()
            return {"body": bytes(n_bytes), "more_body": True}

        await guard(scope, receive, None)

    async def upload_all(*sizes):
        tasks = [upload(n_bytes, asyncio.Event()) for n_bytes in sizes]
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert asyncio.run(upload_all(900, 900)) == [None, None]
    *taken, refused = asyncio.run(upload_all(900, 900, 900))
    assert taken == [None, None]
    assert isinstance(refused, HTTPException)
    assert (refused.status_code, refused.headers["Connection"]) == (503, "close")
    assert guard.n_bytes == 0
    assert asyncio.run(upload_all(1000, 1000)) == [None, None]


def test_clients_that_go_away(files, serving, caplog):
    """It is a line in the log, not an error of the server."""
    url = serving(files[0])
    with connected(url) as client:
        client.sendall(b"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nabc")
        time.sleep(0.2)
    until = time.monotonic() + 20
    while "the client went away" not in caplog.text:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert "failed" not in caplog.text
