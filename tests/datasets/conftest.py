"""A folder of tiny files, laid out as the folder of data sets."""

import gzip

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder named by OKFOREST_DATA; the download cache is empty."""
    monkeypatch.setenv("OKFOREST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture
def write(folder):
    """Return a function that writes text, compressed for names in .gz, or arrays."""

    def write(name, text="", **arrays):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if arrays:
            np.savez(path, **arrays)
        else:
            data = text.encode()
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    return write
