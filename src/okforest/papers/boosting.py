"""Boosting: table 1 and figure 1 of "Gradient boosting for kernelized output spaces".

P. Geurts, L. Wehenkel, F. d'Alché-Buc, ICML 2007, section 3. The columns of Friedman1 have an
experiment of their own.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.model_selection import GridSearchCV

from okforest.papers import _boosting_curves, _boosting_network
from okforest.papers._digits import FOLDS, KERNEL, SIGMA, halves, images, inner_folds, usps
from okforest.papers._jobs import Job, Results
from okforest.papers._models import BOOSTED, RATE, TREES, boosted
from okforest.papers._proteins import yeast
from okforest.papers._report import Block, Heading, Paragraph, Table, counted, published, spread
from okforest.papers.image import losses_of, seed_spread, trees_job

# Table 1: losses in H and of pre-images.
PAPER = {
    "single tree": ((1.0434, 0.0152), (1.0399, 0.0150)),
    "bagging": ((0.5442, 0.0019), (0.8643, 0.0096)),
    "extra-trees": ((0.5170, 0.0024), (0.8169, 0.0109)),
    "OKBoost": ((0.5241, 0.0021), (0.8318, 0.0067)),
    "OKBoost, extra-trees": ((0.5093, 0.0033), (0.8071, 0.0114)),
}


@dataclass(frozen=True)
class Size:
    """How large the experiment is: trees, rounds, numbers of splits to try, folds, seeds.

    The seeds are of rows that take seconds; boosting of exact splits has one.
    """

    trees: int = 100
    rounds: int = 500
    splits: tuple[int, ...] = (1, 2, 5, 10, 15, 20, 30, 40)
    network_splits: tuple[int, ...] = (1, 3, 10, 40)  # boosted trees take minutes with each
    fixed_splits: tuple[int, ...] = (10, 20, 40)
    folds: int = FOLDS
    seeds: int = 3
    image_rounds: int = 140  # of figure 1
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
    """Read the data, or say where to put it; return the files."""
    images()
    return [*usps().files, *yeast().files]


def jobs(size: Size) -> list[Job]:
    """Return the pieces of tables and figures."""
    made = []
    for fold in range(size.folds):
        for row in BOOSTED:
            for seed in range(1 if row == "OKBoost" else size.seeds):
                arguments = {"row": row, "fold": fold, "seed": seed, "rounds": size.rounds}
                cost = (0.005 if row == "OKBoost" else 0.0008) * size.rounds
                several = {"splits": list(size.splits)}
                made.append(Job(row, boost, arguments | several, 5 * len(size.splits) * cost))
                for n in size.fixed_splits:
                    one = arguments | {"splits": [n]}
                    made.append(Job(f"{row}, {n} splits", boost, one, cost))
        for seed in range(size.seeds):
            made += [trees_job(row, 200, fold, seed, size.trees) for row in TREES]
    splits = list(size.network_splits)
    made += _boosting_network.jobs(size.trees, size.rounds, splits, size.folds)
    made += _boosting_curves.jobs(size.image_rounds, size.network_rounds)
    return made


def boost(row: str, fold: int, seed: int, rounds: int, splits: list[int]) -> dict[str, Any]:
    """Return the losses of boosting on images; the number of splits is chosen, of several."""
    data = halves(200, fold)
    model = boosted(row, rounds, kernel=KERNEL, random_state=1000 * seed + fold)
    if len(splits) > 1:
        search = GridSearchCV(model, {"max_splits": splits}, cv=inner_folds(200))
        model = search.fit(data.X, data.Y).best_estimator_
    else:
        model.set_params(max_splits=splits[0]).fit(data.X, data.Y)
    return losses_of(model, data.X_test, data.Y_test) | {"chosen": model.max_splits}


def blocks(results: Results, size: Size) -> list[Block]:
    """Return the tables and the figure."""
    return [
        Heading("Boosting (ICML 2007)"),
        Paragraph(
            f"Boosting has {size.rounds} rounds and a learning rate of {RATE}; forests have "
            f"{size.trees} trees; extra-trees try √p features at a node. The table's other "
            "problem, Friedman1, is an experiment of its own."
        ),
        *_image_blocks(results, size),
        *_boosting_network.blocks(results, list(size.network_splits), size.folds),
        *_boosting_curves.blocks(results),
    ]


def _image_blocks(results: Results, size: Size) -> list[Block]:
    header = ["method", "paper, Errφ", "ours, Errφ", "sd of seeds"]
    header += ["paper, ErrY", "ours, support", "ours, whole set", "sd of seeds"]
    rows, chosen = [], []
    for row, paper in PAPER.items():
        several = [results.by_seed(name, row) for name in ("in_h", "support", "whole")]
        in_h, support, whole = (spread(values.mean(axis=0)) for values in several)
        seeds = [seed_spread(values) for values in several]
        line = [row, published(paper[0]), in_h, seeds[0], published(paper[1]), support, whole]
        rows.append([*line, seeds[1]])
        if row in BOOSTED:
            found = ", ".join(str(result["chosen"]) for result in results.of(row))
            chosen.append(f"{row}: {found}")
    fixed = []
    for name in (f"{row}, {n} splits" for row in BOOSTED for n in size.fixed_splits):
        columns = [results.by_seed(key, name).mean(axis=0) for key in ("in_h", "whole")]
        fixed.append([name, *map(spread, columns)])
    return [
        Heading("Table 1, images", 3),
        Paragraph(
            "Predict the lower half of a handwritten digit from the upper half. USPS: the first "
            "100 images of each digit in file order, raw values; fold f has images 20f to 20f + 19 "
            f"of each digit and is learnt from, the others are for the test; {size.folds} folds. "
            f"Output kernel exp(−‖y − y'‖² / 2σ²), σ = {SIGMA}. Errφ is the loss in feature space, "
            "ErrY that of pre-images, searched in the support and in the whole training set; for "
            f"boosting these are the same. J is one of {', '.join(map(str, size.splits))}, by Errφ "
            f"in five inner folds, in blocks. {counted(size.seeds, 'seed')} from 0 on "
            "(random_state = 1000 seed + fold), boosting of exact splits with seed 0 only. ± is "
            "the standard deviation over folds, of means over seeds; that over seeds, of means "
            "over folds, has columns of its own."
        ),
        Table(header, rows),
        Paragraph(f"J chosen, fold by fold and seed by seed. {'; '.join(chosen)}.", note=True),
        Paragraph("With a given number of splits:"),
        Table(["method", "Errφ", "ErrY"], fixed),
    ]
