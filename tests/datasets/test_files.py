"""Where files are looked for, and what is said when they are not there."""

import hashlib
import sys
from pathlib import Path

import pooch
import pytest

from okforest.datasets import fetch_cora, fetch_tecator, fetch_usps
from okforest.datasets._files import Source

TEXT = b"some text"


def make_source(**downloads):
    return Source(
        "things", "Things", "All of them.", "A. Author, 2000.", "a shop", "Free.", downloads
    )


@pytest.fixture
def address(tmp_path):
    """Return the address and checksum of a file that can be downloaded, without a network."""
    published = tmp_path / "published.txt"
    published.write_bytes(TEXT)
    return published, hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def retrieve(monkeypatch):
    """Let pooch copy local files, for its own downloads need a server."""

    def copy(url, output, _):
        Path(output).write_bytes(Path(url).read_bytes())

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda url, **_: copy)


def test_folder_first(folder, write):
    """The user's file is taken as it is."""
    write("things/a.txt", "mine")
    source = make_source(**{"a.txt": ("https://127.0.0.1:9/a.txt", "0" * 64)})
    assert source.path("a.txt") == folder / "things" / "a.txt"
    with source.open("b.txt", "a.txt") as file:
        assert file.read() == "mine"


def test_downloads_are_kept(folder, address, retrieve, monkeypatch):
    """A file is downloaded once, verified, and then found in the cache."""
    published, checksum = address
    source = make_source(**{"a.txt": (str(published), checksum)})
    path = source.path("a.txt")
    assert path.read_bytes() == TEXT
    assert folder.parent / "cache" in path.parents
    published.unlink()
    assert source.path("a.txt") == path
    monkeypatch.delenv("OKFOREST_DATA")
    assert source.path("a.txt") == path


def test_wrong_checksum(folder, address, retrieve):
    """Another file at the address is refused, and not kept."""
    published, _ = address
    source = make_source(**{"a.txt": (str(published), "0" * 64)})
    for _ in range(2):
        with pytest.raises(OSError, match=r"(?s)downloading .* failed: .*(hash|SHA).*Get it from"):
            source.path("a.txt")


def test_no_network(folder):
    """What cannot be downloaded can be put in place by hand."""
    source = make_source(**{"a.txt": ("http://127.0.0.1:9/a.txt", "0" * 64)})
    message = r"(?s)downloading http://127.0.0.1:9/a.txt failed.*things/a.txt .*OKFOREST_DATA"
    with pytest.raises(OSError, match=message):
        source.path("a.txt")


def test_no_pooch(folder, monkeypatch):
    """Without pooch, the error names the extra."""
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install okforest\[data\].*usps/zip.train.gz"):
        fetch_usps()
    with pytest.raises(FileNotFoundError, match=r"tecator/tecator.csv.gz .*OKFOREST_DATA"):
        fetch_tecator()


def test_no_address(folder):
    """A file without a published address: where it comes from, and where to put it."""
    message = r"no file cora/cora.npz .*source \(the archive of Shchur.*OKFOREST_DATA names"
    with pytest.raises(FileNotFoundError, match=message):
        fetch_cora()


def test_description():
    """The description has source, citation and terms."""
    text = make_source().text
    assert text.startswith("Things\n======\n\nAll of them.")
    for line in ("Source: a shop", "Citation: A. Author, 2000.", "Terms: Free."):
        assert line in text
