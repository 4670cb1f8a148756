"""Image completion: table 1 and figure 1 of "Kernelizing the output of tree-based methods".

P. Geurts, L. Wehenkel, F. d'Alché-Buc, ICML 2006, section 3.1.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from okforest import OKExtraTrees, OKNeighbors, OKRidge
from okforest._typing import Floats
from okforest.metrics import kernel_loss, output_loss, output_loss_scorer
from okforest.papers._digits import (
    FOLDS,
    HALF,
    KERNEL,
    SIGMA,
    halves,
    images,
    inner_folds,
    places,
    usps,
)
from okforest.papers._jobs import Job, Results
from okforest.papers._models import TREES, grown
from okforest.papers._report import (
    Block,
    Figure,
    Heading,
    Paragraph,
    Table,
    counted,
    new_drawing,
    published,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

# Table 1: means and standard deviations for 200 and 800 training images.
PAPER = {
    "baseline": ((1.0945, 0.0125), (1.0853, 0.0227)),
    "best achievable": ((0.4701, 0.0064), (0.3584, 0.0118)),
    "k-NN": ((0.8587, 0.0172), (0.7501, 0.0316)),
    "KDE, linear": ((0.8630, 0.0030), (0.7990, 0.0215)),
    "KDE, RBF": ((0.7892, 0.0066), (0.6778, 0.0264)),
    "single tree": ((1.0399, 0.0150), (0.9013, 0.0232)),
    "bagging": ((0.8643, 0.0096), (0.7337, 0.0263)),
    "extra-trees": ((0.8169, 0.0109), (0.6949, 0.0261)),
}
N_TRAIN = (200, 800)
BOUNDS = ("baseline", "best achievable")
OTHERS = ("k-NN", "KDE, linear", "KDE, RBF")

# Footnote 5: what inner cross-validation chooses from.
NEIGHBOURS = (1, 5, 10, 15, 20)
SIGMAS = (22.3607, 7.0711, 2.2361, 0.7071, 0.2236, 0.0707, 0.0224)
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)

# Fewest images of a node that is split, of single trees that stop earlier than the others.
SMALLEST = (5, 10, 20)


@dataclass(frozen=True)
class Size:
    """How large the experiment is: trees of a forest, seeds, folds, and values of each grid."""

    trees: int = 100
    seeds: int = 10
    folds: int = FOLDS
    grid: int = 1  # every so many values of the grids of KDE


FULL = Size()
QUICK = Size(trees=20, seeds=2, folds=2, grid=2)


def load() -> list[Path]:
    """Read the data, or say where to put it; return the files."""
    images()
    return list(usps().files)


def jobs(size: Size) -> list[Job]:
    """Return the pieces of the table and of the figures."""
    made = []
    for n in N_TRAIN:
        slow = n / 200
        for fold in range(FOLDS):  # without chance and soon done, in a quick run, too
            where = {"n_train": n, "fold": fold}
            made += [Job(row, bound, {"row": row} | where, 0.1) for row in BOUNDS]
            made.append(Job("k-NN", compete, {"row": "k-NN", "grid": 1} | where, 0.3))
        for fold in range(size.folds):
            where = {"n_train": n, "fold": fold}
            for row, cost in (("KDE, linear", 0.2), ("KDE, RBF", 1.5)):
                options = {"row": row, "grid": size.grid}
                made.append(Job(row, compete, options | where, cost * slow**1.6 / size.grid))
            for seed in range(size.seeds):
                made += [trees_job(row, n, fold, seed, size.trees) for row in TREES]
                made += [trees_job("single tree", n, fold, seed, 1, k) for k in SMALLEST]
    made.append(Job("examples", examples, {"grid": size.grid, "trees": size.trees}, 15 / size.grid))
    made.append(Job("pixels", pixels, {"trees": size.trees}, 2.0))
    return made


def trees_job(row: str, n_train: int, fold: int, seed: int, trees: int, smallest: int = 2) -> Job:
    """Return the job of trees on one fold, with one seed."""
    arguments = {"row": row, "n_train": n_train, "fold": fold, "seed": seed, "trees": trees}
    arguments["smallest"] = smallest
    cost = {"single tree": 0.02, "bagging": 0.4, "extra-trees": 0.1}[row]
    name = row if smallest == 2 else f"{row}, n_min = {smallest}"
    return Job(name, grow, arguments, cost * n_train / 200)


def bound(row: str, n_train: int, fold: int) -> dict[str, float]:
    """Return the loss of one output for all inputs, or of the best output for each of them."""
    data = halves(n_train, fold)
    if row == "baseline":  # nearest to the mean of the training outputs
        nearest = np.full(len(data.Y_test), KERNEL(data.Y).mean(axis=0).argmax())
    else:
        nearest = KERNEL(data.Y_test, data.Y).argmax(axis=1)
    return {"whole": output_loss(KERNEL, data.Y_test, data.Y[nearest])}


def compete(row: str, n_train: int, fold: int, grid: int) -> dict[str, Any]:
    """Return the losses of a method without trees, its parameters chosen by inner folds."""
    data = halves(n_train, fold)
    search = search_of(row, n_train, grid).fit(data.X, data.Y)
    losses = losses_of(search.best_estimator_, data.X_test, data.Y_test)
    return losses | {"chosen": search.best_params_}


def search_of(row: str, n_train: int, grid: int) -> GridSearchCV:
    """Return the search of a method's parameters by the loss of predicted outputs."""
    choices: dict[str, tuple[float, ...]]
    if row == "k-NN":
        model, choices = OKNeighbors(kernel=KERNEL), {"n_neighbors": NEIGHBOURS[::grid]}
    else:
        model = OKRidge(kernel=KERNEL, input_kernel=row.removeprefix("KDE, ").lower())
        choices = {"alpha": PENALTIES[::grid]}
        if row == "KDE, RBF":
            choices["gamma"] = tuple(0.5 / sigma**2 for sigma in SIGMAS[::grid])
    return GridSearchCV(model, choices, cv=inner_folds(n_train), scoring=output_loss_scorer)


