"""What the server refuses: hostile uploads and requests, slow clients, too many at a time."""

import io
import json
import socket
import struct
import zlib
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from PIL import Image

from okforest.retrieval import FederatedIndex, SubwindowIndex
from reference.retrieval import make_images
from reference.web import encoded, request

web = pytest.importorskip("okforest.retrieval.web", reason="the extra serve is not installed")

LOG = "okforest.retrieval.web"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture(scope="module")
def url(shared_index, shared_serving):
    """Return the address of a server that refuses what all tests send."""
    return shared_serving(shared_index, token="t")


@pytest.fixture(scope="module")
def small_url(shared_index, shared_serving):
    """Return the address of a server of uploads of at most a mebibyte."""
    return shared_serving(shared_index, max_bytes=2**20)


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


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (bomb(60_000), 422, "too many pixels; at most 25000000 are read"),
        (bomb(8_000), 422, "8000 × 8000 pixels; at most 25000000 are read"),
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
def test_hostile_uploads(small_url, caplog, body, status, message):
    """Each is refused with a message and a line in the log; the server goes on."""
    with caplog.at_level("WARNING", LOG):
        got, _, answer = request(small_url, "POST", "/api/search", body)
    assert got == status
    assert message in answer["detail"]
    assert any("refused" in record.message for record in caplog.records)
    assert request(small_url, "GET", "/api/info")[0] == 200


def test_the_limit_itself_is_allowed(build, serving):
    """As many bytes as the limit are read, with and without a length; one more is refused."""
    url = serving(build(range(2)), max_bytes=1000)
    for n_bytes, status in ((1000, 422), (1001, 413)):
        body = bytes(n_bytes)
        assert request(url, "POST", "/api/search", body)[0] == status
        assert request(url, "POST", "/api/search", iter([body[:500], body[500:]]))[0] == status


def test_failures_are_not_shown(files, serving, monkeypatch, caplog):
    """What went wrong inside is in the log, not in the answer."""
    index, images = files
    monkeypatch.setattr(SubwindowIndex, "search", lambda *a, **k: {}["secret"])
    url = serving(index)
    status, headers, answer = request(url, "POST", "/api/search", encoded(images[0]))
    assert (status, answer["detail"]) == (500, "the server has failed; its log says why")
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_tokens_are_compared_in_constant_time(monkeypatch):
    """The comparison gets hashes of equal length, whatever is sent."""
    from hmac import compare_digest

    from fastapi import HTTPException, Request

    from okforest.retrieval.web import guards

    seen = []

    def compare(a, b):
        seen.append((len(a), len(b)))
        return compare_digest(a, b)

    monkeypatch.setattr(guards.hmac, "compare_digest", compare)
    for sent in (b"", b"Bearer x", b"Bearer " + b"x" * 5000):
        scope = {"type": "http", "method": "POST", "path": "/", "query_string": b""}
        scope |= {"headers": [(b"authorization", sent)], "server": ("x", 80), "scheme": "http"}
        with pytest.raises(HTTPException):
            guards.check_token(Request(scope), web.ServerSettings(token="s3cret"))
    assert seen == [(32, 32)] * 3


def test_empty_token_is_none(build, serving):
    """A server whose token is empty is read-only, whatever is sent."""
    url = serving(build(range(2)), token="")
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": ""}):
        status, _, answer = request(url, "DELETE", "/api/images/0", **headers)
        assert status == 403
        assert "read-only" in answer["detail"]


def test_a_refusal_is_one_line_of_the_log(caplog):
    """Line breaks in a reason do not make lines of their own."""
    from fastapi import Request

    from okforest.retrieval.web.guards import refusal

    scope = {"type": "http", "method": "GET", "path": "/x\nforged", "query_string": b""}
    scope |= {"headers": [], "server": ("x", 80), "scheme": "http", "client": ("1.2.3.4", 5)}
    with caplog.at_level("WARNING", LOG):
        error = refusal(Request(scope), 422, "wrong\r\nforged: a line")
    assert (error.status_code, error.detail) == (422, "wrong\r\nforged: a line")
    (record,) = caplog.records
    assert "1.2.3.4 refused (422)" in record.getMessage()
    assert len(record.getMessage().splitlines()) == 1


@pytest.mark.parametrize("name", ["../x.png", "/etc/passwd", "a\\b", "..", "", "x" * 201, "a\nb"])
def test_paths_in_names(url, caplog, name):
    """Names with paths, control characters or too many letters are refused."""
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
    for path in ("k=0", "k=9999", "box=1,2,3", "box=a", "n_subwindows=10000000", "k=x"):
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


