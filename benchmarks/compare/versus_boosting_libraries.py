"""okforest's boosting and libraries of boosted trees, on one numeric output.

All sides fit the same number of trees of 31 leaves, best leaf first, between at most 255 bins, with
a learning rate of 0.1: the default of LightGBM and scikit-learn, and for XGBoost
``grow_policy="lossguide"``. Data are Friedman's first function with ten features and noise. R² is
on 100,000 new rows, whose prediction is timed; the latency of one row is a median.
"""

import argparse
import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from benchmarks import machine
from benchmarks.compare.protocol import (
    find_versions,
    format_seconds,
    make_parser,
    no_row,
    print_progress,
    time_alternately,
    write_json,
)
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from okforest import OKBoost
from okforest._utils.report import Table

SIZES = (10_000, 100_000, 1_000_000)
N_TEST = 100_000
N_LATENCIES = 100
LEAVES = 31
RATE = 0.1
PACKAGES = {"scikit-learn": "scikit-learn", "LightGBM": "lightgbm", "XGBoost": "xgboost"}


def friedman(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and a noisy function of half of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)


def models(trees: int) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """Return a function for each library that makes a model, and why others are skipped."""
    made: dict[str, Callable[[], Any]] = {
        "okforest": partial(
            OKBoost,
            trees,
            learning_rate=RATE,
            max_splits=LEAVES - 1,
            growth="gain",
            random_state=0,
            n_jobs=1,
        ),
        "scikit-learn": partial(
            HistGradientBoostingRegressor,
            max_iter=trees,
            learning_rate=RATE,
            max_leaf_nodes=LEAVES,
            min_samples_leaf=1,
            early_stopping=False,
            random_state=0,
        ),
    }
    skipped = {}
    shared = {"n_estimators": trees, "learning_rate": RATE, "n_jobs": 1}
    try:
        from lightgbm import LGBMRegressor
    except ImportError as error:
        skipped["LightGBM"] = f"lightgbm cannot be imported ({error})"
    else:
        small = {"num_leaves": LEAVES, "min_child_samples": 1, "verbosity": -1}
        made["LightGBM"] = partial(LGBMRegressor, **shared, **small, random_state=0)
    try:
        from xgboost import XGBRegressor
    except ImportError as error:
        skipped["XGBoost"] = f"xgboost cannot be imported ({error})"
    else:
        tree = {"max_leaves": LEAVES, "max_depth": 0, "grow_policy": "lossguide", "max_bin": 255}
        made["XGBoost"] = partial(XGBRegressor, **shared, **tree, tree_method="hist", reg_lambda=0)
    return made, skipped


def measure(n: int, made: dict[str, Callable[[], Any]], options: Namespace) -> list[dict[str, Any]]:
    """Return times and scores of every library on n training rows."""
    X, y = friedman(n, 0)
    X_test, y_test = friedman(min(N_TEST, 100 * n), 1)
    fitted = {name: make() for name, make in made.items()}

    def fit(name: str) -> Callable[[], Any]:
        return lambda: fitted[name].fit(X, y)

    def predict(name: str) -> Callable[[], Any]:
        return lambda: fitted[name].predict(X_test)

    def timed(task: Callable[[str], Callable[[], Any]]) -> list[float]:
        tasks = [task(name) for name in fitted]
        times = time_alternately(tasks, options.repeats, options.patience)
        return [min(cpu for _, cpu in timings) for timings in times]

    results = zip(fitted, timed(fit), timed(predict), strict=True)
    return [
        {
            "n": n,
            "library": name,
            "fit_seconds": of_fit,
            "score": float(r2_score(y_test, fitted[name].predict(X_test))),
            "predict_seconds": of_prediction,
            "n_test": len(X_test),
            "row_seconds": one_row(fitted[name].predict, X_test),
        }
        for name, of_fit, of_prediction in results
    ]


def one_row(predict: Callable[[np.ndarray], Any], X: np.ndarray) -> float:
    """Return the median CPU time of a prediction of one row."""
    times = []
    for i in range(N_LATENCIES):
        start = time.process_time()
        predict(X[i : i + 1])
        times.append(time.process_time() - start)
    return median(times)


def print_table(
    results: list[dict[str, Any]], skipped: dict[str, str], options: argparse.Namespace
) -> None:
    """Print the section of the report."""
    print("## okforest and libraries of boosted trees\n")
    versions = find_versions({name: PACKAGES[name] for name in PACKAGES if name not in skipped})
    print("Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".")
    print(
        f"{options.trees} trees of {LEAVES} leaves, one output, ten features; R² and prediction of "
        f"{N_TEST:,} new rows. CPU times on one thread, the best of two to {options.repeats}, as "
        f"many as {options.patience:g} s allow; one row is a median.\n"
    )
    header = ["N", "library", "fit", "okforest's speed", "R²", "predict", "one row"]
    rows = []
    for result in results:
        ours = next(r for r in results if r["n"] == result["n"] and r["library"] == "okforest")
        rows.append(
            [
                f"{result['n']:,}",
                result["library"],
                format_seconds(result["fit_seconds"]),
                f"{result['fit_seconds'] / ours['fit_seconds']:.2f}×",
                f"{result['score']:.4f}",
                format_seconds(result["predict_seconds"]),
                format_seconds(result["row_seconds"]),
            ]
        )
    print(Table(header, rows).markdown())
    for reason in skipped.values():
        print(f"\nSkipped: {reason}")


def main() -> None:
    """Print the table."""
    parser = make_parser(__doc__)
    parser.set_defaults(trees=100, repeats=3)
    options = parser.parse_args()
    machine.fix_threads()
    sizes = dict.fromkeys(min(n, options.samples or n) for n in SIZES)
    chosen = [n for n in sizes if options.only in f"N={n}"]
    if not chosen:
        print(no_row(options.only, [f"N={n}" for n in sizes]))
        return
    made, skipped = models(options.trees)
    results = []
    for n in chosen:
        print_progress(f"boosting libraries, N={n}")
        results += measure(n, made, options)
    print_table(results, skipped, options)
    write_json(options.json, rows=results, skipped=skipped)


if __name__ == "__main__":
    main()
