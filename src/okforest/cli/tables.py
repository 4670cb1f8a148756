"""The files of ``okforest network``: tables of features, edge lists, and the CSV files written.

Features have one row per vertex, with its name in the first column; an edge list has the two names
of a link in each line. Files are CSV, TSV or Parquet, compressed or not.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path
from tarfile import TarError
from typing import Any, NamedTuple
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype, is_string_dtype

from okforest.cli.console import print_message
from okforest.network.graphs import list_names

COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
# Names are read as text, whatever they look like: 007 is not 7, and NA is not a missing value.
AS_TEXT = {"dtype": str, "keep_default_na": False, "na_values": [""]}

# Spreadsheets take cells that begin with these characters for formulas.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

# Above this share of numbers, text in a column is taken for a mistake, not for a category.
NUMERIC_SHARE = 0.9

Edges = list[tuple[str, str]]


class CleanEdges(NamedTuple):
    """An edge list without mistakes, and how many of each kind were removed."""

    edges: Edges
    unknown: int
    loops: int
    duplicates: int


def read_features(paths: Sequence[Path]) -> pd.DataFrame:
    """Return the features in one or several files, joined by the names of the vertices."""
    joined = _read_file(paths[0])
    for position, path in enumerate(paths[1:], start=1):
        features = _read_file(path)
        _check_names(joined, features, paths[0], path)
        _check_columns(joined, features, paths[:position], path)
        joined = pd.concat([joined, features.loc[joined.index]], axis=1)
    return joined


def drop_empty_columns(features: pd.DataFrame) -> pd.DataFrame:
    """Return the features without the columns that have no value, and report these."""
    empty = [column for column in features if features[column].isna().all()]
    if empty:
        print_message(f"left out columns without values ({len(empty)}): {list_names(empty)}")
    if len(empty) == features.shape[1]:
        raise ValueError("the features have no values; fill in at least one column.")
    return features.drop(columns=empty)


def match_columns(new: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """Return the features of new vertices with the columns of the known ones, in their order."""
    missing = [column for column in features if column not in new]
    if missing:
        raise ValueError(
            f"the new vertices lack columns of the known ones ({len(missing)}): "
            f"{list_names(missing)}. Add them to the files of --new; leave unknown values empty."
        )
    known = new.index.intersection(features.index).tolist()
    if known:
        raise ValueError(
            f"vertices are both new and known ({len(known)}): {list_names(known)}. Remove them "
            "from the files of --new, or from the files of the known vertices."
        )
    return new[list(features)]


def group_columns(columns: list[str], separator: str) -> dict[str, list[str]]:
    """Group columns by the part of their names before a separator; the others are "other"."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        name, found, _ = column.partition(separator)
        groups.setdefault(name.strip() if found else "other", []).append(column)
    if "all" in groups:
        raise ValueError(
            f"columns such as {groups['all'][0]!r} form a group named 'all', which is the name for "
            "all features; rename them."
        )
    return groups


def as_numbers(features: pd.DataFrame) -> pd.DataFrame:
    """Return the features as numbers from −1 to 1: categories become one column for each value."""
    table = pd.get_dummies(features).astype(float)
    largest = table.abs().max()
    return table / largest.where(largest > 0, 1.0)


def read_edge_list(path: Path, names: set[str]) -> Edges:
    """Return the pairs of names in the first two columns of a file.

    The first line of a text file is a header if neither of its two names is known.
    """
    table = read_table(path, header=None, **AS_TEXT)
    if table.shape[1] < 2:
        raise ValueError(
            f"{path} has a single column; an edge list has the two names of each link in the first "
            "two columns, separated by a comma or, in .tsv and .txt files, by a tab."
        )
    pairs = table.iloc[:, :2]
    if not is_parquet(path) and _is_header(pairs.iloc[0].tolist(), names):
        first = ", ".join(map(repr, pairs.iloc[0]))
        print_message(f"{path}: the first line ({first}) was read as a header")
        pairs = pairs.iloc[1:]
    if pairs.isna().any(axis=None):
        row = int(np.flatnonzero(pairs.isna().any(axis=1))[0]) + 1
        raise ValueError(f"{path} has a link with one name only, in row {row}; add the other name.")
    return [(str(a), str(b)) for a, b in pairs.itertuples(index=False)]


def clean_edges(edges: Edges, names: set[str]) -> CleanEdges:
    """Remove links with unknown names, loops and duplicates, and count them."""
    known = [(a, b) for a, b in edges if a in names and b in names]
    proper = [(a, b) for a, b in known if a != b]
    once: dict[frozenset[str], tuple[str, str]] = {}
    for edge in proper:
        once.setdefault(frozenset(edge), edge)
    return CleanEdges(
        list(once.values()),
        unknown=len(edges) - len(known),
        loops=len(known) - len(proper),
        duplicates=len(proper) - len(once),
    )


def is_parquet(path: Path) -> bool:
    """Return whether a file is in Parquet format, by its name."""
    return _suffix(path) == ".parquet"


