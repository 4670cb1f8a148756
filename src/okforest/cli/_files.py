"""Tables in files: features by name, and edge lists."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype, is_string_dtype

from okforest.cli._console import console
from okforest.network._graphs import shown

Edges = list[tuple[str, str]]

# The share of numbers among the other values of a column that makes a text in it a mistake.
NUMBERS = 0.9

# How names are read: as text, whatever they look like. 007 is not 7, and NA is not missing.
NAMES = {"dtype": str, "keep_default_na": False, "na_values": [""]}


class CleanEdges(NamedTuple):
    """An edge list without what is wrong with it, and how much of that there was."""

    edges: Edges
    unknown: int
    loops: int
    duplicates: int


def read_features(path: Path) -> pd.DataFrame:
    """Return a frame of features, with the names of its first column as text."""
    table = _read(path)
    if _suffix(path) == ".parquet":
        table = _named(table)
    else:
        table.isetitem(0, _read(path, usecols=[0], **NAMES).iloc[:, 0].array)
    if table.shape[1] < 2:
        raise ValueError(
            f"{path} has {table.shape[1]} columns; it must have names in the first and features "
            "in the others."
        )
    names = table.iloc[:, 0]
    if names.isna().any():
        row = int(np.flatnonzero(names.isna())[0]) + 1
        raise ValueError(f"{path} has no name in row {row}; the first column must have one in all.")
    twice = names[names.duplicated()].unique().tolist()
    if twice:
        raise ValueError(
            f"{path} has {len(twice)} names more than once: {shown(twice)}. Keep one row of each."
        )
    features = table.iloc[:, 1:].set_index(pd.Index(names.astype(str), name="name"))
    for column in features:
        _check_numbers(features[column], path)
    empty = [column for column in features if features[column].isna().all()]
    return features.drop(columns=empty)


def _check_numbers(column: "pd.Series[Any]", path: Path) -> None:
    """Refuse numbers with a stray text among them, of which all would be read as categories."""
    if not (is_object_dtype(column) or is_string_dtype(column)):
        return
    numbers = pd.to_numeric(column, errors="coerce").notna()
    strays = np.flatnonzero(~numbers & column.notna())
    others = int(column.notna().sum()) - 1
    if len(strays) and others and numbers.sum() >= NUMBERS * others:
        row = int(strays[0])
        raise ValueError(
            f"{path} has {column.iloc[row]!r} in column {column.name!r}, row {row + 1} "
            f"({column.index[row]!r}), where {int(numbers.sum())} of {others} other values are "
            "numbers. Leave the cell empty if the value is missing; if the column holds "
            "categories, write them as text, such as 'c1'."
        )


def read_edge_list(path: Path, names: set[str]) -> Edges:
    """Return the pairs of names in the first two columns; a line of titles is optional.

    Of a text file the first line is one if neither of its two names is known.
    """
    table = _read(path, header=None, **NAMES)
    if table.shape[1] < 2:
        raise ValueError(
            f"{path} has {table.shape[1]} columns; an edge list has the two names of each link in "
            "the first two, separated by a comma or (in .tsv and .txt) a tab."
        )
    pairs = table.iloc[:, :2]
    if _suffix(path) != ".parquet" and _are_titles(pairs.iloc[0].tolist(), names):
        first = ", ".join(map(str, pairs.iloc[0]))
        console.print(f"{path}: the first line ({first}) was read as titles", markup=False)
        pairs = pairs.iloc[1:]
    if pairs.isna().any(axis=None):
        row = int(np.flatnonzero(pairs.isna().any(axis=1))[0]) + 1
        raise ValueError(f"{path} has a link with one name only, in row {row}.")
    return [(str(a), str(b)) for a, b in pairs.itertuples(index=False)]


def _are_titles(first: list[Any], names: set[str]) -> bool:
    """Tell whether the first line of an edge list is no link: neither of two names is known."""
    return first[0] != first[1] and not names.intersection(first)


def clean_edges(edges: Edges, names: set[str]) -> CleanEdges:
    """Leave out links of unknown names, loops and duplicates, and count them."""
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


def check_columns(new: pd.DataFrame, features: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return new features with the columns of the others, in their order."""
    missing = [column for column in features if column not in new]
    if missing:
        raise ValueError(
            f"{path} lacks {len(missing)} columns that the features of known vertices have: "
            f"{shown(missing)}."
        )
    known = new.index.intersection(features.index).tolist()
    if known:
        raise ValueError(
            f"{path} has {len(known)} vertices that are known already: {shown(known)}. Keep new "
            "ones only."
        )
    return new[list(features)]


def group_columns(columns: list[str], separator: str) -> dict[str, list[str]]:
    """Return columns by what is before the separator in their names; others are "other"."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        name, found, _ = column.partition(separator)
        groups.setdefault(name.strip() if found else "other", []).append(column)
    if "all" in groups:
        raise ValueError(
            f"columns such as {groups['all'][0]!r} are of a group named 'all', as all features "
            "together are; give them another name."
        )
    return groups


def _suffix(path: Path) -> str:
    """Return what kind of table a file is, compressed or not."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in (".gz", ".bz2", ".xz", ".zip")]
    return suffixes[-1] if suffixes else ""


def _read(path: Path, **options: Any) -> pd.DataFrame:
    """Return a table; the options are those of text files."""
    if not path.exists():
        raise ValueError(f"there is no file {path}.")
    suffix = _suffix(path)
    if suffix == ".parquet":
        return pd.read_parquet(path)
    try:
        return pd.read_csv(path, sep="\t" if suffix in (".tsv", ".txt") else ",", **options)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty.") from None
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}.") from None


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose names are its first column; Parquet may have them as index."""
    if isinstance(table.index, pd.RangeIndex):
        return table.astype({table.columns[0]: str})
    return table.set_axis(table.index.astype(str)).reset_index()
