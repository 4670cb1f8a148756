"""The server: answers, limits, hostile requests, changes."""

import gc
import http.client
import io
import json
import socket
import struct
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from okforest.retrieval import RemoteError, RemoteIndex, SubwindowIndex
from okforest.retrieval._store import Snapshot
from reference.retrieval import make_images

pytest.importorskip("fastapi", reason="FastAPI is not installed")

LOG = "okforest.retrieval.server"


def encoded(image, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind)
    return file.getvalue()


def request(url, method, path, body=None, **headers):
    """Return the status, the headers and the content of an answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=90)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if "json" in answer.getheader("Content-Type", ""):
        content = json.loads(content)
    return answer.status, answer.headers, content


@pytest.fixture
def files(tmp_path, vocabulary):
    """Return an index of files, and the images."""
    images, labels = make_images(8)
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        (tmp_path / "pictures" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "pictures" / label / f"{i}.png")
    index = SubwindowIndex.build(tmp_path / "index", tmp_path / "pictures", vocabulary=vocabulary)
    return index, images


def test_search(files, serving):
    """Uploads, images of the index and parts of both are searched for."""
    index, images = files
    url = serving(index)
    status, _, answer = request(url, "POST", "/api/search?top=3", encoded(images[1]))
    assert status == 200
    assert answer["milliseconds"] > 0
    expected = index.search(images[1], 3)
    assert [(h["name"], h["score"]) for h in answer["hits"]] == [
        (h.name, h.score) for h in expected
    ]
    assert answer["hits"][0].keys() == {"id", "name", "label", "score", "height", "width"}
    image = expected[0].id
    status, _, again = request(url, "GET", f"/api/images/{image}/search?top=3")
    assert [hit["id"] for hit in again["hits"]] == [hit.id for hit in index.search(image, 3)]
    status, _, part = request(url, "POST", "/api/search?box=2,3,12,10", encoded(images[1]))
    assert (part["query_width"], part["query_height"]) == (12, 10)
    crop = np.ascontiguousarray(images[1][3:13, 2:14])
    assert [hit["score"] for hit in part["hits"]] == [hit.score for hit in index.search(crop)]
    status, _, only = request(url, "POST", "/api/search?label=class+2", encoded(images[1]))
    assert {hit["label"] for hit in only["hits"]} <= {"class 2"}
    assert RemoteIndex(url).search(encoded(images[1]), 3) == expected


def test_explain(files, serving):
    """The pairs of boxes are those of the index."""
    index, images = files
    url = serving(index)
    hit = index.search(images[1])[0]
    expected = index.explain(images[1], hit)
    for answer in (
        request(url, "POST", f"/api/explain/{hit.id}", encoded(images[1]))[2],
        request(url, "GET", f"/api/images/{index.row('class 1/1.png').id}/explain/{hit.id}")[2],
    ):
        assert answer["score"] == expected.score
        assert [match["query"] for match in answer["matches"]] == expected.query_boxes.tolist()
        assert [match["hit"] for match in answer["matches"]] == expected.hit_boxes.tolist()


def test_images_without_files(files, serving):
    """If a file is gone, its thumbnail is searched for; an explanation says what is missing."""
    index, _ = files
    url = serving(index)
    row = index.row("class 1/1.png")
    (index.path.parent / "pictures" / "class 1" / "1.png").unlink()
    status, _, answer = request(url, "GET", f"/api/images/{row.id}/search")
    assert (status, answer["query_height"]) == (200, 24)
    status, _, answer = request(url, "GET", f"/api/images/0/explain/{row.id}")
    assert status == 422
    assert "1.png does not exist" in answer["detail"]


def test_page_and_headers(files, serving):
    """The page, its parts and every answer have headers that protect them; no CORS."""
    url = serving(files[0])
    for path, kind in (
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/page.css", "text/css"),
        ("/icon.svg", "image/svg"),
        ("/api/info", "application/json"),
        ("/api/images/0/thumbnail", "image/jpeg"),
        ("/openapi.json", "application/json"),
        ("/nothing", "application/json"),
    ):
        status, headers, content = request(url, "GET", path, Origin="http://evil.example")
        assert status == (404 if path == "/nothing" else 200)
        assert headers["Content-Type"].startswith(kind)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "Access-Control-Allow-Origin" not in headers
        if path in ("/", "/page.js", "/page.css"):
            text = content.decode()
            assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
            assert "https://" not in text
    schema = request(url, "GET", "/openapi.json")[2]
    assert all(
        one.get("summary") for methods in schema["paths"].values() for one in methods.values()
    )
    assert request(url, "GET", "/docs")[0] == 404


def bomb(side):
    """Return a PNG of a few kilobytes that claims a million times as many pixels."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    data = zlib.compress(bytes(10**6))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (bomb(60_000), 422, "too many pixels; at most 50000000 are read"),
        (bomb(8_000), 422, "8000 × 8000 pixels; at most 50000000 are read"),
        (encoded(make_images()[0][0])[:-200], 422, "cannot be read as a picture"),
        (
            encoded(make_images(side=(64, 64))[0][0], "JPEG")[:500],
            422,
            "cannot be read as a picture",
        ),
        (b"just a letter", 422, "is not a picture in a known format"),
        (SVG, 422, "is not a picture in a known format"),
        (b"%PDF-1.4 " + bytes(100), 422, "is not a picture in a known format"),
        (b"GIF89a" + bytes(20), 422, "picture"),
        (encoded(np.zeros((1, 50), np.uint8)), 422, "smaller than any window"),
        (b"", 400, "the request has no body"),
        (bytes(2**20 + 1), 413, "larger than 1048576 bytes, the limit of this server"),
    ],
    ids=[
        "bomb",
        "small bomb",
        "png",
        "jpeg",
        "text",
        "svg",
        "pdf",
        "gif",
        "thin",
        "empty",
        "large",
    ],
)
def test_hostile_uploads(files, serving, caplog, body, status, message):
    """Each is refused with a message and a line in the log; the server goes on."""
    url = serving(files[0], max_bytes=2**20)
    with caplog.at_level("WARNING", LOG):
        got, _, answer = request(url, "POST", "/api/search", body)
    assert got == status
    assert message in answer["detail"]
    assert any("refused" in record.message for record in caplog.records)
    assert request(url, "GET", "/api/info")[0] == 200


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


