"""The server: searches, explanations, the page, changes."""

import gc
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from okforest.retrieval import PictureError, SubwindowIndex
from okforest.retrieval.store import Snapshot
from reference.retrieval import make_images
from reference.web import encoded, request

web = pytest.importorskip("okforest.retrieval.web", reason="the extra serve is not installed")


def test_search(files, serving):
    """Uploads, images of the index and parts of both are searched for."""
    index, images = files
    url = serving(index)
    status, _, answer = request(url, "POST", "/api/search?k=3", encoded(images[1]))
    assert status == 200
    assert answer["milliseconds"] > 0
    expected = index.search(images[1], 3)
    assert [(h["name"], h["score"]) for h in answer["hits"]] == [
        (h.name, h.score) for h in expected
    ]
    assert answer["hits"][0].keys() == {"id", "name", "label", "score", "height", "width"}
    image = expected[0].id
    status, _, again = request(url, "GET", f"/api/images/{image}/search?k=3")
    assert [hit["id"] for hit in again["hits"]] == [hit.id for hit in index.search(image, 3)]
    status, _, part = request(url, "POST", "/api/search?box=2,3,12,10", encoded(images[1]))
    assert (part["query_width"], part["query_height"]) == (12, 10)
    crop = np.ascontiguousarray(images[1][3:13, 2:14])
    assert [hit["score"] for hit in part["hits"]] == [hit.score for hit in index.search(crop)]
    status, _, only = request(url, "POST", "/api/search?label=class+2", encoded(images[1]))
    assert {hit["label"] for hit in only["hits"]} <= {"class 2"}
    assert web.RemoteIndex(url).search(encoded(images[1]), 3) == expected


def test_explain(files, serving):
    """The pairs of boxes equal the index's."""
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


def test_parts_and_labels_of_indexed_images(index_files, serving):
    """A part of an image of the index, and a filter, are used in searches and explanations."""
    images, labels = make_images(8)
    index = index_files(images, labels)
    url = serving(index)
    row = index.row("class 1/1.png")
    crop = np.ascontiguousarray(images[1][3:13, 2:14])
    answer = request(url, "GET", f"/api/images/{row.id}/search?box=2,3,12,10")[2]
    assert [hit["score"] for hit in answer["hits"]] == [hit.score for hit in index.search(crop)]
    answer = request(url, "GET", f"/api/images/{row.id}/search?label=class+2")[2]
    assert {hit["label"] for hit in answer["hits"]} == {"class 2"}
    hit = index.search(crop)[0]
    expected = index.explain(crop, hit)
    for method, path, body in (
        ("POST", f"/api/explain/{hit.id}", encoded(images[1])),
        ("GET", f"/api/images/{row.id}/explain/{hit.id}", None),
    ):
        answer = request(url, method, f"{path}?box=2,3,12,10", body)[2]
        assert answer["score"] == expected.score
        assert [match["query"] for match in answer["matches"]] == expected.query_boxes.tolist()


def test_thumbnails_are_kept_by_browsers(files, serving):
    """The number of an image is never used again, so that its thumbnail stays valid."""
    _, headers, _ = request(serving(files[0]), "GET", "/api/images/3/thumbnail")
    assert headers["Cache-Control"] == "public, max-age=86400"
    assert headers["ETag"] == f'"{files[0].row(3).hash.hex()}"'


def test_thumbnails_are_enlarged(index_files, serving):
    """An image without its file is searched for at its own size."""
    index = index_files(*make_images(4), thumbnail_side=8)
    row = next(index.rows())
    (index.path.parent / "pictures" / row.name).unlink()
    answer = request(serving(index), "GET", f"/api/images/{row.id}/search")[2]
    assert (answer["query_height"], answer["query_width"]) == (24, 20)


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


