"""ARFF files: dense and sparse rows, and the hierarchical classes of Clus.

SciPy reads neither sparse rows nor hierarchical classes, and liac-arff no hierarchical classes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats

QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|\S+?)(?:\s+|(?=\{{))(.+)", re.IGNORECASE)
CELL = re.compile(rf"\s*({QUOTED}|[^,]*?)\s*,")  # of a line with a comma at its end
ENTRY = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^,]*?)\s*,")  # of a sparse row
COMMENT = re.compile(r"\s%.*")  # after the values of a row, in files of Clus
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
        return Arff(names, types, _read_sparse(rows, codes, names, types), {}, relation)
    is_text = [code is None for code in codes]
    values, texts = np.full((len(rows), len(names)), np.nan), {}
    cells = [_cells(row) for row in rows]
    for i, row in enumerate(cells):
        if len(row) != len(names):
            raise ValueError(
                f"row {i + 1} of the ARFF file has {len(row)} values for {len(names)} attributes."
            )
        values[i] = _numbers(row, range(len(row)), codes, i, names, types)
    for j in np.flatnonzero(is_text).tolist():
        texts[names[j]] = [row[j] for row in cells]
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
            names.append(_plain(name))
            types.append(kind)
    raise ValueError("the ARFF file has no @data line.")


def _cells(line: str) -> list[str]:
    """Return the values of a row, without quotes."""
    if "'" in line or '"' in line:
        return [_plain(match[1]) for match in CELL.finditer(f"{line},")]
    return [cell.strip() for cell in COMMENT.sub("", line).split(",")]


def _entries(line: str) -> list[tuple[str, str]]:
    """Return the positions and values of a sparse row, without quotes."""
    if "'" in line or '"' in line:
        return [(match[1], _plain(match[2])) for match in ENTRY.finditer(f"{line},")]
    pairs = [entry.split(None, 1) for entry in line.split(",") if entry.strip()]
    return [(position, value.strip()) for position, value in pairs]


def _plain(text: str) -> str:
    """Return a name or value without quotes, and without the backslashes before characters."""
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] in ("'", '"') else text


def nominal_values(kind: str) -> list[str]:
    """Return the values of a nominal type such as ``{a,b}``; none of another type."""
    return _cells(kind.strip("{} ")) if kind.startswith("{") else []


def _codes(kind: str) -> dict[str, float] | None:
    """Map nominal values to numbers; the map is empty for numeric attributes, None for text."""
    values = nominal_values(kind)
    if not values:
        return {} if kind.split()[0].lower() in ("numeric", "real", "integer") else None
    try:
        return {value: float(value) for value in values}
    except ValueError:
        return {value: float(i) for i, value in enumerate(values)}


def _numbers(
    cells: Iterable[str],
    columns: Iterable[int],
    codes: Sequence[dict[str, float] | None],
    i: int,
    names: Sequence[str],
    types: Sequence[str],
) -> list[float]:
    """Return the numbers of some values of row i."""
    numbers = []
    for cell, j in zip(cells, columns, strict=True):
        try:
            numbers.append(_number(cell, codes[j]))
        except (KeyError, ValueError):
            raise ValueError(
                f"row {i + 1} of the ARFF file has the value {cell!r} of {names[j]!r}, which is of "
                f"type {types[j]}."
            ) from None
    return numbers


def _number(cell: str, codes: dict[str, float] | None) -> float:
    if codes is None or cell == MISSING:
        return float("nan")
    return codes[cell] if codes else float(cell)


def _read_sparse(
    rows: Sequence[str],
    codes: Sequence[dict[str, float] | None],
    names: Sequence[str],
    types: Sequence[str],
) -> sp.csr_array:
    """Read rows such as ``{0 1, 7 2.5}``: positions and values of the non-zero entries."""
    for name, kind, own in zip(names, types, codes, strict=True):
        if own and next(iter(own.values())) != 0:
            raise ValueError(
                f"{name!r} is of type {kind}, and sparse rows leave out its first value, which is "
                "not 0. Reorder the values of the type, or write dense rows."
            )
    data: list[float] = []
    columns: list[int] = []
    starts = [0]
    for i, row in enumerate(rows):
        entries = _entries(row.strip("{} "))
        places = [int(place) for place, _ in entries]
        columns.extend(places)
        data.extend(_numbers([value for _, value in entries], places, codes, i, names, types))
        starts.append(len(data))
    values: Floats = np.array(data, dtype=np.float64)
    matrix = sp.csr_array((values, columns, starts), shape=(len(rows), len(codes)))
    matrix.eliminate_zeros()
    return matrix
