"""ARFF files: dense and sparse rows, and the hierarchical classes of Clus.

SciPy's reader takes neither sparse rows nor hierarchical classes, and liac-arff no hierarchical
ones.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._typing import Floats

ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\S+?)(?:\s+|(?=\{))(.+)""", re.IGNORECASE
)
MISSING = "?"


@dataclass(frozen=True)
class Arff:
    """An ARFF file.

    Parameters
    ----------
    names : list of str
        The attributes' names.
    types : list of str
        Their types, as the file has them: ``numeric``, ``{a,b}``, ``hierarchical a,a/b``.
    values : ndarray or csr_array of shape (n, p)
        Numbers; the position of its value in the type for a nominal attribute, or the value
        itself if all are numbers; NaN where a value is missing, or is text.
    texts : dict of str to list of str
        The values of attributes that are text, among them hierarchical ones, by name.
    """

    names: list[str]
    types: list[str]
    values: Any
    texts: dict[str, list[str]]


def read_arff(lines: Iterable[str]) -> Arff:
    """Read a file, given by its lines."""
    lines = iter(lines)
    names, types = _read_header(lines)
    codes = [_codes(kind) for kind in types]
    rows = [line for line in map(str.strip, lines) if line and not line.startswith("%")]
    if not rows:
        raise ValueError("the ARFF file has no rows after the line @data.")
    if rows[0].startswith("{"):
        return Arff(names, types, _read_sparse(rows, codes), {})
    is_text = [code is None for code in codes]
    values, texts = np.full((len(rows), len(names)), np.nan), {}
    cells = _cells(rows)
    for i, row in enumerate(cells):
        if len(row) != len(names):
            raise ValueError(
                f"row {i + 1} of the ARFF file has {len(row)} values for {len(names)} attributes."
            )
        values[i] = [_number(cell.strip(), code) for cell, code in zip(row, codes, strict=True)]
    for j in np.flatnonzero(is_text):
        texts[names[j]] = [row[j].strip() for row in cells]
    return Arff(names, types, values, texts)


def _read_header(lines: Iterator[str]) -> tuple[list[str], list[str]]:
    names: list[str] = []
    types: list[str] = []
    for line in map(str.strip, lines):
        if line.lower() == "@data":
            return names, types
        match = ATTRIBUTE.match(line)
        if match:
            name, kind = match[1], match[2].strip()
            names.append(name[1:-1] if name[0] in "'\"" else name)
            types.append(kind)
    raise ValueError("the ARFF file has no line @data.")


def _cells(rows: Iterable[str]) -> list[list[str]]:
    return list(csv.reader(rows, quotechar="'", escapechar="\\", skipinitialspace=True))


def _codes(kind: str) -> dict[str, float] | None:
    """Return the numbers of a nominal attribute's values; none for numbers; None for text."""
    if kind.startswith("{"):
        values = [value.strip() for value in _cells([kind.strip("{} ")])[0]]
        try:
            return {value: float(value) for value in values}
        except ValueError:
            return {value: float(i) for i, value in enumerate(values)}
    return {} if kind.split()[0].lower() in ("numeric", "real", "integer") else None


def _number(cell: str, codes: dict[str, float] | None) -> float:
    if codes is None or cell == MISSING:
        return float("nan")
    return codes[cell] if codes else float(cell)


def _read_sparse(rows: Sequence[str], codes: Sequence[dict[str, float] | None]) -> sp.csr_array:
    """Read rows such as ``{0 1, 7 2.5}``: positions and values, all others being 0."""
    data: list[float] = []
    columns: list[int] = []
    starts = [0]
    for row in rows:
        for entry in filter(None, map(str.strip, row.strip("{} ").split(","))):
            column, value = entry.split(None, 1)
            columns.append(int(column))
            data.append(_number(value, codes[int(column)]))
        starts.append(len(data))
    values: Floats = np.array(data, dtype=np.float64)
    matrix = sp.csr_array((values, columns, starts), shape=(len(rows), len(codes)))
    matrix.eliminate_zeros()
    return matrix
