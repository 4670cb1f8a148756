"""Series of the UCR archive by random subseries, beside time series classifiers.

The published training and test sets. Errors in per cent are means over seeds, with half of their
range; times are CPU times of fit and prediction together. aeon is used if it is installed; its
compiled functions run once before they are timed. Settings of okforest are the defaults, chosen by
cross-validation on the training sets.
"""

import argparse
from importlib.util import find_spec

import numpy as np
from benchmarks import machine
from benchmarks.segments.measure import SEEDS, report, spread, timed
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.neighbors import KNeighborsClassifier

from okforest import OKExtraTrees
from okforest.datasets import load_ucr
from okforest.segments import RandomSubseries, SegmentClassifier

NAMES = ("GunPoint", "Trace", "ItalyPowerDemand")


def methods():
    """Return functions from a seed to a classifier, and whether they depend on it."""
    found = {
        "1-NN, Euclidean": (lambda seed: KNeighborsClassifier(1), False),
        "scikit-learn ExtraTrees, whole series, 100 trees": (
            lambda seed: ExtraTreesClassifier(100, random_state=seed),
            True,
        ),
        "SegmentClassifier, 100 subseries, 10 trees": (
            lambda seed: SegmentClassifier(RandomSubseries(), random_state=seed),
            True,
        ),
        "SegmentClassifier, 500 subseries, 10 trees": (
            lambda seed: SegmentClassifier(RandomSubseries(500), random_state=seed),
            True,
        ),
        "SegmentClassifier, 100 subseries, 100 trees": (
            lambda seed: SegmentClassifier(RandomSubseries(), OKExtraTrees(100), random_state=seed),
            True,
        ),
    }
    if find_spec("aeon") is None:
        print("aeon is not installed; without 1-NN DTW, TimeSeriesForest and Rocket.")
        return found
    from aeon.classification.convolution_based import RocketClassifier
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier
    from aeon.classification.interval_based import TimeSeriesForestClassifier

    return found | {
        "aeon 1-NN DTW": (lambda seed: KNeighborsTimeSeriesClassifier(distance="dtw"), False),
        "aeon TimeSeriesForest, 200 trees": (
            lambda seed: TimeSeriesForestClassifier(n_estimators=200, random_state=seed),
            True,
        ),
        "aeon Rocket, 10,000 kernels": (lambda seed: RocketClassifier(random_state=seed), True),
    }


def measure(make, seed, data):
    """Return the error and the time of a classifier."""
    train = data.split == "train"
    X, y, Z, truth = data.data[train], data.target[train], data.data[~train], data.target[~train]
    predicted, seconds = timed(lambda: make(seed).fit(X, y).predict(Z))
    return np.mean(predicted != truth), seconds


def main() -> None:
    """Print the table."""
    machine.fix_threads()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    options = parser.parse_args()
    sets = {name: load_ucr(name) for name in NAMES}
    rows = []
    for method, (make, random) in methods().items():
        if method.startswith("aeon"):
            measure(make, 0, sets["GunPoint"])  # compiles
        row, times = [method], []
        for data in sets.values():
            runs = [measure(make, seed, data) for seed in range(options.seeds if random else 1)]
            row.append(spread([100 * error for error, _ in runs]))
            times.append(np.mean([seconds for _, seconds in runs]))
        rows.append([*row, *(f"{seconds:.2f}" for seconds in times)])
        print(rows[-1], flush=True)
    header = ["method", *(f"{name}, %" for name in NAMES), *(f"{name}, s" for name in NAMES)]
    report("Series", header, rows)


if __name__ == "__main__":
    main()