def test_time_limit(files, serving, monkeypatch):
    """An answer that takes too long is 503, not an error of the server."""
    index, images = files
    monkeypatch.setattr(SubwindowIndex, "search", lambda *a, **k: time.sleep(1.5))
    url = serving(index, seconds=0.2)
    status, _, answer = request(url, "POST", "/api/search", encoded(images[0]))
    assert (status, answer["detail"]) == (503, "the answer took more than 0.2 seconds")


def test_failures_are_not_shown(files, serving, monkeypatch, caplog):
    """What went wrong inside is in the log, not in the answer."""
    index, images = files
    monkeypatch.setattr(SubwindowIndex, "search", lambda *a, **k: {}["secret"])
    url = serving(index)
    status, _, answer = request(url, "POST", "/api/search", encoded(images[0]))
    assert (status, answer["detail"]) == (500, "the server has failed; its log says why")


def test_changes_need_the_token(files, serving, caplog):
    """Without a token, with a wrong one, and with the right one."""
    index, _ = files
    image = encoded(make_images(seed=5)[0][0])
    url = serving(index, token="s3cret")
    add = "/api/images?name=new.png&label=new"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cre"}):
        for method, path in (("POST", add), ("DELETE", "/api/images/0")):
            status, _, answer = request(url, method, path, image, **headers)
            assert status == 401
            assert "right token" in answer["detail"]
    assert len(SubwindowIndex(index.path)) == 8
    assert "s3cret" not in caplog.text
    client = RemoteIndex(url, token="s3cret")
    assert client.add(image, "new.png", "new") == {"added": 1, "replaced": 0, "unchanged": 0}
    assert client.add(image, "new.png", "new")["unchanged"] == 1
    assert client.info()["images"] == 9
    hit = client.search(image, 1)[0]
    assert (hit.name, hit.label) == ("new.png", "new")
    client.remove(hit.id)
    assert client.info()["images"] == 8
    with pytest.raises(RemoteError, match=r"\(404\): the index has no image"):
        client.remove(hit.id)
    assert request(url, "GET", f"/api/images/{hit.id}/thumbnail")[0] == 404


def test_many_changes(files, serving):
    """Changes at the same time wait for each other; small segments are merged now and then."""
    index, _ = files
    client = RemoteIndex(serving(index, token="t"), token="t")
    pictures = [encoded(image) for image in make_images(24, seed=7)[0]]
    names = [f"{i}.png" for i in range(24)]
    with ThreadPoolExecutor(4) as pool:
        assert all(one["added"] for one in pool.map(client.add, pictures, names))
    index.refresh()
    assert len(index) == 32
    assert len(index.snapshot.segments) <= 16
    assert "5.png" in {hit.name for hit in client.search(pictures[5], 12)}


