"""okforest beside scikit-learn, on the work that scikit-learn users do today for kernel outputs.

They fit multi-output trees to the eigen-features of the output Gram matrix, all of them, so that
the trees are exact. Both sides grow the same kind of trees on the same data with one thread; each
is timed several times in turn, and the best counts. The eigendecomposition is not counted. With
``search_rank``, okforest's trees are approximate, and finding the directions is counted.
"""

import argparse
import os
import platform
import time

import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import okforest
from okforest import OKBagging, OKExtraTrees, OKTree
from okforest.kernels import RBF


def eigen_features(K: np.ndarray) -> np.ndarray:
    """Return Φ with ΦΦᵀ = K, one column per eigenvalue."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def best_time(fits: list, repeats: int) -> list[float]:
    """Time each function in turn, several times; return the best of each."""
    times = [[] for _ in fits]
    for _ in range(repeats):
        for fit, kept in zip(fits, times, strict=True):
            start = time.perf_counter()
            fit()
            kept.append(time.perf_counter() - start)
    return [min(kept) for kept in times]


def main() -> None:
    """Print a table of times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=800, help="training rows, at most 1797")
    parser.add_argument("--trees", type=int, default=20, help="trees in a forest")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    images = load_digits().data[: options.rows] / 16.0
    X, Y = images[:, :32].astype(np.float32), images[:, 32:]
    kernel = RBF().resolve(Y)
    phi = eigen_features(kernel(Y))
    forest = {"n_estimators": options.trees, "random_state": 0}
    work = {
        "extra-trees, √p features": (
            OKExtraTrees(kernel=kernel, **forest),
            ExtraTreesRegressor(max_features="sqrt", **forest),
        ),
        "same, search_rank=32": (
            OKExtraTrees(kernel=kernel, search_rank=32, **forest),
            ExtraTreesRegressor(max_features="sqrt", **forest),
        ),
        "extra-trees, all features": (
            OKExtraTrees(kernel=kernel, max_features=None, **forest),
            ExtraTreesRegressor(**forest),
        ),
        "bagging": (OKBagging(kernel=kernel, **forest), RandomForestRegressor(**forest)),
        "single tree": (
            OKTree(kernel=kernel, random_state=0),
            DecisionTreeRegressor(random_state=0),
        ),
    }
    print(
        f"okforest {okforest.__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}, {platform.processor() or platform.machine()}, "
        f"{os.cpu_count()} cores, 1 thread each; {len(X)} digits, RBF kernel on lower halves, "
        f"{options.trees} trees, best of {options.repeats}\n"
    )
    print(f"{'':28}{'okforest':>10}{'scikit-learn':>14}{'ratio':>8}")
    for name, (ours, theirs) in work.items():
        a, b = best_time(
            [lambda ours=ours: ours.fit(X, Y), lambda theirs=theirs: theirs.fit(X, phi)],
            options.repeats,
        )
        print(f"{name:28}{a:>8.3f} s{b:>12.3f} s{b / a:>7.1f}×")


if __name__ == "__main__":
    main()
