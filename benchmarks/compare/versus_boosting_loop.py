"""okforest's boosting and a loop over scikit-learn's trees on eigen-features.

There is no other implementation of boosting for kernel outputs. A user of scikit-learn would write
a loop that fits multi-output trees to the residuals of all eigen-features of the output Gram
matrix, so that the trees are exact. Both sides grow trees of depth 4 with at most 16 leaves. The
eigendecomposition is not counted, while the times of okforest include the Gram matrix. okforest
also computes the contribution of every leaf to the weights of predictions; the loop does not.
"""

import argparse
from typing import Any

import numpy as np
from benchmarks import data, machine
from benchmarks.compare.protocol import Comparison, Row, compare, make_parser
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from okforest import OKBoost

RATE = 0.05
DEPTH = 4


def loop(X: np.ndarray, phi: np.ndarray, tree: type, rounds: int, **params: Any) -> list[Any]:
    """Boost scikit-learn's trees."""
    residuals = phi - phi.mean(axis=0)
    trees = []
    for m in range(rounds):
        trees.append(tree(max_depth=DEPTH, random_state=m, **params).fit(X, residuals))
        residuals -= RATE * trees[-1].predict(X)
    return trees


def fit(name: str, n: int, rounds: int, splitter: str, tree: type, max_features: Any) -> Row:
    """Fit both boosted models."""

    def prepare():
        X, Y, kernel, phi, _ = data.rbf_halves(n)
        ours = OKBoost(
            rounds,
            kernel=kernel,
            learning_rate=RATE,
            max_splits=2**DEPTH - 1,
            max_depth=DEPTH,
            splitter=splitter,
            max_features=max_features,
            random_state=0,
        )
        theirs = {"rounds": rounds, "max_features": max_features}
        return lambda: ours.fit(X, Y), lambda: loop(X, phi, tree, **theirs)

    return Row(f"{name}, {rounds} rounds, N={n}, RBF", prepare)


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows."""
    n, rounds = min(800, options.samples or 800), options.trees
    # Fast rows have more rounds, so that the Gram matrix matters as little as in practice.
    return [
        fit("best splits", n, rounds, "best", DecisionTreeRegressor, None),
        fit("random splits", n, 5 * rounds, "random", ExtraTreeRegressor, None),
        fit("random splits, √p features", n, 5 * rounds, "random", ExtraTreeRegressor, "sqrt"),
    ]


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    names = f"{data.halves_name()}, upper halves → lower halves"
    compare(Comparison("scikit-learn loop", "scikit-learn", names, rows(options)), options)


if __name__ == "__main__":
    main()
