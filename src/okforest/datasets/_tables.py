"""Text files of separated values: tables, labelled matrices and edge lists."""

import csv
from dataclasses import dataclass
from typing import TextIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._utils.arrays import Floats

Names = npt.NDArray[np.str_]


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
