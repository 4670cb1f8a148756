"""The files of data sets: where they are, and how tables, matrices and edge lists are read.

A file is searched in the user's folder, then in the download cache, then at a published URL.
"""

import csv
import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, ParamSpec, TextIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest._utils.arrays import Floats
from okforest._utils.errors import install_extra, warn

P = ParamSpec("P")
Names = npt.NDArray[np.str_]
VARIABLE = "OKFOREST_DATA"
PLAIN_NAME = re.compile(r"\w[\w.+ -]*")
# Errors of the readers on files that are truncated or have another format.
DAMAGE = (
    EOFError,
    gzip.BadGzipFile,
    zlib.error,
    csv.Error,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
)
_files_read: ContextVar[list[Path] | None] = ContextVar("files_read", default=None)


def check_name(name: str) -> None:
    """Refuse a name that would lead out of the folder of its data set."""
    if not isinstance(name, str) or not PLAIN_NAME.fullmatch(name) or ".." in name:
        raise ValueError(
            f"{name!r} is not the plain name of a data set or file: it must start with a letter "
            "or digit and must not contain '..', '/' or '\\'. To read files of another folder, "
            f"set the environment variable {VARIABLE}."
        )


@dataclass(frozen=True)
class Source:
    """A data set: its description, origin and files.

    Parameters
    ----------
    folder : str
        Folder of its files, inside the folder of all data sets.
    title, description, citation, origin : str
        Title, full description, publication, and where its files can be obtained.
    terms : str
        Terms of use.
    downloads : mapping of str to (str, str)
        Published URL and SHA-256 checksum of each file that can be downloaded.
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
        """The ``DESCR`` of the loaded data."""
        return (
            f"{self.title}\n{'=' * len(self.title)}\n\n{self.description}\n\n"
            f"Source: {self.origin}\n\nCitation: {self.citation}\n\nTerms: {self.terms}\n"
        )

    def loader(self, load: Callable[P, Bunch]) -> Callable[P, Bunch]:
        """Decorate a loader: errors name the file, and ``files`` lists the paths read."""

        @wraps(load)
        def loader(*args: P.args, **kwargs: P.kwargs) -> Bunch:
            files: list[Path] = []
            token = _files_read.set(files)
            try:
                bunch = load(*args, **kwargs)
            except DAMAGE as error:
                if not files:  # the arguments are wrong
                    raise
                raise ValueError(self._damage_message(files, error)) from error
            finally:
                _files_read.reset(token)
            bunch.files = files
            return bunch

        return loader

    def path(self, *names: str) -> Path:
        """Return the first of the named files that exists, downloading it if possible."""
        for name in names:
            check_name(name)
        path = self._find(*names)
        files = _files_read.get()
        if files is not None:
            files.append(path)
        return path

    def open(self, *names: str) -> TextIO:
        """Open the first of the named text files that exists; it may be compressed."""
        path = self.path(*names)
        if path.suffix == ".gz":
            return io.TextIOWrapper(gzip.open(path), encoding="utf-8")
        return path.open(encoding="utf-8")

    def arrays(self, name: str) -> dict[str, Any]:
        """Return the arrays of an npz file."""
        with self.path(name).open("rb") as file:  # NumPy does not close damaged files
            try:
                return dict(np.load(file))
            except Exception as error:  # damaged archives raise errors of many types
                raise ValueError(
                    f"not a readable npz archive ({type(error).__name__}: {error})"
                ) from error

    def _find(self, *names: str) -> Path:
        if folder := os.environ.get(VARIABLE):
            for name in names:
                path = Path(folder) / self.folder / name
                if path.is_file():
                    self._warn_if_changed(path)
                    return path
        for name in names:
            if name in self.downloads:
                return self._download(name)
        raise FileNotFoundError(self._missing_message(names, "okforest cannot download it"))

    def _warn_if_changed(self, path: Path) -> None:
        if path.name not in self.downloads:
            return
        url, checksum = self.downloads[path.name]
        if hashlib.sha256(path.read_bytes()).hexdigest() != checksum:
            warn(
                f"{path} differs from the published file: its SHA-256 checksum is not {checksum}. "
                "It is used nevertheless; unless you changed it yourself, remove it and download "
                f"it again from {url}.",
            )

    def _download(self, name: str) -> Path:
        url, checksum = self.downloads[name]
        try:
            pooch: Any = import_module("pooch")
        except ImportError as error:
            raise ImportError(
                f"downloading needs pooch, which is not installed: {install_extra('data')}. "
                + self._missing_message([name], f"its URL is {url}")
            ) from error
        folder = Path(pooch.os_cache("okforest")) / self.folder
        try:  # a cached file is verified, and downloaded again if its checksum differs
            return Path(pooch.retrieve(url, f"sha256:{checksum}", name, folder))
        except (OSError, ValueError) as error:  # no network, or another checksum
            message = self._missing_message([name], "try again later")
            raise OSError(f"downloading {url} failed: {error}. {message}") from error

    def _damage_message(self, files: list[Path], error: Exception) -> str:
        others = ", ".join(path.name for path in files[:-1])
        return (
            f"cannot read {self.title} from {files[-1]}: {type(error).__name__}: {error}. If this "
            f"file{f' or one read before it ({others})' if others else ''} is damaged or from "
            f"another source, replace it by the file of the original source ({self.origin})."
        )

    def _missing_message(self, names: Iterable[str], reason: str) -> str:
        files = " or ".join(f"{self.folder}/{name}" for name in names)
        folder = os.environ.get(VARIABLE)
        if not folder:
            place = f"a folder named by the environment variable {VARIABLE}, which is not set"
        elif Path(folder).is_dir():
            place = f"{Path(folder).absolute()}, the folder that {VARIABLE} names"
        else:
            place = f"a folder named by {VARIABLE}; {folder!r} is not a folder"
        return (
            f"There is no file {files} ({reason}). Get it from its source ({self.origin}) and put "
            f"it, under this name, into {place}."
        )


def open_text(path: str | PathLike[str]) -> TextIO:
    """Open a text file of the user, which may be compressed and in UTF-8 or Latin-1."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:  # Weka writes Latin-1 on some systems
        text = content.decode("latin-1")
    return io.StringIO(text, newline=None)


