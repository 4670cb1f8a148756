"""Latency of predicting one row: okforest and scikit-learn's extra-trees on the same outputs.

Both complete digits with a forest on one thread. With the linear kernel, scikit-learn fits the same
outputs. With the RBF kernel it fits kernel PCA scores, the eigen-features of the centred training
Gram matrix: at most 256 columns, and fewer for many rows, since scikit-learn stores every column at
every node. To decode, it takes the training row with the nearest scores, by one matrix product. The
callable kernel is the RBF formula as a Python function of two arrays.

Above 5,000 rows, okforest grows the trees of the RBF and callable kernels from a Nyström embedding.
This shortens the fit, which is not timed; predictions use the exact kernel.
"""

import time
from argparse import Namespace
from collections.abc import Callable
from functools import lru_cache, partial
from statistics import median
from typing import Any

import numpy as np
from benchmarks import data, machine
from benchmarks.compare.protocol import (
    find_versions,
    format_seconds,
    make_parser,
    no_row,
    print_progress,
    write_json,
)
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import ExtraTreesRegressor

from okforest import OKExtraTrees
from okforest._utils.report import Table
from okforest.kernels import RBF, FromCallable, Linear, OutputKernel

SIZES = (2_000, 10_000)
KERNELS = ("RBF", "callable", "linear")
LARGEST_EXACT = 5_000  # rows
MAX_COLUMNS = 256
MAX_SCORES = 640_000  # rows × columns; the nodes of 200 trees then take 2 GB in scikit-learn
MIN_REPEATS = 3

Predict = Callable[[np.ndarray], Any]


def main() -> None:
    """Print the table."""
    parser = make_parser(__doc__)
    parser.set_defaults(trees=200, repeats=50, patience=30.0)
    options = parser.parse_args()
    machine.fix_threads()
    sizes = dict.fromkeys(min(n, options.samples or n) for n in SIZES)
    every = {f"{kernel}, N={n}": (kernel, n) for n in sizes for kernel in KERNELS}
    chosen = {name: task for name, task in every.items() if options.only in name}
    if not chosen:
        print(no_row(options.only, list(every)))
        return
    results = []
    for name, task in chosen.items():
        print_progress(f"one row, {name}")
        results.append(measure(*task, options))
    versions = find_versions({"scikit-learn": "scikit-learn"})
    print_table(results, versions, options)
    write_json(options.json, versions=versions, rows=results)


def measure(kernel: str, n: int, options: Namespace) -> dict[str, Any]:
    """Return the median CPU times of predicting one row, and the size of the largest support."""
    X, Y = data.resampled_halves(n + options.repeats + 1)
    test, X, Y = X[n:], X[:n], Y[:n]
    embedding = "nystrom" if n > LARGEST_EXACT and kernel != "linear" else "auto"
    ours = OKExtraTrees(**forest(options), kernel=make_kernel(kernel, Y), embedding=embedding)
    ours.fit(X, Y)
    sides: dict[str, Predict] = {"okforest": ours.predict}
    if kernel == "linear":
        sides["peer"] = ExtraTreesRegressor(**forest(options)).fit(X, Y).predict
    else:
        theirs, scores = fit_peer_to_scores(n, options.repeats, options.trees)
        sides["peer"] = theirs.predict
        sides["peer_decoded"] = partial(predict_nearest, theirs, scores, Y)
    support = np.diff(ours.predict_weights(test).indptr)
    return {
        "kernel": kernel,
        "n": n,
        "n_columns": Y.shape[1] if kernel == "linear" else scores.shape[1],
        "seconds": median_times(sides, test, options.patience),
        "largest_support": int(support.max()),
    }


def forest(options: Namespace) -> dict[str, Any]:
    """Return the parameters of both forests."""
    return {
        "n_estimators": options.trees,
        "max_features": "sqrt",
        "random_state": 0,
        "n_jobs": 1,
    }


def make_kernel(name: str, Y: np.ndarray) -> OutputKernel:
    """Return an output kernel by its name in the table."""
    if name == "linear":
        return Linear()
    rbf = RBF().resolve(Y)
    return rbf if name == "RBF" else FromCallable(partial(rbf_formula, sigma=rbf.sigma))


def rbf_formula(a: np.ndarray, b: np.ndarray, sigma: float) -> np.ndarray:
    """Return the Gram matrix of the RBF kernel."""
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.exp(-np.maximum(squared, 0.0) / (2 * sigma**2))


@lru_cache(maxsize=1)  # the RBF and callable kernels have the same scores
def fit_peer_to_scores(n: int, repeats: int, trees: int) -> tuple[Any, np.ndarray]:
    """Return scikit-learn's forest fitted to kernel PCA scores, and the scores."""
    X, Y = (part[:n] for part in data.resampled_halves(n + repeats + 1))
    n_columns = min(MAX_COLUMNS, MAX_SCORES // n, n)
    pca = KernelPCA(n_columns, kernel="precomputed", eigen_solver="randomized", random_state=0)
    scores = pca.fit_transform(RBF().resolve(Y)(Y))
    model = ExtraTreesRegressor(**forest(Namespace(trees=trees)))
    return model.fit(X, scores), scores


def predict_nearest(model: Any, scores: np.ndarray, Y: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return the training output whose scores are nearest to those predicted for one row."""
    difference = scores - model.predict(row)
    return Y[np.einsum("ij,ij->i", difference, difference).argmin()]


def median_times(sides: dict[str, Predict], test: np.ndarray, patience: float) -> dict[str, float]:
    """Return the median CPU time of each side; each row is predicted by every side in turn."""
    for predict in sides.values():  # what the first call caches is not counted
        predict(test[:1])
    times: dict[str, list[float]] = {name: [] for name in sides}
    begin = time.perf_counter()
    for i in range(1, len(test)):
        if i > MIN_REPEATS and time.perf_counter() - begin > patience:
            break
        for name, predict in sides.items():
            start = time.process_time()
            predict(test[i : i + 1])
            times[name].append(time.process_time() - start)
    return {name: median(values) for name, values in times.items()}


def print_table(
    results: list[dict[str, Any]], versions: dict[str, str], options: Namespace
) -> None:
    """Print the section of the report."""
    rows = []
    for result in results:
        seconds = result["seconds"]
        cells = [result["kernel"], f"{result['n']:,}", format_seconds(seconds["okforest"])]
        for side in ("peer", "peer_decoded"):
            found = side in seconds
            cells.append(format_seconds(seconds[side]) if found else "–")
            cells.append(f"{seconds[side] / seconds['okforest']:.2f}×" if found else "–")
        rows.append([*cells, result["n_columns"], f"{result['largest_support']:,}"])
    header = ["kernel", "N", "okforest", "scikit-learn", "ratio", "scikit-learn, decoded", "ratio"]
    header += ["scikit-learn's outputs", "largest support"]
    print("## Latency of one row\n")
    print("Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".")
    print(
        f"Data: {data.halves_name()}, upper halves → lower halves, resampled with noise if needed."
    )
    print(
        f"Extra-trees with {options.trees} trees. Median CPU time of `predict` for one row, over "
        f"up to {options.repeats} rows (one thread; no repeat after {options.patience:g} s). "
        "okforest decodes by default: it returns a training output with the RBF and callable "
        "kernels, and the mean with the linear kernel. scikit-learn predicts kernel PCA scores "
        "(RBF, callable) or the outputs (linear); decoded means that it then searches the training "
        "row with the nearest scores. The support of a prediction is the set of training outputs "
        "with non-zero weight.\n"
    )
    print(Table(header, rows).markdown())


if __name__ == "__main__":
    main()
