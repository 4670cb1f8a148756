"""What the experiments on output types share: the data folder, folds, tables."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from benchmarks import machine
from sklearn.model_selection import RepeatedKFold

from okforest._report import Table


def arguments(*names: str, repeats: int = 1) -> argparse.Namespace:
    """Return the command line: which data sets, and how many trees and folds, for quick runs.

    Prints the command, as the first line of a file of results.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=list(names), help=" ".join(names))
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the number of trees")
    parser.add_argument("--repeats", type=int, default=repeats, help="of cross-validation")
    options = parser.parse_args()
    machine.print_command()
    return options


def folds(n: int, n_splits: int, n_repeats: int) -> Iterator[tuple[Any, Any]]:
    """Yield training and test rows, the same for every method."""
    yield from RepeatedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=0).split(
        np.zeros(n)
    )


def report(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    about = machine.describe()
    print(f"### {title}\n")
    print(Table(header, rows).markdown())
    print(f"\n{about['date']}, one thread.\n", flush=True)
