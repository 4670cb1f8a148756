"""What the experiments on output types share: the data folder, folds, tables."""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import machine
from sklearn.model_selection import RepeatedKFold

from okforest._utils.report import Table
from okforest.datasets import read_hierarchical_arff


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


def data_folder() -> Path:
    """Return the folder of the data sets."""
    return Path(os.environ["OKFOREST_DATA"])


def hierarchical(name: str) -> tuple[Any, Any, Any, Any]:
    """Return inputs, classes, their parents, and which rows are for training or testing.

    Data that are published without validation rows have every third training row for that.
    """
    folder = data_folder() / "hmc"
    parts = ["trainvalid", "train", "valid", "test"]
    paths = {
        part: path
        for part in parts
        for separator in "._"
        if (path := folder / f"{name}{separator}{part}.arff.gz").exists()
    }
    data = read_hierarchical_arff(*paths.values())
    split = np.array(list(paths), dtype="<U10")[data.file]
    if "valid" not in paths:
        known = np.flatnonzero(split != "test")
        split[known] = np.where(np.arange(len(known)) % 3 == 2, "valid", "train")
    return data.data, data.target, data.parents, split


def report(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    about = machine.describe()
    print(f"### {title}\n")
    print(Table(header, rows).markdown())
    print(f"\n{about['date']}, one thread.\n", flush=True)