def grow(
    row: str, n_train: int, fold: int, seed: int, trees: int, smallest: int
) -> dict[str, float]:
    """Return the losses of a tree or a forest."""
    data = halves(n_train, fold)
    model = grown(row, trees, kernel=KERNEL, random_state=1000 * seed + fold)
    model.set_params(min_samples_split=smallest).fit(data.X, data.Y)
    return losses_of(model, data.X_test, data.Y_test)


def losses_of(model: Any, X: Floats, Y: Floats) -> dict[str, float]:
    """Return losses in H, and of outputs found in the support and in the whole training set."""
    outputs = {
        name: model.set_params(decoder=decoder).predict(X)
        for name, decoder in (("support", "support"), ("whole", "training_set"))
    }
    return {"in_h": kernel_loss(model, X, Y)} | {
        name: output_loss(KERNEL, Y, predicted) for name, predicted in outputs.items()
    }


def examples(grid: int, trees: int) -> dict[str, Any]:
    """Return which training outputs are predicted for one test image of each digit; N = 800."""
    data = halves(800, 0)
    each = slice(0, None, len(data.X_test) // 10)
    kde = search_of("KDE, RBF", 800, grid).fit(data.X, data.Y)
    forest = OKExtraTrees(trees, kernel=KERNEL, random_state=0).fit(data.X, data.Y)
    found = {}
    for name, model in (("KDE, RBF", kde.best_estimator_), ("extra-trees", forest)):
        predicted = model.predict(data.X_test[each])
        found[name] = (predicted[:, None] == data.Y).all(axis=2).argmax(axis=1).tolist()
    return found


def pixels(trees: int) -> dict[str, Any]:
    """Return the importance of each input pixel, learnt from all 1,000 images."""
    every = images().reshape(-1, 2 * HALF)
    forest = OKExtraTrees(trees, kernel=KERNEL, random_state=0)
    return {
        "importances": forest.fit(every[:, :HALF], every[:, HALF:]).feature_importances_.tolist()
    }


def blocks(results: Results, size: Size) -> list[Block]:
    """Return the tables and figures."""
    made: list[Block] = [
        Heading("Image completion (ICML 2006)"),
        Paragraph(
            "Predict the lower half of a handwritten digit from the upper half. USPS: the first "
            "100 images of each digit in file order, raw values; fold f has images 20f to 20f + 19 "
            f"of each digit. Output kernel exp(−‖y − y'‖² / 2σ²), σ = {SIGMA}; the loss is 2(1 − "
            f"k(y, ŷ)), averaged over the test images. Forests have {size.trees} trees, "
            "full-grown (n_min, the fewest images of a node that is split, is 2, if nothing else "
            "is said); extra-trees try √128 ≈ 11 features at a node. Parameters of k-NN (k in 1, "
            f"5, 10, 15, 20) and KDE (penalties {_some(PENALTIES, size)}; σ of the RBF input "
            f"kernel {_some(SIGMAS, size)}) are chosen by the loss in five inner folds, in blocks. "
            f"{size.folds} folds of trees and KDE, 5 of the others; trees with "
            f"{counted(size.seeds, 'seed')} from 0 on (random_state = 1000 seed + fold)."
        ),
        Paragraph(
            "± is the standard deviation over folds (of means over seeds). The pre-image of a "
            "prediction is searched in its support, the training outputs of non-zero weight, as "
            "the paper has it for trees, and in the whole training set. The sd of "
            "seeds is the standard deviation, over seeds, of the mean over folds (support). In H: "
            "the loss in feature space, ‖φ(y) − F(x)‖², without pre-images."
        ),
    ]
    for n, column in zip(N_TRAIN, (0, 1), strict=True):
        made += [
            Heading(f"Table 1, {n} training images", 3),
            Table(
                [
                    "method",
                    "paper",
                    "ours, support",
                    "ours, whole set",
                    "sd of seeds",
                    "ours, in H",
                ],
                [_line(results, row, n, paper[column]) for row, paper in PAPER.items()]
                + [_line(results, f"single tree, n_min = {k}", n) for k in SMALLEST],
            ),
            Paragraph(_exactly(results, n), note=True),
        ]
    made += [
        Figure(
            "image_predictions",
            "Figure 1a. Lower halves predicted from upper halves, 800 training images, fold 0: the "
            "first test image of each digit.",
            lambda: _draw_examples(results.of("examples")[0]),
            wide=True,
        ),
        Figure(
            "image_importances",
            "Figure 1b. Importance of each input pixel (white: most) for extra-trees on all 1,000 "
            "images. What matters is near the half to be predicted.",
            lambda: _draw_pixels(results.of("pixels")[0]["importances"]),
        ),
    ]
    return made


def _exactly(results: Results, n: int) -> str:
    """Return what there is no chance in, to six decimals."""
    rows = (*BOUNDS, "k-NN")
    means = [f"{row} {results.values('whole', row, n_train=n).mean():.6f}" for row in rows]
    chosen = [str(found["chosen"]["n_neighbors"]) for found in results.of("k-NN", n_train=n)]
    return f"To six decimals: {', '.join(means)}. k chosen, fold by fold: {', '.join(chosen)}."


def _some(values: tuple[float, ...], size: Size) -> str:
    return ", ".join(f"{value:g}" for value in values[:: size.grid])


def _line(
    results: Results, row: str, n: int, paper: tuple[float, float] | None = None
) -> list[str]:
    if row in BOUNDS:
        return [row, published(paper), "", spread(results.values("whole", row, n_train=n)), "", ""]
    if row in OTHERS:
        columns = [results.values(name, row, n_train=n) for name in ("support", "whole", "in_h")]
        seeds = ""
    else:
        several = [results.by_seed(name, row, n_train=n) for name in ("support", "whole", "in_h")]
        columns = [values.mean(axis=0) for values in several]
        seeds = seed_spread(several[0])
    return [row, published(paper), *map(spread, columns[:2]), seeds, spread(columns[2])]


def seed_spread(values: Floats, digits: int = 4) -> str:
    """Return the standard deviation, over seeds (rows), of the mean over folds."""
    return f"{values.mean(axis=1).std(ddof=1):.{digits}f}" if len(values) > 1 else ""


def _draw_examples(found: dict[str, Any]) -> "Drawing":
    train, test = places(800, 0)
    inputs = images()[:, test[0]]
    lower = images()[:, train].reshape(-1, 2 * HALF)[:, HALF:]
    lines = {"input": None, "truth": inputs[:, HALF:]}
    lines |= {name: lower[rows] for name, rows in found.items()}
    drawing = new_drawing(8.0, 3.4)
    axes = drawing.subplots(len(lines), len(inputs))
    for line, (name, halves_below) in zip(axes, lines.items(), strict=True):
        for digit, ax in enumerate(line):
            below = np.full(HALF, -0.6) if halves_below is None else halves_below[digit]
            image = np.concatenate([inputs[digit, :HALF], below]).reshape(16, 16)
            ax.imshow(-image, cmap="gray", vmin=-1, vmax=1)
            ax.axhline(7.5, color="tab:orange", lw=0.8)
            ax.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return drawing


def _draw_pixels(importances: list[float]) -> "Drawing":
    drawing = new_drawing(4.6, 2.4)
    ax = drawing.subplots()
    ax.imshow(np.reshape(importances, (8, 16)), cmap="gray", vmin=0.0)
    ax.set(xticks=[], yticks=[], xlabel="(the half to be predicted is below)")
    return drawing
