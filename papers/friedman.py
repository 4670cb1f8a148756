"""Friedman1: the first columns of table 1 of "Gradient boosting for kernelized output spaces".

P. Geurts, L. Wehenkel, F. d'Alché-Buc, ICML 2007, section 3.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from okforest._utils.report import Block, Heading, Paragraph, Table
from okforest.datasets import make_friedman1
from okforest.metrics import kernel_loss, output_loss
from papers.jobs import Job, Results
from papers.rows import BOOSTED, LEARNING_RATE, make_boosting, make_trees, mean_and_std, published

VERSION = "2"

# Each row: the method, the number K of features that extra-trees try at a node, and the published
# loss in feature space and loss of pre-images.
ROWS: dict[str, tuple[str, int | None, Any, Any]] = {
    "single tree": ("single tree", None, (11.203, 0.619), (11.203, 0.619)),
    "bagging": ("bagging", None, (5.089, 0.394), (5.154, 0.378)),
    "extra-trees, K = 3": ("extra-trees", 3, (5.990, 0.561), (6.162, 0.582)),
    "OKBoost": ("OKBoost", None, (3.589, 0.277), (3.589, 0.271)),
    "OKBoost, extra-trees, K = 3": ("OKBoost, extra-trees", 3, (3.349, 0.355), (3.365, 0.349)),
    "OKBoost, extra-trees, K = 4": ("OKBoost, extra-trees", 4, None, None),
    "OKBoost, extra-trees, K = 10": ("OKBoost, extra-trees", 10, None, None),
}
SPLITS = (1, 2, 3, 5, 8, 12, 20, 40)
N_TRAIN, N_TEST, TEST_SEED = 300, 1000, 10_000  # test samples have the seeds from TEST_SEED
LOSSES = ("feature_space", "support", "training_set")


@dataclass(frozen=True)
class Size:
    """Numbers of trees, rounds and samples, and the numbers of splits to choose from."""

    trees: int = 100
    rounds: int = 500
    splits: tuple[int, ...] = SPLITS
    samples: int = 10
    tests: int = 10


FULL = Size()
QUICK = Size(trees=20, rounds=200, splits=(5, 20), samples=2, tests=2)


def load() -> list[Path]:
    """Return no files: the data are generated."""
    return []


def jobs(size: Size) -> list[Job]:
    """Return one job for each row and sample."""
    made = []
    for row, (method, features, *_) in ROWS.items():
        for sample in range(size.samples):
            arguments = {"method": method, "features": features, "sample": sample}
            arguments["tests"] = size.tests
            if method in BOOSTED:
                options = {"rounds": size.rounds, "splits": list(size.splits)}
                cost = 0.002 * size.rounds * len(size.splits)
                made.append(Job(row, evaluate_boosting, arguments | options, cost))
            else:
                options = {"trees": size.trees}
                made.append(Job(row, evaluate_trees, arguments | options, 0.2))
    return made


def evaluate_trees(
    method: str, features: int | None, sample: int, tests: int, trees: int
) -> dict[str, Any]:
    """Return the losses of a tree or a forest."""
    X, y = make_friedman1(N_TRAIN, seed=sample)
    model = make_trees(method, trees, max_features=features, random_state=sample)
    return _losses(model.fit(X, y), tests)


def evaluate_boosting(
    method: str, features: int | None, sample: int, tests: int, rounds: int, splits: list[int]
) -> dict[str, Any]:
    """Return the losses of boosting and the number of splits chosen by five inner folds."""
    X, y = make_friedman1(N_TRAIN, seed=sample)
    model = make_boosting(method, rounds, max_features=features, random_state=sample)
    search = GridSearchCV(model, {"max_splits": splits}, cv=5).fit(X, y)
    return _losses(search.best_estimator_, tests) | {"chosen": search.best_params_["max_splits"]}


def _losses(model: Any, tests: int) -> dict[str, Any]:
    """Return the losses on each test sample, in feature space and of pre-images."""
    losses: dict[str, list[float]] = {name: [] for name in LOSSES}
    for seed in range(TEST_SEED, TEST_SEED + tests):
        X, y = make_friedman1(N_TEST, seed=seed)
        losses["feature_space"].append(kernel_loss(model, X, y))
        for decoder in LOSSES[1:]:
            predicted = model.set_params(decoder=decoder).predict(X)
            losses[decoder].append(output_loss(model.kernel_, y, predicted))
    return losses


def blocks(results: Results, size: Size) -> list[Block]:
    """Return the report."""
    rows = []
    for row, (_, _, *paper) in ROWS.items():
        found = results.select(row)
        losses = [np.array([one[name] for one in found]) for name in LOSSES]
        in_space, support, training = (mean_and_std(loss.mean(axis=1), 3) for loss in losses)
        cells = [row, published(paper[0], 3), in_space, f"{losses[0].mean(axis=0).std(ddof=1):.3f}"]
        cells += [published(paper[1], 3), support, training]
        rows.append([*cells, ", ".join(str(one["chosen"]) for one in found if "chosen" in one)])
    header = ["method", "paper, Errφ", "ours, Errφ", "sd over test samples"]
    header += ["paper, ErrY", "ours, support", "ours, training set", "J chosen"]
    return [
        Heading("Friedman1 (ICML 2007)"),
        Paragraph(
            f"Regression with the linear kernel: {size.samples} random training samples of "
            f"{N_TRAIN} rows (seeds 0 to {size.samples - 1}, also the random_state of the models) "
            f"and {size.tests} test samples of {N_TEST:,} rows (seeds from {TEST_SEED:,}); the "
            "paper has one test sample. Losses are means over test samples. The noise of y has "
            f"variance 1. Boosting has {size.rounds} rounds and a learning rate of "
            f"{LEARNING_RATE}. Its number of splits J is chosen from "
            f"{', '.join(map(str, size.splits))} by the squared error in five inner folds. Forests "
            f"have {size.trees} trees. Extra-trees try K features at a node; the paper's default "
            "is the square root of the number of features, √10 ≈ 3."
        ),
        Paragraph(
            "Errφ is the squared error. ErrY is the squared error of the training output nearest "
            "to the prediction, a pre-image that the linear kernel does not need: searched in the "
            "support of the prediction, as the paper does for trees, and in the whole training "
            "set. ± is the standard deviation over training samples. The column of test samples "
            "has the standard deviation, over test samples, of the mean over training samples."
        ),
        Table(header, rows),
    ]
