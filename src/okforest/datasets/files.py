"""Readers of files in the layouts of published collections, for data sets of your own."""

import csv
import gzip
import html
import io
import re
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from sklearn.utils import Bunch

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import is_integer
from okforest.datasets._arff import Arff, nominal_values, read_arff
from okforest.kernels.hierarchies import (
    BETWEEN,
    SEPARATOR,
    closure,
    parents_from_paths,
    read_parents,
)

MEKA = re.compile(r"-C\s+(-?\d+)")  # the number of labels, in the name of the relation
YES = ("1", "true", "yes", "t", "y")  # of labels of nominal type, in lower case
NO = ("0", "false", "no", "f", "n")
ROOT = "root"  # above the most general classes, where Clus writes a hierarchy as arcs
LABEL = re.compile(r"""<label\s+name\s*=\s*(["'])(.+?)\1""")  # of a MULAN xml file


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
        with _open(labels) as file:
            labels = [html.unescape(name) for _, name in LABEL.findall(file.read())]
    with _open(path) as file:
        return multilabel_bunch(read_arff(file), labels)


def read_hierarchical_arff(*paths: str | PathLike[str]) -> Bunch:
    r"""Read a hierarchical multi-label data set from ARFF files of Clus.

    Parameters
    ----------
    *paths : path-like
        One file or several, such as those of a training and a test set, which may be compressed by
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
        with _open(path) as file:
            parts.append(read_arff(file))
    bunch = hierarchical_bunch(parts)
    bunch.file = np.repeat(np.arange(len(parts)), [len(part.values) for part in parts])
    return bunch


def read_label_ranking(path: str | PathLike[str]) -> Bunch:
    r"""Read a label ranking data set: attributes, then the ranking, such as ``L3>L1>L2``.

    Parameters
    ----------
    path : path-like
        A file of comma-separated values, which may be compressed by gzip (``.gz``). The last cell
        of a row is its ranking, most preferred first; ``=`` ties labels, and labels may be left
        out. Attributes are numbers, or ``?`` for a missing value. A header is recognised by cells
        that are not numbers, and its last one, which has no ``>``.

    Returns
    -------
    bunch : Bunch
        ``data``; ``target`` of shape (n, n_labels), the rank of each label, 1 for the most
        preferred, NaN for labels without a rank; ``target_names``; ``feature_names``, if there is a
        header.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from okforest.datasets import read_label_ranking
    >>> path = Path(mkdtemp()) / "taste.csv"
    >>> _ = path.write_text("0.1,a>b>c\n0.7,c>a>b\n")
    >>> read_label_ranking(path).target
    array([[1, 2, 3],
           [2, 3, 1]])
    """
    with _open(path) as file:
        return ranking_bunch(file)


def read_ucr(path: str | PathLike[str]) -> Bunch:
    r"""Read time series and their classes from a file of the UCR archive.

    Parameters
    ----------
    path : path-like
        A ``.ts`` file (values, then a colon and the class) or a ``.txt`` file (the class, then
        values), which may be compressed by gzip (``.gz``).

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (n, length), with NaN for missing values; ``target``, the classes as text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from okforest.datasets import read_ucr
    >>> path = Path(mkdtemp()) / "series.ts"
    >>> _ = path.write_text("@data\n0.1,0.2,0.3:up\n0.3,0.2,0.1:down\n")
    >>> read_ucr(path).target
    array(['up', 'down'], dtype='<U4')
    """
    with _open(path) as file:
        data, target = read_series(file, Path(path).name)
    return Bunch(data=data, target=target)


def _open(path: str | PathLike[str]) -> TextIO:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:  # as Weka writes on some systems
        text = content.decode("latin-1")
    return io.StringIO(text, newline=None)


def multilabel_bunch(arff: Arff, labels: Any) -> Bunch:
    """Divide the attributes of an ARFF file into features and labels."""
    is_label = _label_columns(arff, labels)
    values, columns = arff.values, np.arange(len(arff.names))
    data: Any = values[:, columns[~is_label]]
    target: Any = values[:, columns[is_label]]
    target = target if isinstance(target, np.ndarray) else target.toarray()
    for own, j in zip(target.T, np.flatnonzero(is_label).tolist(), strict=True):
        own[:] = _indicators(own, arff.names[j], nominal_values(arff.types[j]))
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


def ranking_bunch(file: Iterable[str], description: str | None = None) -> Bunch:
    """Return attributes and rankings of rows of text."""
    from okforest.kernels import Spearman

    rows = [row for row in csv.reader(file) if row]
    header = rows.pop(0) if rows and _is_header(rows[0]) else None
    if not rows:
        raise ValueError("the file is empty.")
    kernel = Spearman()
    rankings = kernel.check([row[-1].strip() for row in rows])
    kernel = kernel.resolve(rankings)
    ranks = kernel.ranks(rankings)
    whole = not np.isnan(ranks).any() and (ranks == np.round(ranks)).all()
    bunch = Bunch(
        data=np.array([[_value(cell, i) for cell in row[:-1]] for i, row in enumerate(rows)]),
        target=ranks.astype(np.int64) if whole else ranks,
        target_names=kernel.labels,
    )
    if header is not None:
        bunch.feature_names = header[:-1]
    if description is not None:
        bunch.DESCR = description
    return bunch


def _is_header(row: Sequence[str]) -> bool:
    """Return whether a row has names: neither a ranking of several labels nor numbers only."""
    if re.search("[>=]", row[-1]):
        return False
    try:
        for cell in row[:-1]:
            _value(cell, 0)
    except ValueError:
        return True
    return False


def _value(cell: str, i: int) -> float:
    if cell.strip() in ("", "?"):
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        raise ValueError(
            f"row {i + 1} has the attribute {cell!r}; attributes are numbers, and '?' is a missing "
            "value. Encode categories as numbers."
        ) from None


def read_series(file: Iterable[str], name: str) -> tuple[Floats, Any]:
    """Return the series and the classes of a file of the UCR archive."""
    lines = [line.strip() for line in file if line.strip()]
    if "@data" in map(str.lower, lines):  # .ts: values, then a colon and the class
        begin = [line.lower() for line in lines].index("@data") + 1
        rows = [line.rpartition(":") for line in lines[begin:]]
        cells, labels = [row[0].split(",") for row in rows], [row[2] for row in rows]
    else:  # .txt: the class, then values
        rows_of_cells = [line.split() for line in lines]
        cells = [row[1:] for row in rows_of_cells]
        labels = [f"{float(row[0]):g}" for row in rows_of_cells]
    if not cells:
        raise ValueError("the file has no series.")
    if len({len(row) for row in cells}) > 1 or any(":" in cell for row in cells for cell in row):
        raise ValueError(
            f"{name} has series of different lengths or several variables; only univariate series "
            "of equal length are read."
        )
    values = [[np.nan if cell == "?" else float(cell) for cell in row] for row in cells]
    return np.array(values), np.array(labels)