def read_table(path: Path, **options: Any) -> pd.DataFrame:
    """Return the table in a file; the options are passed to ``pandas.read_csv``."""
    if not path.exists():
        raise ValueError(f"the file {path} does not exist.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; pass a file.")
    with _named_errors(path):
        if is_parquet(path):
            return pd.read_parquet(path)
        separator = "\t" if _suffix(path) in (".tsv", ".txt") else ","
        return pd.read_csv(path, sep=separator, **options)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table; an apostrophe is put before text that a spreadsheet would execute."""
    text = table.select_dtypes(exclude="number")
    table = table.assign(**{name: text[name].map(_neutralize) for name in text})
    # A carriage return in a name would end the row if it were not quoted.
    table.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC)


def _read_file(path: Path) -> pd.DataFrame:
    """Return the features in a file, with the names of the vertices as index."""
    names, features = _read_parquet(path) if is_parquet(path) else _read_text(path)
    if features.shape[1] == 0:
        raise ValueError(
            f"{path} has a single column; it must have names in the first column and features in "
            "the others, separated by commas or, in .tsv and .txt files, by tabs."
        )
    if names.isna().any():
        row = int(np.flatnonzero(names.isna())[0]) + 1
        raise ValueError(f"{path} has no name in row {row}; every row needs a name.")
    duplicates = names[names.duplicated()].unique().tolist()
    if duplicates:
        raise ValueError(
            f"{path} has duplicate names ({len(duplicates)}): {list_names(duplicates)}. Keep one "
            "row for each name; a file of links comes last, after the files of features."
        )
    features = features.set_axis(pd.Index(names.astype(str), name="name"), axis="index")
    for column in features:
        _check_numbers(features[column], path)
    return features


def _read_text(path: Path) -> tuple["pd.Series[Any]", pd.DataFrame]:
    table = read_table(path)
    header = read_table(path, header=None, nrows=1, **AS_TEXT).iloc[0].tolist()
    row_names = not isinstance(table.index, pd.RangeIndex)  # pandas found longer rows than headers
    if row_names:
        table = _with_row_names(path, header, table)
    _check_header(header if row_names else header[1:], path)
    columns = range(table.shape[1])  # replace the header, which may lack a cell
    names = read_table(path, header=0, names=columns, usecols=[0], **AS_TEXT).iloc[:, 0]
    return names, table.iloc[:, 1:].reset_index(drop=True)


def _with_row_names(path: Path, header: list[Any], table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of R, whose header lacks a cell above the row names."""
    if table.index.nlevels > 1:
        raise ValueError(
            f"the rows of {path} have {table.index.nlevels} more cells than its header; the header "
            "must have a cell for each column, or lack only the first one."
        )
    last = read_table(
        path, header=0, names=range(len(header) + 1), usecols=[len(header)], **AS_TEXT
    )
    if last.isna().all(axis=None):
        raise ValueError(
            f"the rows of {path} end with a separator, and its header does not; remove the "
            "separators at the ends of the rows."
        )
    return table.reset_index()


def _read_parquet(path: Path) -> tuple["pd.Series[Any]", pd.DataFrame]:
    table = read_table(path)
    if isinstance(table.index, pd.RangeIndex):
        return table.iloc[:, 0], table.iloc[:, 1:].reset_index(drop=True)
    return table.index.to_series().reset_index(drop=True), table.reset_index(drop=True)


def _check_header(header: list[Any], path: Path) -> None:
    columns = pd.Series(header, dtype=object).dropna()
    duplicates = columns[columns.duplicated()].unique().tolist()
    if duplicates:
        raise ValueError(
            f"{path} has duplicate columns ({len(duplicates)}): {list_names(duplicates)}. Rename "
            "or remove them."
        )


def _check_numbers(column: "pd.Series[Any]", path: Path) -> None:
    """Raise an error for text in a column of numbers, which would be read as categories."""
    if not (is_object_dtype(column) or is_string_dtype(column)):
        return
    numbers = pd.to_numeric(column, errors="coerce").notna()
    text = np.flatnonzero(~numbers & column.notna())
    others = int(column.notna().sum()) - 1
    if len(text) and others and numbers.sum() >= NUMERIC_SHARE * others:
        row = int(text[0])
        raise ValueError(
            f"{path} has {column.iloc[row]!r} in column {column.name!r}, row {row + 1} "
            f"({column.index[row]!r}), where {int(numbers.sum())} of {others} other values are "
            "numbers. Leave the cell empty if the value is missing; if the column holds "
            "categories, write them as text, such as 'c1'."
        )


def _check_names(joined: pd.DataFrame, features: pd.DataFrame, first: Path, path: Path) -> None:
    added, known = features.index, joined.index
    for missing, absent, present in (
        (known.difference(added, sort=False), path, first),
        (added.difference(known, sort=False), first, path),
    ):
        if len(missing):
            raise ValueError(
                f"names of {present} are missing in {absent} ({len(missing)}): "
                f"{list_names(missing.tolist())}. Give every vertex a row in each file; leave the "
                "cells of unknown features empty."
            )


def _check_columns(
    joined: pd.DataFrame, features: pd.DataFrame, earlier: Sequence[Path], path: Path
) -> None:
    duplicates = features.columns.intersection(joined.columns, sort=False).tolist()
    if duplicates:
        files = " or ".join(map(str, earlier))
        raise ValueError(
            f"columns of {path} are also in {files} ({len(duplicates)}): {list_names(duplicates)}. "
            "Rename or remove them in one of the files."
        )


def _is_header(first: list[Any], names: set[str]) -> bool:
    return first[0] != first[1] and not names.intersection(first)


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Turn the many errors of readers into ValueErrors that name the file."""
    try:
        yield
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty.") from None
    except ValueError as error:  # errors of parsers, encodings and Parquet among them
        raise ValueError(f"{path} cannot be read as a table: {str(error).strip()}") from None
    except (BadZipFile, TarError, ZlibError, LZMAError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # not about the content: no permission, for example
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} is damaged or incomplete ({reason}); download or compress it again."
        ) from None


def _suffix(path: Path) -> str:
    """Return the suffix of a file name, not counting a suffix such as .gz."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in COMPRESSED]
    return suffixes[-1] if suffixes else ""


def _neutralize(cell: Any) -> Any:
    formula = str(cell).startswith(FORMULA) and not NUMBER.fullmatch(str(cell))
    return f"'{cell}" if formula else cell