def test_old_snapshots_are_freed(files, serving):
    """Refused requests do not keep the state of the index that they saw, not even for a while."""
    index, _ = files
    url = serving(index, token="t")
    pictures = [encoded(image) for image in make_images(6, seed=7)[0]]
    gc.collect()
    gc.disable()
    try:
        for i, picture in enumerate(pictures):
            path = f"/api/images?name={i}"
            assert request(url, "POST", path, picture, Authorization="Bearer t")[0] == 200
            for method, path in (("DELETE", "/api/images/999"), ("GET", "/api/images/999/search")):
                assert request(url, method, path, Authorization="Bearer t")[0] == 404
        alive = [one for one in gc.get_objects() if isinstance(one, Snapshot)]
    finally:
        gc.enable()
    root = index.snapshot.manifest.root
    assert sum(one.manifest.root == root for one in alive) <= 2


def test_tokens_are_compared_in_constant_time(monkeypatch):
    """The comparison gets hashes of equal length, whatever is sent."""
    from hmac import compare_digest

    from fastapi import HTTPException, Request

    from okforest.retrieval import _guards
    from okforest.retrieval.server import ServerSettings

    seen = []

    def compare(a, b):
        seen.append((len(a), len(b)))
        return compare_digest(a, b)

    monkeypatch.setattr(_guards.hmac, "compare_digest", compare)
    for sent in (b"", b"Bearer x", b"Bearer " + b"x" * 5000):
        scope = {"type": "http", "method": "POST", "path": "/", "query_string": b""}
        scope |= {"headers": [(b"authorization", sent)], "server": ("x", 80), "scheme": "http"}
        with pytest.raises(HTTPException):
            _guards.check_token(Request(scope), ServerSettings(token="s3cret"))
    assert seen == [(32, 32)] * 3


@pytest.mark.parametrize("name", ["../x.png", "/etc/passwd", "a\\b", "..", "", "x" * 201, "a\nb"])
def test_paths_in_names(files, serving, caplog, name):
    """Names with paths, control characters or too many letters are refused."""
    from urllib.parse import quote

    url = serving(files[0], token="t")
    path = f"/api/images?name={quote(name, safe='')}"
    status, _, answer = request(url, "POST", path, b"x", Authorization="Bearer t")
    assert status == 422
    assert "is not allowed" in answer["detail"]
    assert "refused" in caplog.text


def test_wrong_parameters(files, serving, vocabulary):
    """Numbers out of range and unknown images are refused; paths lead nowhere."""
    index, images = files
    url = serving(index)
    body = encoded(images[0])
    for path in ("top=0", "top=9999", "box=1,2,3", "box=a", "n_subwindows=10000000", "top=x"):
        assert request(url, "POST", f"/api/search?{path}", body)[0] == 422
    for path in ("/api/images/99/search", "/api/images/-1/search", "/api/images/99/thumbnail"):
        assert request(url, "GET", path)[0] == 404
    for path in ("/../manifest.okf", "/%2e%2e/manifest.okf", "/static/page.html", "/manifest.okf"):
        assert request(url, "GET", path)[0] == 404
    assert request(url, "POST", "/api/search?box=900,900,5,5", body)[0] == 422
    key = vocabulary.key
    for leaves, key_sent in (([3, 2], key), ([-1], key), ([2**31], key), ([1], "other")):
        message = json.dumps({"vocabulary": key_sent, "leaves": leaves})
        headers = {"Content-Type": "application/json"}
        assert request(url, "POST", "/api/shard/sizes", message, **headers)[0] == 422


def test_hosts(files, serving):
    """A page that resolves its own name to this machine is refused."""
    url = serving(files[0], hosts=("127.0.0.1",))
    assert request(url, "GET", "/api/info")[0] == 200
    assert request(url, "GET", "/api/info", Host="evil.example")[0] == 400


def test_other_writers_are_seen(files, serving):
    """Images that another process adds are found by the next search."""
    index, _ = files
    url = serving(SubwindowIndex(index.path))
    image = make_images(seed=6)[0][0]
    index.add([image], names=["late"])
    assert request(url, "POST", "/api/search", encoded(image))[2]["hits"][0]["name"] == "late"


def test_absolute_paths_are_not_shown(tmp_path, serving, vocabulary):
    """Only the last part of the name of a file outside the root folder is told."""
    path = tmp_path / "private" / "face.png"
    path.parent.mkdir()
    image = make_images()[0][0]
    Image.fromarray(image).save(path)
    index = SubwindowIndex.build(tmp_path / "index", [path], vocabulary=vocabulary)
    assert index.search(image)[0].name == str(path)
    hit = request(serving(index), "POST", "/api/search", encoded(image))[2]["hits"][0]
    assert hit["name"] == "face.png"
