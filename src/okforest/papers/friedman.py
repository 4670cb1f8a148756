"""Friedman1: the first columns of table 1 of "Gradient boosting for kernelized output spaces".

P. Geurts, L. Wehenkel, F. d'Alché-Buc, ICML 2007, section 3.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.model_selection import GridSearchCV

from okforest.datasets import make_friedman1
from okforest.metrics import kernel_loss, output_loss
from okforest.papers._jobs import Job, Results
from okforest.papers._models import BOOSTED, RATE, boosted, grown
from okforest.papers._report import Block, Heading, Paragraph, Table, published, spread

# Rows: the method, the number of features K that extra-trees try at a node, and what table 1 says
# of the loss in H and of that of pre-images.
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
    """How large the experiment is: trees, rounds, numbers of splits to try, samples."""

    trees: int = 100
    rounds: int = 500
    splits: tuple[int, ...] = SPLITS
    samples: int = 10


FULL = Size()
QUICK = Size(trees=20, rounds=200, splits=(5, 20), samples=2)


def load() -> list[Path]:
    """Return no files: the data are drawn."""
    return []


def jobs(size: Size) -> list[Job]:
    """Return a job for each row and sample."""
    made = []
    for row, (method, features, *_) in ROWS.items():
        for sample in range(size.samples):
            arguments = {"method": method, "features": features, "sample": sample}
            if method in BOOSTED:
                options = {"rounds": size.rounds, "splits": list(size.splits)}
                cost = 0.002 * size.rounds * len(size.splits)
                made.append(Job(row, boost, arguments | options, cost))
            else:
                made.append(Job(row, grow, arguments | {"trees": size.trees}, 0.2))
    return made


def grow(method: str, features: int | None, sample: int, trees: int) -> dict[str, Any]:
    """Return the losses of a tree or a forest."""
    X, y = make_friedman1(N_TRAIN, seed=sample)
    model = grown(method, trees, max_features=features, random_state=sample)
    return _losses(model.fit(X, y), y)


def boost(
    method: str, features: int | None, sample: int, rounds: int, splits: list[int]
) -> dict[str, Any]:
    """Return the losses of boosting, and the number of splits that five inner folds choose."""
    X, y = make_friedman1(N_TRAIN, seed=sample)
    model = boosted(method, rounds, max_features=features, random_state=sample)
    search = GridSearchCV(model, {"max_splits": splits}, cv=5).fit(X, y)
    return _losses(search.best_estimator_, y) | {"chosen": search.best_params_["max_splits"]}


def _losses(model: Any, y: Any) -> dict[str, Any]:
    X_test, y_test = make_friedman1(N_TEST, seed=TEST_SEED)
    nearest = model.predict(X_test, candidates=y)
    return {
        "in_h": kernel_loss(model, X_test, y_test),
        "whole": output_loss(model.kernel_, y_test, nearest),
    }


def blocks(results: Results, size: Size) -> list[Block]:
    """Return the table."""
    rows = []
    for row, (_, _, *paper) in ROWS.items():
        chosen = [str(result["chosen"]) for result in results.of(row) if "chosen" in result]
        cells = [row]
        for name, value in zip(("in_h", "whole"), paper, strict=True):
            cells += [published(value, 3), spread(results.values(name, row), 3)]
        rows.append([*cells, ", ".join(chosen)])
    return [
        Heading("Friedman1 (ICML 2007)"),
        Paragraph(
            f"Regression with the linear kernel: {size.samples} random samples of {N_TRAIN} rows "
            f"(seeds 0 to {size.samples - 1}, which are the random_state of models, too), one test "
            f"sample of {N_TEST:,} (seed {TEST_SEED:,}); y has noise of variance 1. Boosting has "
            f"{size.rounds} rounds and a learning rate of {RATE}; its number of splits J is one of "
            f"{', '.join(map(str, size.splits))}, by the squared error in five inner folds. "
            f"Forests have {size.trees} trees. Extra-trees try K features at a node: the paper's "
            "default is the root of their number, √10 ≈ 3."
        ),
        Paragraph(
            "Errφ is the squared error. ErrY is that of the training output nearest to the "
            "prediction, a pre-image that the linear kernel does not need. ± is the standard "
            "deviation over samples."
        ),
        Table(
            ["method", "paper, Errφ", "ours, Errφ", "paper, ErrY", "ours, ErrY", "J chosen"], rows
        ),
    ]