@dataclass(frozen=True)
class LabelledMatrix:
    """A matrix with names of its rows and columns."""

    row_names: Names
    column_names: Names
    values: Floats


def read_cells(file: TextIO, delimiter: str = ",") -> list[list[str]]:
    """Read the cells of a file row by row, skipping empty lines, and close it."""
    with file:
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    if not rows:
        raise ValueError("the file is empty.")
    return rows


def read_rows(file: TextIO, delimiter: str = ",") -> tuple[list[str], list[list[str]]]:
    """Read the header of a file and the rows below it."""
    header, *rows = read_cells(file, delimiter)
    if not rows:
        raise ValueError("the file has no rows below its header.")
    return header, rows


def read_matrix(file: TextIO, delimiter: str = ",") -> LabelledMatrix:
    """Read numbers with names in the first row and column; empty cells are missing values."""
    header, rows = read_rows(file, delimiter)
    values = [[float(cell) if cell else np.nan for cell in row[1:]] for row in rows]
    names = np.array([row[0] for row in rows])
    return LabelledMatrix(names, np.array(header[1:]), np.array(values))


def read_edges(file: TextIO, names: Names) -> sp.csr_array:
    """Read pairs of names below a header as the adjacency matrix of an undirected graph."""
    position = {name: i for i, name in enumerate(names.tolist())}
    edges = [(position[a], position[b]) for a, b in read_rows(file)[1]]
    return make_adjacency(np.array(edges).reshape(-1, 2), len(names))


def make_adjacency(edges: npt.NDArray[np.integer], n: int) -> sp.csr_array:
    """Return the 0-1 adjacency matrix of an undirected graph with n vertices."""
    ends = np.concatenate([edges, edges[:, ::-1]]).T
    adjacency = sp.csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(n, n))
    adjacency.sum_duplicates()
    adjacency.data[:] = 1.0
    return adjacency
