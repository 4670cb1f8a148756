"""Friedman1: the first columns of table 1 of "Gradient boosting for kernelized output spaces".

P. Geurts, L. Wehenkel, F. d'Alché-Buc, ICML 2007, section 3.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.model_selection import GridSearchCV

from okforest._report import Block, Heading, Paragraph, Table
from okforest.datasets import make_friedman1
from okforest.metrics import kernel_loss, output_loss
from okforest.papers._formatting import mean_and_std, published
from okforest.papers._jobs import Job, Results
from okforest.papers._models import BOOSTED, LEARNING_RATE, make_boosting, make_trees

VERSION = "1"

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
N_TRAIN, N_TEST, TEST_SEED = 300, 1000, 10_000


@dataclass(frozen=True)
class Size:
    """Numbers of trees, rounds and samples, and the numbers of splits to choose from."""

    trees: int = 100
    rounds: int = 500
    splits: tuple[int, ...] = SPLITS
    samples: int = 10


FULL = Size()
QUICK = Size(trees=20, rounds=200, splits=(5, 20), samples=2)


def load() -> list[Path]:
    """Return no files: the data are generated."""
    return []


def jobs(size: Size) -> list[Job]:
    """Return one job for each row and sample."""
    made = []
    for row, (method, features, *_) in ROWS.items():
        for sample in range(size.samples):
            arguments = {"method": method, "features": features, "sample": sample}
            if method in BOOSTED:
                options = {"rounds": size.rounds, "splits": list(size.splits)}
                cost = 0.002 * size.rounds * len(size.splits)
                made.append(Job(row, evaluate_boosting, arguments | options, cost))
            else:
                options = {"trees": size.trees}
                made.append(Job(row, evaluate_trees, arguments | options, 0.2))
    return made


def evaluate_trees(method: str, features: int | None, sample: int, trees: int) -> dict[str, Any]:
    """Return the losses of a tree or a forest."""
    X, y = make_friedman1(N_TRAIN, seed=sample)
    model = make_trees(method, trees, max_features=features, random_state=sample)
    return _losses(model.fit(X, y), y)


def evaluate_boosting(
    method: str, features: int | None, sample: int, rounds: int, splits: list[int]
) -> dict[str, Any]:
    """Return the losses of boosting and the number of splits chosen by five inner folds."""
    X, y = make_friedman1(N_TRAIN, seed=sample)
    model = make_boosting(method, rounds, max_features=features, random_state=sample)
    search = GridSearchCV(model, {"max_splits": splits}, cv=5).fit(X, y)
    return _losses(search.best_estimator_, y) | {"chosen": search.best_params_["max_splits"]}


def _losses(model: Any, y: Any) -> dict[str, Any]:
    X_test, y_test = make_friedman1(N_TEST, seed=TEST_SEED)
    nearest = model.predict(X_test, candidates=y)
    return {
        "feature_space": kernel_loss(model, X_test, y_test),
        "training_set": output_loss(model.kernel_, y_test, nearest),
    }


def blocks(results: Results, size: Size) -> list[Block]:
    """Return the report."""
    rows = []
    for row, (_, _, *paper) in ROWS.items():
        chosen = [str(result["chosen"]) for result in results.select(row) if "chosen" in result]
        cells = [row]
        for name, value in zip(("feature_space", "training_set"), paper, strict=True):
            cells += [published(value, 3), mean_and_std(results.values(name, row), 3)]
        rows.append([*cells, ", ".join(chosen)])
    return [
        Heading("Friedman1 (ICML 2007)"),
        Paragraph(
            f"Regression with the linear kernel: {size.samples} random training samples of "
            f"{N_TRAIN} rows (seeds 0 to {size.samples - 1}, also the random_state of the models) "
            f"and one test sample of {N_TEST:,} rows (seed {TEST_SEED:,}). The noise of y has "
            f"variance 1. Boosting has {size.rounds} rounds and a learning rate of "
            f"{LEARNING_RATE}. Its number of splits J is chosen from "
            f"{', '.join(map(str, size.splits))} by the squared error in five inner folds. Forests "
            f"have {size.trees} trees. Extra-trees try K features at a node; the paper's default "
            "is the square root of the number of features, √10 ≈ 3."
        ),
        Paragraph(
            "Errφ is the squared error. ErrY is the squared error of the training output nearest "
            "to the prediction, a pre-image that the linear kernel does not need. ± is the "
            "standard deviation over samples."
        ),
        Table(
            ["method", "paper, Errφ", "ours, Errφ", "paper, ErrY", "ours, ErrY", "J chosen"], rows
        ),
    ]