def test_scripts_are_those_of_the_server(build, serving):
    """No inline script and no other source is allowed."""
    policy = request(serving(build(range(2))), "GET", "/")[1]["Content-Security-Policy"]
    rules = dict(part.split(" ", 1) for part in policy.split("; "))
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"


def test_writable(build, serving):
    """The page learns whether changes are allowed."""
    index = build(range(2))
    assert web.RemoteIndex(serving(index)).info()["writable"] is False
    assert web.RemoteIndex(serving(index, token="t")).info()["writable"] is True


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
    client = web.RemoteIndex(url, token="s3cret")
    assert client.add(image, "new.png", "new") == {"added": 1, "replaced": 0, "unchanged": 0}
    assert client.add(image, "new.png", "new")["unchanged"] == 1
    assert client.info()["images"] == 9
    hit = client.search(image, 1)[0]
    assert (hit.name, hit.label) == ("new.png", "new")
    client.remove(hit.id)
    assert client.info()["images"] == 8
    with pytest.raises(web.RemoteError, match=r"\(404\): the index has no image"):
        client.remove(hit.id)
    assert request(url, "GET", f"/api/images/{hit.id}/thumbnail")[0] == 404


def test_wrong_token_of_a_client(build, serving):
    """A client with a wrong token gets the reason."""
    index = build(range(2))
    with pytest.raises(web.RemoteError, match=r"\(401\): changes need the header"):
        web.RemoteIndex(serving(index, token="t"), token="x").remove(0)


def test_many_changes(files, serving):
    """Changes at the same time wait for each other; small segments are merged now and then."""
    index, _ = files
    client = web.RemoteIndex(serving(index, token="t"), token="t")
    pictures = [encoded(image) for image in make_images(24, seed=7)[0]]
    names = [f"{i}.png" for i in range(24)]
    with ThreadPoolExecutor(4) as pool:
        assert all(one["added"] for one in pool.map(client.add, pictures, names))
    index.refresh()
    assert len(index) == 32
    assert len(index.snapshot.segments) <= 16
    assert "5.png" in {hit.name for hit in client.search(pictures[5], 12)}


def test_large_segments_are_not_rewritten(build, serving, monkeypatch):
    """Only small segments are merged when pictures are added one by one."""
    from okforest.retrieval.web import service

    monkeypatch.setattr(service, "MAX_MERGED_IMAGES", 5)
    index = build(range(6))
    large = index.snapshot.segments[0].file
    client = web.RemoteIndex(serving(index, token="t"), token="t")
    for i, image in enumerate(make_images(18, seed=7)[0]):
        client.add(encoded(image), f"new {i}")
    index.refresh()
    assert index.snapshot.segments[0].file == large
    assert len(index.snapshot.segments) <= 17


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


def test_another_writer(build, serving):
    """While another process writes, a change is refused with 503 and the advice to come back."""
    index = build(range(3))
    url = serving(SubwindowIndex(index.path), token="t")
    body = encoded(make_images()[0][5])
    with index._store.lock():
        status, headers, answer = request(
            url, "POST", "/api/images?name=new", body, Authorization="Bearer t"
        )
    assert (status, headers["Retry-After"]) == (503, "1")
    assert "another change is being written" in answer["detail"]


def test_other_writers_are_seen(files, serving):
    """Images that another process adds are found by the next search."""
    index, _ = files
    url = serving(SubwindowIndex(index.path))
    image = make_images(seed=6)[0][0]
    index.add([image], names=["late"])
    assert request(url, "POST", "/api/search", encoded(image))[2]["hits"][0]["name"] == "late"


def test_images_to_start_with(files, serving):
    """Some images, spread over the index, without those that were removed."""
    index, _ = files
    url = serving(index)
    images = request(url, "GET", "/api/images?k=4")[2]["images"]
    assert [image["label"] for image in images] == ["class 0", "class 1", "class 2", "class 3"]
    assert images[0].keys() == {"id", "name", "label", "height", "width"}
    index.remove([images[0]["name"]])
    names = [image["name"] for image in request(url, "GET", "/api/images")[2]["images"]]
    assert sorted(names) == sorted(row.name for row in index.rows())
    index.remove(names)
    assert request(url, "GET", "/api/images")[2]["images"] == []


