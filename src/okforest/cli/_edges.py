"""Files of links: edge lists, with the two names of a link in each line."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from okforest.cli._console import print_message
from okforest.cli._files import AS_TEXT, is_parquet, read_table

Edges = list[tuple[str, str]]


class CleanEdges(NamedTuple):
    """An edge list without mistakes, and how many of each kind were removed."""

    edges: Edges
    unknown: int
    loops: int
    duplicates: int


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


def _is_header(first: list[Any], names: set[str]) -> bool:
    return first[0] != first[1] and not names.intersection(first)
