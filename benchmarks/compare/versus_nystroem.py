"""okforest with the RBF kernel and scikit-learn on Nyström features, at N = 5,000.

This is what a user of scikit-learn would do with thousands of outputs: map them to 64 or 256
components of :class:`sklearn.kernel_approximation.Nystroem`, fit a forest to these, and predict the
training output whose components are nearest. Both sides use all defaults of extra-trees, √p
features and the same number of trees, and the times include the map. okforest predicts the training
output nearest in the feature space of the kernel itself. The last column is the R² of
the predicted images.
"""

import argparse
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from benchmarks import data, machine
from benchmarks.compare.protocol import Comparison, Row, compare, make_parser
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import r2_score

from okforest import OKExtraTrees
from okforest.kernels import RBF

N_TEST = 500


class Task(NamedTuple):
    """Training and test images in halves, and the kernel of the lower ones."""

    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    sigma: float


class NystroemForest:
    """scikit-learn's extra-trees on Nyström components; predicts the nearest training output."""

    def __init__(self, sigma: float, n_components: int, trees: int):
        self.features = Nystroem(gamma=0.5 / sigma**2, n_components=n_components, random_state=0)
        self.forest = ExtraTreesRegressor(trees, max_features="sqrt", random_state=0, n_jobs=1)

    def fit(self, X: np.ndarray, Y: np.ndarray) -> "NystroemForest":
        """Map the outputs and fit the forest to their components."""
        self.outputs, self.components = Y, self.features.fit_transform(Y)
        self.forest.fit(X, self.components)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the training outputs whose components are nearest to the predicted ones."""
        squares = (self.components**2).sum(axis=1)
        costs = squares - 2.0 * self.forest.predict(X) @ self.components.T
        return self.outputs[costs.argmin(axis=1)]


@cache
def load(n: int) -> Task:
    """Return the task with n training images."""
    X, Y = data.resampled_halves(n + N_TEST)
    return Task(X[:n], Y[:n], X[n:], Y[n:], float(RBF().resolve(Y[:n]).sigma))


def score(n: int) -> Any:
    """Return a function from a fitted model to the R² of its predicted images."""
    return lambda model: r2_score(load(n).Y_test, model.predict(load(n).X_test))


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows: a fit and a prediction for each number of components."""
    n, trees = min(5000, options.samples or 5000), options.trees

    def models(n_components: int) -> tuple[OKExtraTrees, NystroemForest]:
        sigma = load(n).sigma
        ours = OKExtraTrees(trees, kernel=RBF(sigma), random_state=0, n_jobs=1)
        return ours, NystroemForest(sigma, min(n_components, n), trees)

    def fit(n_components: int) -> Row:
        def prepare():
            task, (ours, theirs) = load(n), models(n_components)
            return lambda: ours.fit(task.X, task.Y), lambda: theirs.fit(task.X, task.Y)

        return Row(f"fit, {trees} trees, N={n}, Nyström {n_components}", prepare, score(n))

    def predict(n_components: int) -> Row:
        def prepare():
            task = load(n)
            ours, theirs = (model.fit(task.X, task.Y) for model in models(n_components))

            def predict_ours() -> None:
                ours.predict(task.X_test)

            def predict_theirs() -> None:
                theirs.predict(task.X_test)

            return predict_ours, predict_theirs

        return Row(f"predict {N_TEST} rows, {trees} trees, N={n}, Nyström {n_components}", prepare)

    return [row(n_components) for n_components in (64, 256) for row in (fit, predict)]


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    names = f"{data.halves_name()}, upper halves → lower halves"
    peer = "scikit-learn on Nyström features"
    compare(Comparison(peer, "scikit-learn", names, rows(options)), options)


if __name__ == "__main__":
    main()
