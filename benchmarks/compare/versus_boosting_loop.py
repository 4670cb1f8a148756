"""okforest's boosting beside a loop over scikit-learn's trees on eigen-features.

There is no other implementation of boosting for kernel outputs: a user of scikit-learn writes a
loop that fits multi-output trees to what is left of the eigen-features of the output Gram matrix,
all of them, so that the trees are exact. Both sides grow trees of depth 4 and at most 16 leaves.
The eigendecomposition is not counted, while okforest's times include the Gram matrix; okforest
also works out what every leaf adds to the weights of predictions, which the loop does not.
"""

import argparse
from functools import cache
from typing import Any

import numpy as np
from benchmarks import data, machine
from benchmarks.compare.protocol import Comparison, Row, compare, parser_of
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from okforest import OKBoost
from okforest.kernels import RBF

RATE = 0.05
DEPTH = 4


@cache
def rbf_data(n: int) -> tuple[np.ndarray, np.ndarray, RBF, np.ndarray]:
    """Return inputs, outputs, kernel, and eigen-features Φ with ΦΦᵀ = K."""
    X, Y = data.halves(n)
    kernel = RBF().resolve(Y)
    values, vectors = np.linalg.eigh(kernel(Y))
    return X, Y, kernel, vectors * np.sqrt(np.maximum(values, 0.0))


def loop(X: np.ndarray, phi: np.ndarray, tree: type, rounds: int, **params: Any) -> list[Any]:
    """Boost scikit-learn's trees by hand."""
    residuals = phi - phi.mean(axis=0)
    trees = []
    for m in range(rounds):
        trees.append(tree(max_depth=DEPTH, random_state=m, **params).fit(X, residuals))
        residuals -= RATE * trees[-1].predict(X)
    return trees


def fit(name: str, n: int, rounds: int, splitter: str, tree: type, max_features: Any) -> Row:
    """Boost on both sides."""

    def prepare():
        X, Y, kernel, phi = rbf_data(n)
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
    # Many rounds of the fast rows, for the Gram matrix to count as little as in real use.
    return [
        fit("best splits", n, rounds, "best", DecisionTreeRegressor, None),
        fit("random splits", n, 5 * rounds, "random", ExtraTreeRegressor, None),
        fit("random splits, √p features", n, 5 * rounds, "random", ExtraTreeRegressor, "sqrt"),
    ]


def main() -> None:
    """Print the table."""
    options = parser_of(__doc__).parse_args()
    machine.fix_threads()
    names = f"{data.halves_name()}, upper halves → lower halves"
    compare(Comparison("scikit-learn loop", "scikit-learn", names, rows(options)), options)


if __name__ == "__main__":
    main()
