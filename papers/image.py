"""Image completion: table 1 and figure 1 of "Kernelizing the output of tree-based methods".

P. Geurts, L. Wehenkel, F. d'Alché-Buc, ICML 2006, section 3.1.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from okforest import OKExtraTrees, OKNeighbors, OKRidge
from okforest._utils.arrays import Floats
from okforest._utils.plotting import new_figure
from okforest._utils.report import Block, Figure, Heading, Paragraph, Table
from okforest.metrics import kernel_loss, output_loss, output_loss_scorer
from papers.data import (
    FOLDS,
    HALF,
    KERNEL,
    SIGMA,
    fold_positions,
    image_fold,
    inner_folds,
    load_images,
    load_usps,
)
from papers.jobs import Job, Results
from papers.rows import TREES, count, make_trees, mean_and_std, published

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

VERSION = "2"

# Table 1: means and standard deviations with 200 and with 800 training images.
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
KERNEL_METHODS = ("KDE, linear", "KDE, RBF")
LOSSES = ("support", "training_set", "feature_space")

GREY = -0.6  # the missing half of an input in figure 1a

# The grids of footnote 5, searched by inner cross-validation.
NEIGHBOURS = (1, 5, 10, 15, 20)
SIGMAS = (22.3607, 7.0711, 2.2361, 0.7071, 0.2236, 0.0707, 0.0224)
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)

# Values of min_samples_split for additional single trees, which stop growing earlier.
MIN_SAMPLES_SPLIT = (5, 10, 20)


@dataclass(frozen=True)
class Size:
    """Numbers of trees, seeds and folds, and the step through the parameter grids of KDE."""

    trees: int = 100
    seeds: int = 10
    folds: int = FOLDS
    grid_step: int = 1


FULL = Size()
QUICK = Size(trees=20, seeds=2, folds=2, grid_step=2)


def load() -> list[Path]:
    """Read the data and return the files, or raise an error that names the missing file."""
    load_images()
    return list(load_usps().files)


def jobs(size: Size) -> list[Job]:
    """Return the jobs of the table and of the figures."""
    made = []
    for n in N_TRAIN:
        for fold in range(FOLDS):  # deterministic and fast: all folds, in a quick run too
            where = {"n_train": n, "fold": fold}
            made += [Job(row, evaluate_bound, {"row": row} | where, 0.1) for row in BOUNDS]
            made.append(Job("k-NN", evaluate_search, {"row": "k-NN", "grid_step": 1} | where, 0.3))
        for fold in range(size.folds):
            where = {"n_train": n, "fold": fold}
            for row, cost in zip(KERNEL_METHODS, (0.2, 1.5), strict=True):
                options = {"row": row, "grid_step": size.grid_step}
                cost *= (n / 200) ** 1.6 / size.grid_step
                made.append(Job(row, evaluate_search, options | where, cost))
            for seed in range(size.seeds):
                made += [trees_job(row, n, fold, seed, size.trees) for row in TREES]
                made += [trees_job("single tree", n, fold, seed, 1, m) for m in MIN_SAMPLES_SPLIT]
    options = {"grid_step": size.grid_step, "trees": size.trees}
    made.append(Job("examples", predict_examples, options, 15 / size.grid_step))
    made.append(Job("importances", pixel_importances, {"trees": size.trees}, 2.0))
    return made


def trees_job(
    row: str, n_train: int, fold: int, seed: int, trees: int, min_samples_split: int = 2
) -> Job:
    """Return the job of a tree or forest on one fold, with one seed."""
    arguments = {
        "row": row,
        "n_train": n_train,
        "fold": fold,
        "seed": seed,
        "trees": trees,
        "min_samples_split": min_samples_split,
    }
    cost = {"single tree": 0.02, "bagging": 0.4, "extra-trees": 0.1}[row] * n_train / 200
    name = row if min_samples_split == 2 else f"{row}, n_min = {min_samples_split}"
    return Job(name, evaluate_trees, arguments, cost)


def evaluate_bound(row: str, n_train: int, fold: int) -> dict[str, float]:
    """Return the loss of the best constant output, or of the best output for each test image."""
    data = image_fold(n_train, fold)
    if row == "baseline":  # the output nearest to the mean of the training outputs
        nearest = np.full(len(data.Y_test), KERNEL(data.Y).mean(axis=0).argmax())
    else:
        nearest = KERNEL(data.Y_test, data.Y).argmax(axis=1)
    return {"training_set": output_loss(KERNEL, data.Y_test, data.Y[nearest])}


def evaluate_search(row: str, n_train: int, fold: int, grid_step: int) -> dict[str, Any]:
    """Return the losses of k-NN or KDE, with parameters chosen by inner folds."""
    data = image_fold(n_train, fold)
    search = make_search(row, n_train, grid_step).fit(data.X, data.Y)
    losses = compute_losses(search.best_estimator_, data.X_test, data.Y_test)
    return losses | {"chosen": search.best_params_}


def make_search(row: str, n_train: int, grid_step: int) -> GridSearchCV:
    """Return a grid search by the loss of the predicted outputs."""
    grid: dict[str, tuple[float, ...]]
    if row == "k-NN":
        model, grid = OKNeighbors(kernel=KERNEL), {"n_neighbors": NEIGHBOURS[::grid_step]}
    else:
        # The published figures are without an intercept.
        input_kernel = row.removeprefix("KDE, ").lower()
        model = OKRidge(fit_intercept=False, kernel=KERNEL, input_kernel=input_kernel)
        grid = {"alpha": PENALTIES[::grid_step]}
        if row == "KDE, RBF":
            grid["gamma"] = tuple(0.5 / sigma**2 for sigma in SIGMAS[::grid_step])
    return GridSearchCV(model, grid, cv=inner_folds(n_train), scoring=output_loss_scorer)


def evaluate_trees(
    row: str, n_train: int, fold: int, seed: int, trees: int, min_samples_split: int
) -> dict[str, float]:
    """Return the losses of a tree or a forest."""
    data = image_fold(n_train, fold)
    model = make_trees(row, trees, kernel=KERNEL, random_state=1000 * seed + fold)
    model.set_params(min_samples_split=min_samples_split, ignore_constant=row == "extra-trees")
    model.fit(data.X, data.Y)
    return compute_losses(model, data.X_test, data.Y_test)


def compute_losses(model: Any, X: Floats, Y: Floats) -> dict[str, float]:
    """Return the loss in feature space, and of pre-images in the support and training set."""
    losses = {"feature_space": kernel_loss(model, X, Y)}
    for decoder in ("support", "training_set"):
        predicted = model.set_params(decoder=decoder).predict(X)
        losses[decoder] = output_loss(KERNEL, Y, predicted)
    return losses


def predict_examples(grid_step: int, trees: int) -> dict[str, Any]:
    """Return the training positions of the outputs predicted for one test image per digit."""
    data = image_fold(800, 0)
    first_of_each = slice(0, None, len(data.X_test) // 10)
    kde = make_search("KDE, RBF", 800, grid_step).fit(data.X, data.Y)
    forest = OKExtraTrees(trees, kernel=KERNEL, random_state=0).fit(data.X, data.Y)
    found = {}
    for name, model in (("KDE, RBF", kde.best_estimator_), ("extra-trees", forest)):
        predicted = model.predict(data.X_test[first_of_each])
        found[name] = (predicted[:, None] == data.Y).all(axis=2).argmax(axis=1).tolist()
    return found


def pixel_importances(trees: int) -> dict[str, Any]:
    """Return the importance of each input pixel for a forest trained on all 1,000 images."""
    images = load_images().reshape(-1, 2 * HALF)
    forest = OKExtraTrees(trees, kernel=KERNEL, random_state=0)
    forest.fit(images[:, :HALF], images[:, HALF:])
    return {"importances": forest.feature_importances_.tolist()}


def blocks(results: Results, size: Size) -> list[Block]:
    """Return the report."""
    made: list[Block] = [
        Heading("Image completion (ICML 2006)"),
        Paragraph(
            "Predict the lower half of a handwritten digit from the upper half. The data are the "
            "first 100 USPS images of each digit in file order, with raw values; fold f holds "
            "images 20f to 20f + 19 of each digit. The output kernel is exp(−‖y − y'‖² / 2σ²) with "
            f"σ = {SIGMA}, and the loss is 2(1 − k(y, ŷ)), averaged over the test images. Forests "
            f"have {size.trees} fully grown trees (n_min, the smallest node that is split, has 2 "
            "images unless stated otherwise); extra-trees try √128 ≈ 11 features at a node that "
            "are not constant there (ignore_constant=True). The "
            "parameters of k-NN (k from 1, 5, 10, 15, 20) and KDE (penalties from "
            f"{_grid(PENALTIES, size)}; σ of the RBF input kernel from {_grid(SIGMAS, size)}) are "
            "chosen by the loss in five inner folds, in blocks. Trees and KDE use "
            f"{count(size.folds, 'fold')}, the other methods 5; trees use "
            f"{count(size.seeds, 'seed')} starting from 0 (random_state = 1000 seed + fold)."
        ),
        Paragraph(
            "± is the standard deviation over folds (of means over seeds). Pre-images are searched "
            "in the support of the prediction (the training outputs of non-zero weight), as the "
            "paper does for trees, and in the whole training set. The column of seeds has the "
            "standard deviation, over seeds, of the mean over folds (support). The last column has "
            "the loss in feature space, ‖φ(y) − F(x)‖², without pre-images."
        ),
    ]
    header = ["method", "paper", "ours, support", "ours, training set", "sd over seeds"]
    header.append("ours, feature space")
    for n, column in zip(N_TRAIN, (0, 1), strict=True):
        rows = [_row(results, row, n, paper[column]) for row, paper in PAPER.items()]
        rows += [_row(results, f"single tree, n_min = {m}", n) for m in MIN_SAMPLES_SPLIT]
        made += [
            Heading(f"Table 1, {n} training images", 3),
            Table(header, rows),
            Paragraph(_deterministic_losses(results, n), note=True),
        ]
    made += [
        Figure(
            "image_predictions",
            "Figure 1a. Lower halves predicted from upper halves with 800 training images, fold 0: "
            "the first test image of each digit.",
            lambda: _draw_predictions(results.select("examples")[0]),
            wide=True,
        ),
        Figure(
            "image_importances",
            "Figure 1b. Importance of each input pixel for extra-trees on all 1,000 images; "
            "brighter pixels are more important. The most important pixels are next to the "
            "predicted half.",
            lambda: _draw_importances(results.select("importances")[0]["importances"]),
        ),
    ]
    return made


def seed_std(values: Floats, digits: int = 4) -> str:
    """Return the standard deviation, over seeds (rows), of the mean over folds."""
    return f"{values.mean(axis=1).std(ddof=1):.{digits}f}" if len(values) > 1 else ""


def _grid(values: tuple[float, ...], size: Size) -> str:
    return ", ".join(f"{value:g}" for value in values[:: size.grid_step])


def _row(results: Results, row: str, n: int, paper: tuple[float, float] | None = None) -> list[str]:
    if row in BOUNDS:
        loss = mean_and_std(results.values("training_set", row, n_train=n))
        return [row, published(paper), "", loss, "", ""]
    if row == "k-NN" or row in KERNEL_METHODS:
        columns, seeds = [results.values(name, row, n_train=n) for name in LOSSES], ""
    else:
        by_seed = [results.by_seed(name, row, n_train=n) for name in LOSSES]
        columns, seeds = [values.mean(axis=0) for values in by_seed], seed_std(by_seed[0])
    support, training_set, feature_space = map(mean_and_std, columns)
    return [row, published(paper), support, training_set, seeds, feature_space]


def _deterministic_losses(results: Results, n: int) -> str:
    rows = (*BOUNDS, "k-NN")
    means = [f"{row} {results.values('training_set', row, n_train=n).mean():.6f}" for row in rows]
    chosen = [str(found["chosen"]["n_neighbors"]) for found in results.select("k-NN", n_train=n)]
    return (
        f"Deterministic rows to six decimals: {', '.join(means)}. k chosen in each fold: "
        f"{', '.join(chosen)}."
    )


def _draw_predictions(predicted: dict[str, Any]) -> "Drawing":
    """Draw inputs, true images and predictions; ``predicted`` holds training positions."""
    train, test = fold_positions(800, 0)
    inputs = load_images()[:, test[0]]
    train_lower = load_images()[:, train].reshape(-1, 2 * HALF)[:, HALF:]
    lines = {"input": np.full((len(inputs), HALF), GREY), "truth": inputs[:, HALF:]}
    lines |= {name: train_lower[rows] for name, rows in predicted.items()}
    drawing = new_figure((8.0, 3.4))
    axes = drawing.subplots(len(lines), len(inputs))
    for line, (name, lower) in zip(axes, lines.items(), strict=True):
        for digit, ax in enumerate(line):
            image = np.concatenate([inputs[digit, :HALF], lower[digit]]).reshape(16, 16)
            ax.imshow(-image, cmap="gray", vmin=-1, vmax=1)
            ax.axhline(7.5, color="tab:orange", lw=0.8)
            ax.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return drawing


def _draw_importances(importances: list[float]) -> "Drawing":
    """Draw the importance of each input pixel."""
    drawing = new_figure((4.6, 2.4))
    ax = drawing.subplots()
    ax.imshow(np.reshape(importances, (8, 16)), cmap="gray", vmin=0.0)
    ax.set(xticks=[], yticks=[], xlabel="(the predicted half is below)")
    return drawing
