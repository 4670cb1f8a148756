"""Boosting: table 1 and figure 1 of "Gradient boosting for kernelized output spaces".

P. Geurts, L. Wehenkel, F. d'Alché-Buc, ICML 2007, section 3. The columns on Friedman1 are a
separate experiment.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.model_selection import GridSearchCV

from okforest._utils.report import Block, Heading, Paragraph, Table
from papers import boosting_curves, boosting_network
from papers.data import (
    FOLDS,
    KERNEL,
    SIGMA,
    image_fold,
    inner_folds,
    load_images,
    load_usps,
    load_yeast,
)
from papers.image import compute_losses, seed_std, trees_job
from papers.jobs import Job, Results
from papers.rows import BOOSTED, LEARNING_RATE, TREES, count, make_boosting, mean_and_std, published

VERSION = "1"

# Table 1: losses in feature space and of pre-images.
PAPER = {
    "single tree": ((1.0434, 0.0152), (1.0399, 0.0150)),
    "bagging": ((0.5442, 0.0019), (0.8643, 0.0096)),
    "extra-trees": ((0.5170, 0.0024), (0.8169, 0.0109)),
    "OKBoost": ((0.5241, 0.0021), (0.8318, 0.0067)),
    "OKBoost, extra-trees": ((0.5093, 0.0033), (0.8071, 0.0114)),
}
LOSSES = ("feature_space", "support", "training_set")


@dataclass(frozen=True)
class Size:
    """Numbers of trees, rounds, folds and seeds, and the numbers of splits to choose from.

    Boosting of best splits is slow and uses one seed.
    """

    trees: int = 100
    rounds: int = 500
    splits: tuple[int, ...] = (1, 2, 5, 10, 15, 20, 30, 40)
    network_splits: tuple[int, ...] = (1, 3, 10, 40)  # boosting takes minutes for each
    fixed_splits: tuple[int, ...] = (10, 20, 40)
    folds: int = FOLDS
    seeds: int = 3
    image_rounds: int = 140
    network_rounds: int = 300


FULL = Size()
QUICK = Size(
    trees=20,
    rounds=100,
    splits=(5, 20),
    network_splits=(1, 3),
    fixed_splits=(20,),
    folds=2,
    seeds=1,
    image_rounds=60,
    network_rounds=40,
)


def load() -> list[Path]:
    """Read the data and return the files, or raise an error that names the missing file."""
    load_images()
    return [*load_usps().files, *load_yeast().files]


def jobs(size: Size) -> list[Job]:
    """Return the jobs of the tables and of the figure."""
    made = []
    for fold in range(size.folds):
        for row in BOOSTED:
            for seed in range(1 if row == "OKBoost" else size.seeds):
                arguments = {"row": row, "fold": fold, "seed": seed, "rounds": size.rounds}
                cost = (0.005 if row == "OKBoost" else 0.0008) * size.rounds
                search = arguments | {"splits": list(size.splits)}
                made.append(Job(row, evaluate_boosting, search, 5 * len(size.splits) * cost))
                for n in size.fixed_splits:
                    fixed = arguments | {"splits": [n]}
                    made.append(Job(f"{row}, {n} splits", evaluate_boosting, fixed, cost))
        for seed in range(size.seeds):
            made += [trees_job(row, 200, fold, seed, size.trees) for row in TREES]
    splits = list(size.network_splits)
    made += boosting_network.jobs(size.trees, size.rounds, splits, size.folds)
    made += boosting_curves.jobs(size.image_rounds, size.network_rounds)
    return made


def evaluate_boosting(
    row: str, fold: int, seed: int, rounds: int, splits: list[int]
) -> dict[str, Any]:
    """Return the losses of boosting on images, with the number of splits chosen if several."""
    data = image_fold(200, fold)
    model = make_boosting(row, rounds, kernel=KERNEL, random_state=1000 * seed + fold)
    if len(splits) > 1:
        search = GridSearchCV(model, {"max_splits": splits}, cv=inner_folds(200))
        model = search.fit(data.X, data.Y).best_estimator_
    else:
        model.set_params(max_splits=splits[0]).fit(data.X, data.Y)
    return compute_losses(model, data.X_test, data.Y_test) | {"chosen": model.max_splits}


def blocks(results: Results, size: Size) -> list[Block]:
    """Return the report."""
    return [
        Heading("Boosting (ICML 2007)"),
        Paragraph(
            f"Boosting has {size.rounds} rounds and a learning rate of {LEARNING_RATE}, forests "
            f"have {size.trees} trees, and extra-trees try √p features at a node. The third "
            "problem of the table, Friedman1, is a separate experiment."
        ),
        *_image_blocks(results, size),
        *boosting_network.blocks(results, list(size.network_splits), size.folds),
        *boosting_curves.blocks(results),
    ]


def _image_blocks(results: Results, size: Size) -> list[Block]:
    header = ["method", "paper, Errφ", "ours, Errφ", "sd over seeds"]
    header += ["paper, ErrY", "ours, support", "ours, training set", "sd over seeds"]
    rows, chosen = [], []
    for row, paper in PAPER.items():
        by_seed = [results.by_seed(name, row) for name in LOSSES]
        in_space, support, training = (mean_and_std(values.mean(axis=0)) for values in by_seed)
        space_std, support_std, _ = (seed_std(values) for values in by_seed)
        cells = [row, published(paper[0]), in_space, space_std]
        rows.append([*cells, published(paper[1]), support, training, support_std])
        if row in BOOSTED:
            found = ", ".join(str(result["chosen"]) for result in results.select(row))
            chosen.append(f"{row}: {found}")
    fixed = []
    for name in (f"{row}, {n} splits" for row in BOOSTED for n in size.fixed_splits):
        columns = [results.by_seed(loss, name).mean(axis=0) for loss in (LOSSES[0], LOSSES[2])]
        fixed.append([name, *map(mean_and_std, columns)])
    return [
        Heading("Table 1, images", 3),
        Paragraph(
            "Predict the lower half of a handwritten digit from the upper half. The data are the "
            "first 100 USPS images of each digit in file order, with raw values; fold f, images "
            "20f to 20f + 19 of each digit, is for training and the others for testing, in "
            f"{count(size.folds, 'fold')}. The output kernel is exp(−‖y − y'‖² / 2σ²) with "
            f"σ = {SIGMA}. Errφ is the loss in feature space. ErrY is the loss of pre-images, "
            "searched in the support and in the whole training set; for boosting the two are the "
            f"same. The number of splits J is chosen from {', '.join(map(str, size.splits))} by "
            f"Errφ in five inner folds, in blocks. There are {count(size.seeds, 'seed')} starting "
            "from 0 (random_state = 1000 seed + fold), and only seed 0 for boosting of best "
            "splits. ± is the standard deviation over folds, of means over seeds; the columns of "
            "seeds have the standard deviation over seeds, of means over folds."
        ),
        Table(header, rows),
        Paragraph(f"J chosen for each fold and seed. {'; '.join(chosen)}.", note=True),
        Paragraph("With a fixed number of splits:"),
        Table(["method", "Errφ", "ErrY"], fixed),
    ]
