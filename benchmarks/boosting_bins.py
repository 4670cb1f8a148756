"""Boosting between at most 255 bins of each feature, and between all values: accuracy and time.

The same rounds are fitted with ``max_bins=255`` and ``max_bins=None`` to random halves of real data
sets of at least a thousand training rows, and scored by kernel R² on the other halves. The table
has means over the halves, and the paired differences with their standard errors. Features of at
most 255 values are split exactly in both. Reads the folder named by OKFOREST_DATA.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmarks import machine
from benchmarks.compare.protocol import print_progress

from okforest import OKBoost
from okforest._utils.report import Table
from okforest.datasets import (
    fetch_usps,
    load_hierarchical,
    read_label_ranking,
)

Data = tuple[np.ndarray, np.ndarray, str]


def rankings(name: str) -> Data:
    """Attributes → ranks of labels as vectors."""
    bunch = read_label_ranking(Path(os.environ["OKFOREST_DATA"], "label_ranking", f"{name}.csv.gz"))
    return bunch.data, bunch.target.astype(float), "linear"


def top_functions(name: str) -> Data:
    """Expression of genes → their most general functions, as 0/1 vectors."""
    genes = load_hierarchical(name)
    top = np.flatnonzero(genes.parents < 0)
    return genes.data, genes.target[:, top].astype(float), "linear"


def usps() -> Data:
    """Images → digits."""
    digits = fetch_usps()
    return digits.data[:4000], digits.target[:4000], "dirac"


DATA_SETS: dict[str, Callable[[], Data]] = {
    "calhousing": lambda: rankings("calhousing"),
    "cpu-small": lambda: rankings("cpu-small"),
    "pendigits": lambda: rankings("pendigits"),
    "cold": lambda: rankings("cold"),
    "heat": lambda: rankings("heat"),
    "spo": lambda: rankings("spo"),
    "cellcycle, top level": lambda: top_functions("cellcycle"),
    "derisi, top level": lambda: top_functions("derisi"),
    "USPS, 4,000 images": usps,
}


def measure(data: Data, rounds: int, n_halves: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and seconds of both, for each random half."""
    X, y, kernel = data
    scores, seconds = np.empty((n_halves, 2)), np.empty((n_halves, 2))
    for half in range(n_halves):
        order = np.random.default_rng(half).permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        for side, max_bins in enumerate((255, None)):
            model = OKBoost(
                rounds, kernel=kernel, learning_rate=0.1, max_bins=max_bins, random_state=half
            )
            start = time.process_time()
            model.fit(X[train], y[train])
            seconds[half, side] = time.process_time() - start
            scores[half, side] = model.score(X[test], y[test])
    return scores, seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--halves", type=int, default=5)
    parser.add_argument("--only", default="", help="only data sets whose name contains this text")
    options = parser.parse_args()
    machine.fix_threads()
    rows, differences = [], []
    for name, load in DATA_SETS.items():
        if options.only not in name:
            continue
        print_progress(name)
        X, y, kernel = load()
        values = int(np.median([len(np.unique(x[~np.isnan(x)])) for x in X.T]))
        scores, seconds = measure((X, y, kernel), options.rounds, options.halves)
        change = scores[:, 0] - scores[:, 1]
        differences.append(change.mean())
        error = change.std(ddof=1) / len(change) ** 0.5 if len(change) > 1 else np.nan
        shape = f"{len(y) // 2:,} × {X.shape[1]}"
        rows.append(
            [
                name,
                shape,
                f"{values:,}",
                *(f"{score:.4f}" for score in scores.mean(axis=0)),
                f"{change.mean():+.4f} ± {error:.4f}",
                *(f"{s:.2f} s" for s in seconds.mean(axis=0)),
            ]
        )
    machine.print_command()
    print("### Boosting between 255 bins\n")
    header = ["data", "training rows", "values", "R², 255 bins", "R², exact", "difference"]
    print(Table([*header, "fit, 255 bins", "fit, exact"], rows).markdown())
    error = np.std(differences, ddof=1) / len(differences) ** 0.5 if len(rows) > 1 else np.nan
    print(
        f"\nMean of the differences over data sets: {np.mean(differences):+.4f} ± {error:.4f}. "
        '"Values" is the median number of distinct values of a feature. Scores are kernel R², '
        "or accuracies of classes."
    )


if __name__ == "__main__":
    main()
