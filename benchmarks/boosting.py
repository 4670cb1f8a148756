"""Boosting beside forests, on two problems of the OKBoost paper (ICML 2007, table 1).

Images: complete the lower half of USPS digits from the upper half (RBF kernel, σ = 7.0711), five
folds of 200 training and 800 test images. Friedman1: ten samples of 300, tested on 1,000. Boosting
has 500 rounds and a learning rate of 0.01; forests have 100 trees. On the images every number of
splits is a row; on Friedman1 it is chosen by five-fold cross-validation in each sample. Reads
the folder named by OKFOREST_DATA; prints Markdown tables of means and standard deviations.
"""

import argparse
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from okforest import OKBagging, OKBoost, OKExtraTrees
from okforest.datasets import fetch_usps, make_friedman1
from okforest.kernels import RBF
from okforest.metrics import kernel_loss, output_loss

SPLITS = (10, 20, 40)
SEARCHED_SPLITS = (1, 2, 3, 5, 8, 12, 20, 40)
RATE = 0.01
N_TRAIN, N_TEST = 300, 1000


def images(rounds: int) -> None:
    """Print the losses of completed images, in feature space and of the images."""
    usps = fetch_usps()
    rows = [
        [np.flatnonzero(usps.target == digit)[20 * f : 20 * f + 20] for digit in range(10)]
        for f in range(5)
    ]
    folds = [usps.data[np.concatenate(fold)] for fold in rows]
    models: dict[str, Any] = {
        f"boosted {name}, {n} splits": OKBoost(
            rounds, learning_rate=RATE, max_splits=n, splitter=splitter, max_features=features
        )
        for name, splitter, features in (
            ("trees", "best", None),
            ("extra-trees", "random", "sqrt"),
        )
        for n in SPLITS
    }
    models |= {"bagging": OKBagging(100), "extra-trees": OKExtraTrees(100)}
    print("\n| images | loss in H | loss of images |\n|---|---:|---:|")
    for name, model in models.items():
        losses = []
        for f, train in enumerate(folds):
            test = np.concatenate([folds[g] for g in range(5) if g != f])
            model.set_params(kernel=RBF(7.0711), random_state=f).fit(train[:, :128], train[:, 128:])
            predicted = model.predict(test[:, :128])
            losses.append(
                (
                    kernel_loss(model, test[:, :128], test[:, 128:]),
                    output_loss(model.kernel_, test[:, 128:], predicted),
                )
            )
        report(name, zip(*losses, strict=True))


def friedman(rounds: int, samples: int) -> None:
    """Print the squared errors of Friedman1."""
    test = make_friedman1(N_TEST, seed=10_000)
    models: dict[str, Any] = {"boosted trees": OKBoost(rounds, learning_rate=RATE)}
    for k in (3, 4, 10):
        models[f"boosted extra-trees, {k} features"] = OKBoost(
            rounds, learning_rate=RATE, splitter="random", max_features=k
        )
    models |= {"bagging": OKBagging(100), "extra-trees, 3 features": OKExtraTrees(100)}
    models["extra-trees, 3 features"].set_params(max_features=3)
    print("\n| Friedman1 | squared error | splits chosen |\n|---|---:|---:|")
    for name, model in models.items():
        errors, chosen = [], []
        for sample in range(samples):
            X, y = make_friedman1(N_TRAIN, seed=sample)
            fitted = clone(model).set_params(random_state=sample)
            if isinstance(model, OKBoost):
                search = GridSearchCV(fitted, {"max_splits": SEARCHED_SPLITS}, cv=5).fit(X, y)
                fitted = search.best_estimator_
                chosen.append(search.best_params_["max_splits"])
            errors.append(kernel_loss(fitted.fit(X, y), *test))
        report(name, [errors], " ".join(map(str, chosen)))


def report(name: str, columns: Iterable[Any], *more: str) -> None:
    """Print a row of means and standard deviations."""
    cells = [f"{np.mean(column):.4f} ± {np.std(column):.4f}" for column in columns]
    print(f"| {' | '.join([name, *cells, *more])} |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--samples", type=int, default=10, help="of Friedman1")
    parser.add_argument("--only", choices=["images", "friedman"])
    options = parser.parse_args()
    if options.only != "friedman":
        images(options.rounds)
    if options.only != "images":
        friedman(options.rounds, options.samples)


if __name__ == "__main__":
    main()
