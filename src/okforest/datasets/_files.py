"""Where the files of data sets are: a folder of the user's, the cache, or a published address."""

import csv
import gzip
import hashlib
import io
import os
import warnings
import zlib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TextIO
from zipfile import BadZipFile

import numpy as np
from sklearn.utils import Bunch

P = ParamSpec("P")
FOLDER = "OKFOREST_DATA"  # names the user's folder
# What readers raise on files that end too early, or are not what their names say.
DAMAGE = (
    EOFError,
    gzip.BadGzipFile,
    BadZipFile,
    zlib.error,
    csv.Error,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
)
_files_read: ContextVar[list[Path] | None] = ContextVar("files_read", default=None)


@dataclass(frozen=True)
class Source:
    """A data set: what it is, where it comes from, and its files.

    Parameters
    ----------
    folder : str
        The folder of its files, below that of all data sets.
    title, description, citation, origin : str
        What it is, in a line and in full; the publication; where its files are to be had.
    terms : str
        Terms of use.
    downloads : mapping of str to (str, str)
        File names to published addresses and SHA-256 checksums, where there are any.
    """

    folder: str
    title: str
    description: str
    citation: str
    origin: str
    terms: str = "Not stated; use for research and cite the publication."
    downloads: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The DESCR of what loaders return."""
        return (
            f"{self.title}\n{'=' * len(self.title)}\n\n{self.description}\n\n"
            f"Source: {self.origin}\n\nCitation: {self.citation}\n\nTerms: {self.terms}\n"
        )

    def loader(self, load: Callable[P, Bunch]) -> Callable[P, Bunch]:
        """Make a loader of a function: errors name the file, and ``files`` are the paths read."""

        @wraps(load)
        def loader(*args: P.args, **kwargs: P.kwargs) -> Bunch:
            files: list[Path] = []
            token = _files_read.set(files)
            try:
                bunch = load(*args, **kwargs)
            except DAMAGE as error:
                if not files:  # the arguments are wrong
                    raise
                raise ValueError(
                    f"{self.title} cannot be read; the last file was {files[-1]}: "
                    f"{type(error).__name__}: {error}. If it is damaged or of another origin, "
                    f"remove it and get it again from its source ({self.origin})."
                ) from error
            finally:
                _files_read.reset(token)
            bunch.files = files
            return bunch

        return loader

    def path(self, *names: str) -> Path:
        """Return the first of some files that there is, downloaded if need be and possible."""
        path = self._find(*names)
        files = _files_read.get()
        if files is not None:
            files.append(path)
        return path

    def _find(self, *names: str) -> Path:
        if folder := os.environ.get(FOLDER):
            for name in names:
                path = Path(folder) / self.folder / name
                if path.is_file():
                    self._compare(path)
                    return path
        for name in names:
            if name in self.downloads:
                return self._download(name)
        raise FileNotFoundError(self._absent(names, "okforest does not download it"))

    def _compare(self, path: Path) -> None:
        """Warn of a file that is not the published one."""
        if path.name not in self.downloads:
            return
        address, checksum = self.downloads[path.name]
        if hashlib.sha256(path.read_bytes()).hexdigest() != checksum:
            warnings.warn(
                f"{path} is not the published file: its SHA-256 is not {checksum}. It is used as "
                "it is; if you have not changed it yourself, remove it and get it again from "
                f"{address}.",
                stacklevel=2,
            )

    def open(self, *names: str) -> TextIO:
        """Open the first of some text files that there is, compressed or not."""
        path = self.path(*names)
        if path.suffix == ".gz":
            return io.TextIOWrapper(gzip.open(path), encoding="utf-8")
        return path.open(encoding="utf-8")

    def arrays(self, name: str) -> dict[str, Any]:
        """Return the arrays of an npz file."""
        with self.path(name).open("rb") as file:  # NumPy leaves damaged files open
            return dict(np.load(file))

    def _download(self, name: str) -> Path:
        address, checksum = self.downloads[name]
        try:
            pooch: Any = import_module("pooch")
        except ImportError as error:
            raise ImportError(
                "downloading needs pooch, which is not installed; pip install okforest[data]. "
                + self._absent([name], f"its address is {address}")
            ) from error
        folder = Path(pooch.os_cache("okforest")) / self.folder
        try:  # a file that is there is verified, and replaced if it is another one
            return Path(pooch.retrieve(address, f"sha256:{checksum}", name, folder))
        except (OSError, ValueError) as error:  # no network; another checksum
            raise OSError(
                f"downloading {address} failed: {error}. " + self._absent([name], "try again later")
            ) from error

    def _absent(self, names: Any, why: str) -> str:
        files = " or ".join(f"{self.folder}/{name}" for name in names)
        folder = os.environ.get(FOLDER)
        if not folder:
            place = f"a folder that the environment variable {FOLDER} names; it is not set"
        elif Path(folder).is_dir():
            place = f"{Path(folder).absolute()}, the folder that {FOLDER} names, which was searched"
        else:
            place = f"a folder that {FOLDER} names; it names {folder!r}, which is not a folder"
        return (
            f"there is no file {files} ({why}). Get it from its source ({self.origin}) and put "
            f"it, under this name, into {place}."
        )
