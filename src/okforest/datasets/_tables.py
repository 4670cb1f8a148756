"""Tables with names of rows and columns."""

import csv
from dataclasses import dataclass
from typing import TextIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._typing import Floats

Names = npt.NDArray[np.str_]


@dataclass(frozen=True)
class Table:
    """Numbers, with names of their rows and columns."""

    rows: Names
    columns: Names
    values: Floats


def read_cells(file: TextIO, delimiter: str = ",") -> list[list[str]]:
    """Read the rows of a file of separated values, and close it."""
    with file:
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    if not rows:
        raise ValueError("the file is empty.")
    return rows


def read_rows(file: TextIO, delimiter: str = ",") -> tuple[list[str], list[list[str]]]:
    """Read the line of names of a file of separated values, and the rows below it."""
    header, *rows = read_cells(file, delimiter)
    if not rows:
        raise ValueError("the file has no rows below its line of names.")
    return header, rows


def read_table(file: TextIO, delimiter: str = ",") -> Table:
    """Read numbers below a line of names and beside a column of names; empty is missing."""
    header, rows = read_rows(file, delimiter)
    values = [[float(cell) if cell else np.nan for cell in row[1:]] for row in rows]
    return Table(np.array([row[0] for row in rows]), np.array(header[1:]), np.array(values))


def read_links(file: TextIO, names: Names) -> sp.csr_array:
    """Read pairs of names, below a header, as the adjacency matrix of an undirected graph."""
    position = {name: i for i, name in enumerate(names.tolist())}
    links = [(position[a], position[b]) for a, b in read_rows(file)[1]]
    return undirected(np.array(links).reshape(-1, 2), len(names))


def undirected(links: npt.NDArray[np.integer], n: int) -> sp.csr_array:
    """Return the adjacency matrix of 0 and 1 of a graph of n vertices, from pairs of positions."""
    ends = np.concatenate([links, links[:, ::-1]]).T
    adjacency = sp.csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(n, n))
    adjacency.sum_duplicates()
    adjacency.data[:] = 1.0
    return adjacency
