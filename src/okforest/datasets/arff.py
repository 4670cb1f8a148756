"""ARFF files: dense and sparse rows, sets of labels, and the hierarchical classes of Clus.

SciPy reads neither sparse rows nor hierarchical classes, and liac-arff no hierarchical classes.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import is_integer
from okforest.datasets.sources import open_text
from okforest.kernels.hierarchies import (
    BETWEEN,
    SEPARATOR,
    closure,
    parents_from_paths,
    read_parents,
)

QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|\S+?)(?:\s+|(?=\{{))(.+)", re.IGNORECASE)
CELL = re.compile(rf"\s*({QUOTED}|[^,]*?)\s*,")  # lines get a comma at their end
SPARSE_ENTRY = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^,]*?)\s*,")
COMMENT = re.compile(r"\s%.*")  # Clus writes comments after the values of a row
MISSING = "?"
MEKA = re.compile(r"-C\s+(-?\d+)")  # the number of labels, in the name of the relation
YES = ("1", "true", "yes", "t", "y")  # a nominal label with one of these values is present
NO = ("0", "false", "no", "f", "n")
ROOT = "root"  # in hierarchies that Clus writes as arcs, the parent of the top classes
MULAN_LABEL = re.compile(r"""<label\s+name\s*=\s*(["'])(.+?)\1""")


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


def read_multilabel_arff(path: str | PathLike[str], labels: Any = None) -> Bunch:
    r"""Read a multi-label data set from an ARFF file of MEKA or MULAN.

    Parameters
    ----------
    path : path-like
        The file; it may be compressed by gzip (``.gz``). Rows may be dense or sparse.
    labels : int, list of str or path-like, optional
        Which attributes are labels: the first n, the last n (a negative number, as in MEKA), their
        names, or MULAN's xml file of their names. By default the option ``-C n`` in the relation of
        the file, which MEKA writes.

    Returns
    -------
    bunch : Bunch
        ``data``, an array, or a csr_array if rows are sparse; ``target`` of shape (n, n_labels), 0
        or 1; ``feature_names``; ``target_names``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from okforest.datasets import read_multilabel_arff
    >>> path = Path(mkdtemp()) / "beach.arff"
    >>> _ = path.write_text(
    ...     "@relation 'beach: -C 2'\n@attribute sea {0,1}\n@attribute sand {0,1}\n"
    ...     "@attribute blue numeric\n@data\n1,1,0.9\n0,1,0.2\n"
    ... )
    >>> read_multilabel_arff(path).target
    array([[1, 1],
           [0, 1]])
    """
    if isinstance(labels, str | PathLike):
        with open_text(labels) as file:
            labels = [html.unescape(name) for _, name in MULAN_LABEL.findall(file.read())]
    with open_text(path) as file:
        return multilabel_bunch(read_arff(file), labels)


def read_hierarchical_arff(*paths: str | PathLike[str]) -> Bunch:
    r"""Read a hierarchical multi-label data set from ARFF files of Clus.

    Parameters
    ----------
    *paths : path-like
        One file or several, such as a training and a test set, which may be compressed by
        gzip (``.gz``). The last attribute is ``hierarchical``: class paths, with values such as
        "01/02@05", or arcs of a directed acyclic graph, "root/GO1,GO1/GO2", with values such as
        "GO1@GO2".

    Returns
    -------
    bunch : Bunch
        ``data``, with NaN for missing values; ``target`` of shape (n, n_classes), 1 for the classes
        of a row and their ancestors; ``target_names``, such as "01/02"; ``parents`` of shape
        (n_classes,), the position of the parent class, or -1, and for a graph a dict of the parents
        of each class, both as :class:`okforest.kernels.Hierarchy` takes them; ``labels``, the most
        specific classes as in the file; ``file`` of shape (n,), the position of the file that a row
        is from; ``feature_names``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from okforest.datasets import read_hierarchical_arff
    >>> path = Path(mkdtemp()) / "genes.arff"
    >>> _ = path.write_text(
    ...     "@relation genes\n@attribute level numeric\n@attribute class hierarchical 1,1/1,2\n"
    ...     "@data\n0.5,1/1@2\n?,1\n"
    ... )
    >>> genes = read_hierarchical_arff(path)
    >>> genes.target_names, genes.parents.tolist(), genes.target.tolist()
    (['1', '1/1', '2'], [-1, 0, -1], [[1, 1, 1], [1, 0, 0]])
    """
    if not paths:
        raise ValueError("pass the path of at least one file.")
    parts = []
    for path in paths:
        with open_text(path) as file:
            parts.append(read_arff(file))
    bunch = hierarchical_bunch(parts)
    bunch.file = np.repeat(np.arange(len(parts)), [len(part.values) for part in parts])
    return bunch


def multilabel_bunch(arff: Arff, labels: Any) -> Bunch:
    """Divide the attributes of an ARFF file into features and labels."""
    is_label = _label_columns(arff, labels)
    values, columns = arff.values, np.arange(len(arff.names))
    data: Any = values[:, columns[~is_label]]
    target: Any = values[:, columns[is_label]]
    target = target if isinstance(target, np.ndarray) else target.toarray()
    for column, j in zip(target.T, np.flatnonzero(is_label).tolist(), strict=True):
        column[:] = _indicators(column, arff.names[j], nominal_values(arff.types[j]))
    if not ((target == 0) | (target == 1)).all():
        raise ValueError(
            "a label has values other than 0 and 1; check which attributes are labels, and pass "
            "them as labels=..."
        )
    names = np.array(arff.names)
    return Bunch(
        data=data,
        target=target.astype(np.int64),
        feature_names=names[~is_label].tolist(),
        target_names=names[is_label].tolist(),
    )


def _indicators(codes: Floats, name: str, values: list[str]) -> Floats:
    """Return 1 for "true" or "yes", 0 for "false" or "no"; numbers as they are."""
    words = [value.lower() for value in values]
    if all(re.fullmatch(r"[+-]?[\d.]+", word) for word in words):
        return codes
    if len(words) != 2 or not (set(words) & set(YES) and set(words) & set(NO)):
        raise ValueError(
            f"the label {name!r} has the values {', '.join(values)}; use 0 and 1, or other values "
            "such as false and true, or check which attributes are labels."
        )
    return codes if words[1] in YES else 1.0 - codes


def _label_columns(arff: Arff, labels: Any) -> Outputs:
    n = len(arff.names)
    if labels is None:
        match = MEKA.search(arff.relation)
        if match is None:
            raise ValueError(
                "the file does not say which attributes are labels (no option -C in its "
                "relation); pass labels=, the number of labels (negative if they come last), their "
                "names, or MULAN's xml file."
            )
        labels = int(match[1])
    if is_integer(labels):
        if not 0 < abs(labels) < n:
            raise ValueError(f"labels={labels!r}; the file has {n} attributes.")
        columns = np.arange(n)
        return columns < labels if labels > 0 else columns >= n + labels
    missing = [name for name in labels if name not in arff.names]
    if missing or not len(labels):
        raise ValueError(f"the file has no attribute {missing[0]!r}." if missing else "no labels.")
    return np.isin(arff.names, list(labels))


def hierarchical_bunch(parts: Sequence[Arff]) -> Bunch:
    """Return the rows of Clus files, with all classes of their hierarchy as columns."""
    names, kind = parts[0].names, parts[0].types[-1]
    if not kind.lower().startswith("hierarchical"):
        raise ValueError(f"the last attribute is of type {kind!r}; it must be hierarchical.")
    entries = [entry.strip() for entry in kind.split(None, 1)[1].split(",")]
    parents, is_tree = _hierarchy(entries)
    position = {path: i for i, path in enumerate(parents)}
    closed = closure(parents)
    labels = [label for part in parts for label in part.texts[names[-1]]]
    target = np.zeros((len(labels), len(parents)), dtype=np.int64)
    for i, label in enumerate(labels):
        for name in map(str.strip, label.split(BETWEEN)):
            if name not in closed:
                raise ValueError(
                    f"a row has the class {name!r}, which is not in the hierarchy that the type of "
                    f"{names[-1]!r} lists"
                )
            target[i, [position[one] for one in closed[name]]] = 1
    positions = [position[above[0]] if above else -1 for above in parents.values()]
    return Bunch(
        data=np.concatenate([part.values[:, :-1] for part in parts]),
        target=target,
        target_names=list(parents),
        parents=np.array(positions) if is_tree else parents,
        labels=np.array(labels),
        feature_names=names[:-1],
    )


def _hierarchy(entries: Sequence[str]) -> tuple[dict[str, list[str]], bool]:
    """Return the parents of every class, ancestors first, and whether the hierarchy is a tree.

    Entries are class paths, or arcs from a parent to a child, of which some begin at the root.
    """
    arcs = [entry.split(SEPARATOR) for entry in entries]
    if not (all(len(arc) == 2 for arc in arcs) and any(arc[0] == ROOT for arc in arcs)):
        return parents_from_paths(entries), True
    parents: dict[str, list[str]] = {child: [] for _, child in arcs}
    for parent, child in arcs:
        if parent != ROOT:
            parents[child].append(parent)
    return read_parents(parents), False


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
        return [(match[1], _plain(match[2])) for match in SPARSE_ENTRY.finditer(f"{line},")]
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
    for name, kind, numbers in zip(names, types, codes, strict=True):
        if numbers and next(iter(numbers.values())) != 0:
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