def test_lengths_of_words(build, serving, images):
    """Leaves without as many times and sizes are refused."""
    index = build(range(3))
    url = serving(index)
    leaves = np.unique(index.reach(images[0]).leaves)
    sizes, generation = index.leaf_sizes(leaves)
    body = {
        "vocabulary": index.vocabulary.key,
        "leaves": leaves.tolist(),
        "times": [1] * len(leaves),
        "sizes": sizes.tolist(),
        "generation": generation,
        "k": 3,
        "labels": None,
        "random_state": 0,
    }
    headers = {"Content-Type": "application/json"}
    assert request(url, "POST", "/api/shard/hits", json.dumps(body), **headers)[0] == 200
    for name in ("times", "sizes"):
        wrong = json.dumps(body | {name: body[name][:-1]})
        status, _, answer = request(url, "POST", "/api/shard/hits", wrong, **headers)
        assert status == 422
        assert "one time and one size for each leaf" in answer["detail"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("sizes", b'{"vocabulary": "x", "leaves": [NaN]}', 422),
        ("sizes", b'{"vocabulary": "x", "leaves": [1e999]}', 422),
        ("sizes", b'{"vocabulary": "x", "leaves": [true]}', 422),
        ("sizes", b'{"vocabulary": 3, "leaves": ["\\ud800"]}', 422),
        ("sizes", b'{"vocabulary": "x", "leaves": [' + b"[]," * 10**6 + b"[]]}", 422),
        ("sizes", b'{"vocabulary": "x", "leaves": [' + b"1," * 10**6 + b"1]}", 422),
        ("sizes", b"[" * 10**6, 422),
        ("sizes", b"[" * 9000, 422),
        ("sizes", b"1" * 10**6, 422),
        ("sizes", b"", 400),
        ("hits", b'{"k": NaN}', 422),
        ("hits", b"[]", 422),
    ],
    ids=range(12),
)
def test_hostile_json(url, caplog, path, body, status):
    """It is refused with a message and headers, whatever it holds."""
    with caplog.at_level("WARNING", LOG):
        got, headers, answer = request(url, "POST", f"/api/shard/{path}", body)
    assert got == status
    assert isinstance(answer["detail"], str)
    assert len(answer["detail"]) < 300
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert any("refused" in record.message for record in caplog.records)


def test_large_json(url):
    """It is refused by its length, before it is sent; the limit is smaller than for pictures."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as client:
        client.sendall(
            b"POST /api/shard/hits HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"
        )
        assert b" 413 " in client.recv(100)


def test_wrong_parameters_are_named(build, serving, caplog):
    """The message is a text, without what was sent."""
    with caplog.at_level("WARNING", LOG):
        status, _, answer = request(serving(build(range(2))), "GET", "/api/images/secret/search")
    assert (status, "path.image: " in answer["detail"], "secret" in answer["detail"]) == (
        422,
        True,
        False,
    )
    assert "refused (422)" in caplog.text


def test_token_needs_its_scheme(build, serving):
    """The secret alone, or with another scheme, is not enough."""
    url = serving(build(range(2)), token="t")
    for sent, status in (("t", 401), ("Basic t", 401), ("Bearer t", 200)):
        assert request(url, "DELETE", "/api/images/0", Authorization=sent)[0] == status


def test_damaged_index(build, serving, images, caplog):
    """The answer is 503, and the log says what is wrong with which file."""
    index = build(range(3))
    url = serving(index)
    path = next(index.path.glob("segment*.okf"))
    with open(path, "r+b") as file:
        file.truncate(1000)
    status, _, answer = request(url, "POST", "/api/search", encoded(images[0]))
    assert (status, "cannot be read" in answer["detail"]) == (503, True)
    assert str(index.path) not in answer["detail"]
    assert f"{path.name} was cut off" in caplog.text


def test_limits_of_additions(build, serving):
    """Pictures that are added are bounded as those that are searched for."""
    index = build(range(2))
    url = serving(index, token="t", max_pixels=400, formats=("JPEG", "PNG"))
    headers = {"Authorization": "Bearer t"}
    large = encoded(np.zeros((24, 20), np.uint8))
    status, _, answer = request(url, "POST", "/api/images?name=a", large, **headers)
    assert status == 422
    assert "at most 400 are read" in answer["detail"]
    file = io.BytesIO()
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(file, "BMP")
    answer = request(url, "POST", "/api/images?name=a", file.getvalue(), **headers)[2]
    assert "known format (JPEG, PNG)" in answer["detail"]
    assert len(SubwindowIndex(index.path)) == 2


def test_hosts(files, serving):
    """A page that resolves its own name to this machine is refused."""
    url = serving(files[0], hosts=("127.0.0.1",))
    assert request(url, "GET", "/api/info")[0] == 200
    for host in ("evil.example", "[::1", "", "127.0.0.1.evil.example"):
        assert request(url, "GET", "/api/info", Host=host)[0] == 400
    url = serving(files[0], hosts=("::1", "localhost"))
    for host in ("[::1]:8000", "[::1]", "localhost:8000", "LOCALHOST"):
        assert request(url, "GET", "/api/info", Host=host)[0] == 200


def test_absolute_paths_are_not_shown(tmp_path, serving, vocabulary):
    """Only the last part of the name of a file outside the root folder is told."""
    path = tmp_path / "private" / "face.png"
    path.parent.mkdir()
    image = make_images()[0][0]
    Image.fromarray(image).save(path)
    index = SubwindowIndex.build(tmp_path / "index", [path], vocabulary=vocabulary)
    assert index.search(image)[0].name == str(path)
    url = serving(index)
    hit = request(url, "POST", "/api/search", encoded(image))[2]["hits"][0]
    assert hit["name"] == "face.png"
    remote = FederatedIndex([web.RemoteIndex(url)]).search(image)[0]
    assert (remote.name, remote.score) == ("face.png", index.search(image)[0].score)
    path.unlink()
    status, _, answer = request(url, "POST", "/api/explain/0", encoded(image))
    assert (status, answer["detail"]) == (422, "face.png does not exist.")
