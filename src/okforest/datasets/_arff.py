"""ARFF files: dense and sparse rows, and the hierarchical classes of Clus.

SciPy reads neither sparse rows nor hierarchical classes, and liac-arff no hierarchical classes.
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
    """The contents of an ARFF file.

    Parameters
    ----------
    names : list of str
        Names of the attributes.
    types : list of str
        Types of the attributes as in the file: ``numeric``, ``{a,b}``, ``hierarchical a,a/b``.
    values : ndarray or csr_array of shape (n, p)
        Numeric values. A nominal value is replaced by its position in the type, unless all values
        of the type are numbers. NaN stands for missing values and for text.
    texts : dict of str to list of str
        Values of text attributes, including hierarchical ones, by name.
    relation : str
        The name of the relation, which may hold options.
    """

    names: list[str]
    types: list[str]
    values: Any
    texts: dict[str, list[str]]
    relation: str = ""


def read_arff(lines: Iterable[str]) -> Arff:
    """Read the lines of an ARFF file."""
    lines = iter(lines)
    relation, names, types = _read_header(lines)
    codes = [_codes(kind) for kind in types]
    rows = [line for line in map(str.strip, lines) if line and not line.startswith("%")]
    if not rows:
        raise ValueError("the ARFF file has no rows after its @data line.")
    if rows[0].startswith("{"):
        return Arff(names, types, _read_sparse(rows, codes), {}, relation)
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
    return Arff(names, types, values, texts, relation)


def _read_header(lines: Iterator[str]) -> tuple[str, list[str], list[str]]:
    relation = ""
    names: list[str] = []
    types: list[str] = []
    for line in map(str.strip, lines):
        if line.lower() == "@data":
            return relation, names, types
        if line.lower().startswith("@relation"):
            relation = line[len("@relation") :].strip()
        match = ATTRIBUTE.match(line)
        if match:
            name, kind = match[1], match[2].strip()
            names.append(name[1:-1] if name[0] in "'\"" else name)
            types.append(kind)
    raise ValueError("the ARFF file has no @data line.")


def _cells(rows: Iterable[str]) -> list[list[str]]:
    return list(csv.reader(rows, quotechar="'", escapechar="\\", skipinitialspace=True))


def _codes(kind: str) -> dict[str, float] | None:
    """Map nominal values to numbers; the map is empty for numeric attributes, None for text."""
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
    """Read rows such as ``{0 1, 7 2.5}``: positions and values of the non-zero entries."""
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
