"""The server under load: slow clients, many requests at a time, late answers."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from okforest.retrieval import SubwindowIndex
from reference.retrieval import make_images
from reference.web import encoded, request

web = pytest.importorskip("okforest.retrieval.web", reason="the extra serve is not installed")


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


def wait_until(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


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
    with pytest.raises(web.RemoteError, match=r"\(413\): the body is larger than 1048576 bytes"):
        web.RemoteIndex(url).search(bytes(32 * 2**20))


def test_large_uploads_that_end_early(build, serving):
    """A connection is closed if the rest of an upload that was refused does not come."""
    url = serving(build(range(2)), max_bytes=2**20)
    with connected(url) as client:
        client.sendall(b"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\nx")
        answer = read_until_closed(client)
    assert answer.startswith(b"HTTP/1.1 413")
    assert answer.endswith(b'send less"}')


def test_slow_clients(files, serving):
    """A client that sends its body too slowly is cut off."""
    url = serving(files[0], upload_seconds=0.3)
    with connected(url) as client:
        client.sendall(b"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\nabc")
        assert b" 408 " in read_until_closed(client)
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
    url = serving(build(range(2)), workers=1, queue=0, seconds=0.3)
    body = encoded(make_images()[0][0])
    details = [request(url, "POST", "/api/search", body)[2]["detail"] for _ in range(2)]
    gate.set()
    assert ["took more than" in detail for detail in details] == [True, False]
    assert "busy" in details[1]
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
    from okforest.retrieval.web import server

    configs = []

    def run(self, sockets):
        configs.append((self.config, sockets[0].getsockname()))

    monkeypatch.setattr(server.uvicorn.Server, "run", run)
    server.serve(build(range(2)), port=8123, settings=web.ServerSettings(workers=1, queue=3))
    ((config, address),) = configs
    assert config.limit_concurrency == 4 * (1 + 3) + 64
    assert address == ("127.0.0.1", 8123)
    assert config.h11_max_incomplete_event_size == 2**16
    assert config.server_header is False


def test_uploads_at_the_same_time(build, serving, monkeypatch):
    """The bodies of all requests together are bounded, but small ones are read in any case."""
    from okforest.retrieval.web import server

    made, make = [], server.Uploads
    monkeypatch.setattr(server, "Uploads", lambda *args: made.append(make(*args)) or made[-1])
    url = serving(build(range(2)), max_bytes=64_000, max_body_bytes=60_000)
    slow = b"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + bytes(59_999)
    small, large = encoded(make_images()[0][0]), bytes(60_000)
    with connected(url) as first:
        first.sendall(slow)
        wait_until(lambda: made[0].n_bytes == 59_999)
        assert request(url, "POST", "/api/search", large)[0] == 503
        assert request(url, "POST", "/api/search", small)[0] == 200
    wait_until(lambda: request(url, "POST", "/api/search", large)[0] == 422)


def test_clients_that_go_away(files, serving, caplog):
    """It is a line in the log, not an error of the server."""
    url = serving(files[0])
    with connected(url) as client:
        client.sendall(b"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nabc")
        time.sleep(0.2)
    wait_until(lambda: "the client went away" in caplog.text)
    assert "failed" not in caplog.text


def test_searches_that_nobody_waits_for(build, serving, monkeypatch, caplog):
    """They leave the queue when the client goes away, and are not computed."""
    gate, searched = threading.Event(), []
    monkeypatch.setattr(
        SubwindowIndex, "search", lambda *a, **k: searched.append(1) or (gate.wait(60) and [])
    )
    url = serving(build(range(2)), workers=1, queue=3)
    body = encoded(make_images()[0][0])
    head = f"POST /api/search HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with ExitStack() as clients:
        for _ in range(4):
            clients.enter_context(connected(url)).sendall(head + body)
        wait_until(lambda: request(url, "GET", "/api/info")[0] == 503)
    wait_until(lambda: caplog.text.count("went away before it had its answer") == 4)
    # The first is computed; the others have left, so that there are places.
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(request, url, "GET", "/api/info") for _ in range(3)]
        gate.set()
        assert [one.result()[0] for one in waiting] == [200] * 3
    assert searched == [1]
