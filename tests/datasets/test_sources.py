"""Where files are searched, and the errors when they are missing."""

import hashlib
import sys
from pathlib import Path

import pooch
import pytest

from okforest.datasets import fetch_usps, load_cora, load_tecator, load_ucr
from okforest.datasets.sources import Source

TEXT = b"some text"


def make_source(**downloads):
    return Source(
        "things", "Things", "All of them.", "A. Author, 2000.", "a shop", "Free.", downloads
    )


@pytest.fixture
def address(tmp_path):
    """Return the URL and checksum of a file that can be downloaded without a network."""
    published = tmp_path / "published.txt"
    published.write_bytes(TEXT)
    return published, hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def retrieve(monkeypatch):
    """Make pooch copy local files instead of downloading from a server."""

    def copy(url, output, _):
        Path(output).write_bytes(Path(url).read_bytes())

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda url, **_: copy)


def test_folder_first(folder, write):
    """The user's file is used, with a warning if it differs from the published one."""
    write("things/a.txt", "mine")
    write("things/c.txt", TEXT.decode())
    checksums = {"a.txt": "0" * 64, "c.txt": hashlib.sha256(TEXT).hexdigest()}
    source = make_source(
        **{name: (f"https://127.0.0.1:9/{name}", sha) for name, sha in checksums.items()}
    )
    path = folder / "things" / "a.txt"
    with pytest.warns(
        UserWarning, match=f"{path} differs from the published file.*127.0.0.1:9/a.txt"
    ):
        assert source.path("a.txt") == path
    assert source.path("c.txt") == folder / "things" / "c.txt"
    with source.open("b.txt", "c.txt") as file:
        assert file.read() == TEXT.decode()


def test_downloads_are_verified_again(folder, address, retrieve):
    """A changed file in the cache is replaced by the published one."""
    published, checksum = address
    source = make_source(**{"a.txt": (str(published), checksum)})
    path = source.path("a.txt")
    path.write_text("bogus")
    assert source.path("a.txt").read_bytes() == TEXT


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
    """A file with another checksum is refused and not kept."""
    published, _ = address
    source = make_source(**{"a.txt": (str(published), "0" * 64)})
    for _ in range(2):
        with pytest.raises(OSError, match=r"(?s)downloading .* failed: .*(hash|SHA).*Get it from"):
            source.path("a.txt")


def test_no_network(folder):
    """If the download fails, the error says where to put the file by hand."""
    source = make_source(**{"a.txt": ("http://127.0.0.1:9/a.txt", "0" * 64)})
    message = r"(?s)downloading http://127.0.0.1:9/a.txt failed.*things/a.txt .*OKFOREST_DATA"
    with pytest.raises(OSError, match=message):
        source.path("a.txt")


def test_no_pooch(folder, monkeypatch):
    """Without pooch, the error names the extra."""
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'okforest\[data\]'.*usps/zip.train.gz"):
        fetch_usps()
    with pytest.raises(FileNotFoundError, match=r"tecator/tecator.csv.gz .*OKFOREST_DATA"):
        load_tecator()


def test_no_address(folder):
    """The error for a file without a URL names its source and where to put it."""
    message = r"no file cora/cora.npz .*source \(the archive of Shchur.*OKFOREST_DATA"
    with pytest.raises(FileNotFoundError, match=message):
        load_cora()


def test_which_folder_was_searched(tmp_path, monkeypatch):
    """The error depends on whether the folder is unset, missing, or lacks the file."""
    source = make_source()
    folder, nowhere = tmp_path / "data", tmp_path / "nowhere"
    folder.mkdir()
    monkeypatch.setenv("OKFOREST_DATA", str(folder))
    message = f"into {folder}, the folder that OKFOREST_DATA names"
    with pytest.raises(FileNotFoundError, match=message):
        source.path("a.txt")
    monkeypatch.setenv("OKFOREST_DATA", str(nowhere))
    with pytest.raises(FileNotFoundError, match=f"OKFOREST_DATA; '{nowhere}' is not a folder"):
        source.path("a.txt")
    monkeypatch.delenv("OKFOREST_DATA")
    with pytest.raises(FileNotFoundError, match=r"OKFOREST_DATA, which is not set"):
        source.path("a.txt")


NAMES = [
    "..",
    "../usps",
    "a/../../b",
    "/etc/passwd",
    "a\\b",
    "C:a",
    "",
    ".hidden",
    "a..b",
    "a\0b",
    5,
]


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_in_the_folder(folder, name):
    """A name that is a path is refused, whether or not the file exists."""
    secret = folder.parent / "usps_TRAIN.ts"
    for place in (secret, folder / "ucr" / "a.ts"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("@data\n1:1\n")
    message = "is not the plain name of a data set or file.*OKFOREST_DATA"
    with pytest.raises(ValueError, match=message):
        load_ucr(name)
    with pytest.raises(ValueError, match=message):
        make_source().path(name)


def test_description():
    """The description contains source, citation and terms."""
    text = make_source().text
    assert text.startswith("Things\n======\n\nAll of them.")
    for line in ("Source: a shop", "Citation: A. Author, 2000.", "Terms: Free."):
        assert line in text
