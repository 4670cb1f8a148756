"""Pictures that are decoded in another process, and processes that are killed."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageOps

from okforest.retrieval import PictureError
from okforest.retrieval.decoder import Decoder, ExpensivePictureError
from okforest.retrieval.pictures import FORMATS, Limits, read_picture
from reference.retrieval import make_images
from reference.web import encoded, request

PPM = b"P2\n5 5\n255\n" + b"#\n" * 2**20 + b"1 " * 25


@pytest.fixture
def decoder():
    one = Decoder(60.0)
    yield one
    one.close()


def test_pixels_are_the_same(decoder, tmp_path):
    """Those of Pillow, whatever the mode and the format, from a file and from memory."""
    rng = np.random.default_rng(0)
    colour, grey = rng.integers(0, 256, (20, 30, 3)).astype(np.uint8), np.uint8(255) * np.eye(20)
    deep = (np.arange(20 * 30).reshape(20, 30) * 100).astype(np.uint16)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    pictures = {
        **{f"{kind}.{kind}": (Image.fromarray(colour), {}) for kind in FORMATS},
        "grey.png": (Image.fromarray(grey.astype(np.uint8)), {}),
        "deep.png": (Image.fromarray(deep), {}),
        "deep.tiff": (Image.fromarray(deep), {}),
        "turned.jpg": (Image.fromarray(colour), {"exif": exif}),
        "palette.png": (Image.fromarray(colour).convert("P"), {}),
        "transparent.png": (Image.new("LA", (9, 8)), {}),
        "bits.png": (Image.new("1", (9, 8)), {}),
        "text.ppm": (Image.fromarray(colour), {}),
    }
    for name, (image, options) in pictures.items():
        path = tmp_path / name
        image.save(path, **options)
        with Image.open(path) as opened:
            upright = ImageOps.exif_transpose(opened)
            mode = "L" if upright.mode in ("1", "L", "LA") else "RGB"
            expected = np.asarray(upright.convert(mode))
        if name.startswith("deep"):
            expected = (deep >> 8).astype(np.uint8)
        expected = np.atleast_3d(expected)
        ways = [read_picture(path), read_picture(path, decoder=decoder)]
        if not name.endswith("ppm"):
            ways.append(read_picture(path.read_bytes(), Limits(), decoder=decoder))
        for found in ways:
            assert found.shape == expected.shape, name
            assert np.array_equal(found, expected), name


def test_errors_are_the_same(decoder, tmp_path):
    """The messages are the same as in this process; the decoder goes on."""
    good = encoded(make_images()[0][0])
    (tmp_path / "é.png").touch()
    sources = [b"text", good[:-200], PPM, b"\x89PNG\r\n\x1a\n", b"GIF89a" + bytes(20)]
    sources += [tmp_path / "missing.png", *tmp_path.iterdir(), tmp_path, "\0"]
    for source in sources:
        with pytest.raises(PictureError) as in_process:
            read_picture(source, Limits())
        with pytest.raises(PictureError) as in_decoder:
            read_picture(source, Limits(), decoder=decoder)
        assert str(in_decoder.value).split(" at 0x")[0] == str(in_process.value).split(" at 0x")[0]
    process = decoder.process
    assert read_picture(good, Limits(), decoder=decoder).shape == (24, 20, 1)
    assert decoder.process is process


def test_pictures_that_take_too_long(decoder):
    """The process is killed within its decoding, and replaced; so is one above its pixels."""
    decoder.seconds = 0.05
    with pytest.raises(ExpensivePictureError):
        decoder.decode(PPM, "x", ("PPM",), 100)
    decoder.seconds = 60.0
    good = encoded(make_images()[0][0])
    assert read_picture(good, Limits(), decoder=decoder).shape == (24, 20, 1)
    decoder.affordable = 24 * 20 - 1
    with pytest.raises(ExpensivePictureError):
        read_picture(good, Limits(), decoder=decoder)


def test_decoders_that_die(decoder):
    """A picture that ends the process is refused, and the next one is decoded."""
    good = encoded(make_images()[0][0])
    process = decoder.start()
    process.kill()
    process.wait()
    with pytest.raises(PictureError, match=r"cannot be read: its decoder ended \(-9\)"):
        read_picture(good, Limits(), decoder=decoder)
    assert read_picture(good, Limits(), decoder=decoder).shape == (24, 20, 1)


def test_a_decoder_dies_with_its_server():
    """Even if that is killed; Ctrl-C does not get to it."""
    code = """
import time
from okforest.retrieval.decoder import Decoder
decoder = Decoder(60.0)
print(decoder.start().pid, flush=True)
time.sleep(60)
"""
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with server:
        child = int(server.stdout.readline())
        assert os.getpgid(child) == child
        server.kill()
    until = time.monotonic() + 30
    while alive(child):
        assert time.monotonic() < until
        time.sleep(0.05)


def alive(process):
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        os.kill(process, 0)
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_text_is_not_a_picture(build, serving):
    """The numbers of a PPM as text, with comments, take quadratic time: they are not decoded."""
    pytest.importorskip("fastapi", reason="FastAPI is not installed")
    index = build(range(2))
    with pytest.raises(PictureError, match=r"known format \(BMP, GIF, JPEG, PNG, TIFF, WEBP\)"):
        index.search(PPM)
    url = serving(index, token="t")
    for path in ("/api/search", "/api/images?name=x"):
        status, _, answer = request(url, "POST", path, PPM, Authorization="Bearer t")
        assert status == 422
        assert "known format (BMP, GIF, JPEG, PNG, TIFF, WEBP)" in answer["detail"]


def test_large_pictures_do_not_hold_up_small_ones(build, serving, monkeypatch):
    """They are decoded one at a time, beside the others."""
    server = pytest.importorskip("okforest.retrieval.web.server", reason="without the extra serve")
    from okforest.retrieval.web import RemoteIndex

    monkeypatch.setattr(server, "QUICK_PIXELS", 1000)
    decoders = []
    start = Decoder.start
    monkeypatch.setattr(Decoder, "start", lambda self: decoders.append(self) or start(self))
    index = build(range(6))
    url = serving(index, workers=1, queue=9)
    small, large = make_images()[0][0], make_images()[0][0].repeat(4, 0).repeat(4, 1)
    for picture in (small, large):
        assert RemoteIndex(url).search(encoded(picture)) == index.search(picture)
    *_, slow = {id(one): one for one in decoders if one.affordable > 1000}.values()
    os.kill(slow.process.pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(8) as pool:
            waiting = [
                pool.submit(request, url, "POST", "/api/search", encoded(large)) for _ in range(2)
            ]
            for _ in range(5):
                assert request(url, "POST", "/api/search", encoded(small))[0] == 200
            assert not any(one.done() for one in waiting)
            os.kill(slow.process.pid, signal.SIGCONT)
            assert [one.result()[0] for one in waiting] == [200, 200]
    finally:
        os.kill(slow.process.pid, signal.SIGCONT)