def test_client_takes_files_arrays_and_names(files, serving, tmp_path):
    """As an index in a folder does: files, arrays, numbers and hits; images go by their names."""
    index, images = files
    client = web.RemoteIndex(serving(index, token="t"), token="t")
    path = index.path.parent / "pictures" / "class 1" / "1.png"
    expected = index.search(path)
    for query in (path, str(path), images[1], path.read_bytes()):
        assert client.search(query) == expected
    number = index.row("class 1/1.png").id
    for query in (number, expected[0]):
        assert client.search(query, n_subwindows=30) == index.search(query, n_subwindows=30)
    new = make_images(seed=5)[0]
    (tmp_path / "new.png").write_bytes(encoded(new[0]))
    assert client.add(tmp_path / "new.png")["added"] == 1
    assert client.add(new[1], "array", "class 1")["added"] == 1
    assert client.remove(["new.png", client.search(new[1], 1)[0]]) == 2
    assert client.remove("class 1/1.png") == 1
    with pytest.raises(web.RemoteError, match=r"\(404\): the index has no image 'new.png'$"):
        client.remove("new.png")
    with pytest.raises(ValueError, match="the picture is not a file and has no name; pass one"):
        client.add(new[0])
    with pytest.raises(PictureError, match=r"missing.png cannot be read: No such file"):
        client.search(tmp_path / "missing.png")


def test_pictures_that_were_sent(files, serving):
    """They are searched for by their thumbnails; an explanation says why there is none."""
    index, images = files
    url = serving(index, token="t")
    web.RemoteIndex(url, token="t").add(make_images(seed=5)[0][0], "new.png")
    image = max(row.id for row in SubwindowIndex(index.path).rows())
    assert request(url, "GET", f"/api/images/{image}/search")[0] == 200
    status, _, answer = request(url, "POST", f"/api/explain/{image}", encoded(images[0]))
    assert status == 422
    assert "the pixels of new.png are not kept" in answer["detail"]


def test_schema(files, serving):
    """It has the bodies of uploads, the token, the statuses of refusals and the types of files."""
    schema = request(serving(files[0]), "GET", "/openapi.json")[2]
    paths = schema["paths"]
    for path in ("/api/search", "/api/explain/{hit}", "/api/images"):
        assert "application/octet-stream" in paths[path]["post"]["requestBody"]["content"]
        assert {"400", "413", "422", "503"} <= paths[path]["post"]["responses"].keys()
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path, method in (("/api/images", "post"), ("/api/images/{image}", "delete")):
        assert paths[path][method]["security"] == [{"token": []}]
        assert {"401", "403"} <= paths[path][method]["responses"].keys()
    thumbnail = paths["/api/images/{image}/thumbnail"]["get"]["responses"]["200"]["content"]
    assert "image/jpeg" in thumbnail
    assert "security" not in paths["/api/search"]["post"]


def test_forms_and_heads(files, serving):
    """A form is refused with the way to send a picture; HEAD is answered without content."""
    url = serving(files[0])
    kind = "multipart/form-data; boundary=x"
    status, _, answer = request(url, "POST", "/api/search", b"--x--", **{"Content-Type": kind})
    assert status == 415
    assert "the body is a form; send the bytes of the picture alone" in answer["detail"]
    status, headers, content = request(url, "HEAD", "/")
    assert (status, content) == (200, b"")
    assert headers["Content-Type"].startswith("text/html")


def test_port_in_use(build):
    """One error says so, before anything is announced."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on port {port} of 127.0.0.1: it is in"):
            web.serve(build(range(2)), port=port, ready=lambda: pytest.fail("it does not listen"))
