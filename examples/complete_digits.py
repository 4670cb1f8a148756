"""Complete handwritten digits: predict the lower half of an image from its upper half.

The output is an image, compared with others by an RBF kernel on its pixels. A model predicts a
point in the kernel's feature space H, and the lower half in the training set that is nearest to it
is shown. Run with ``make demo``; the figure is written to ``build/demo/digits.png``.
"""

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from okforest import OKBagging, OKExtraTrees, OKTree
from okforest.kernels import RBF
from okforest.metrics import kernel_loss, output_loss

SHOWN = 10  # digits in the figure


def main() -> None:
    """Fit the models, print a table and save a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=100, help="number of trees in a forest")
    parser.add_argument("--figure", type=Path, default=Path("build/demo/digits.png"))
    options = parser.parse_args()

    digits = load_digits()
    images = digits.data / 16.0
    train, test, _, labels = train_test_split(
        images, digits.target, test_size=0.4, stratify=digits.target, random_state=0
    )
    upper, lower = train[:, :32], train[:, 32:]
    upper_test, lower_test = test[:, :32], test[:, 32:]
    kernel = RBF(sigma="median").resolve(lower)
    print(
        f"{len(upper)} training and {len(upper_test)} test digits, 8×8 pixels; "
        f"RBF kernel with σ = {kernel.sigma:.2f} on lower halves\n"
    )

    common = {"kernel": kernel, "random_state": 0}
    forest = {"n_estimators": options.trees, "n_jobs": -1, "verbose": 1}
    models = {
        "single tree": OKTree(**common),
        "bagging": OKBagging(**common, **forest),
        "extra-trees": OKExtraTrees(**common, **forest),
    }
    rows, predictions = [], {}
    for name, model in models.items():
        print(name, flush=True)
        start = time.perf_counter()
        model.fit(upper, lower)
        seconds = time.perf_counter() - start
        predictions[name] = model.predict(upper_test)
        in_h = kernel_loss(model, upper_test, lower_test)
        rows.append((name, in_h, output_loss(kernel, lower_test, predictions[name]), seconds))

    print_table(baselines(kernel, lower, lower_test), rows)
    draw(
        options.figure,
        upper_test,
        lower_test,
        labels,
        predictions["extra-trees"],
        models["extra-trees"].feature_importances_,
    )
    print(f"\nFigure: {options.figure.resolve()}")


def baselines(kernel: RBF, lower: np.ndarray, lower_test: np.ndarray) -> list[tuple]:
    """Return the losses of a constant prediction, and of the best possible training output."""
    K, cross = kernel(lower), kernel(lower_test, lower)
    centre = lower[K.mean(axis=0).argmax()]
    mean_loss = 1.0 - 2.0 * cross.mean() + K.mean()
    nearest = lower[cross.argmax(axis=1)]
    return [
        (
            "baseline (mean output)",
            mean_loss,
            output_loss(kernel, lower_test, np.tile(centre, (len(lower_test), 1))),
            None,
        ),
        ("best possible", None, output_loss(kernel, lower_test, nearest), None),
    ]


def print_table(bounds: list[tuple], rows: list[tuple]) -> None:
    """Print the loss in H, the loss of the predicted images, and the time of the fit."""
    print(f"\n{'':24}{'loss in H':>10}{'of images':>11}{'fit time':>10}")
    for name, in_h, of_images, seconds in [bounds[0], *rows, bounds[1]]:
        print(
            f"{name:24}{'' if in_h is None else f'{in_h:.4f}':>10}{of_images:>11.4f}"
            f"{'' if seconds is None else f'{seconds:.2f} s':>10}"
        )


def draw(path: Path, upper, lower, labels, predicted, importances) -> None:
    """Plot true digits above predicted ones, and the importance of each input pixel."""
    picks = [np.flatnonzero(labels == digit)[1] for digit in range(SHOWN)]
    figure = plt.figure(figsize=(10, 2.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[SHOWN, 2.9])
    axes = left.subplots(2, SHOWN)
    for column, i in enumerate(picks):
        for row, half in enumerate((lower[i], predicted[i])):
            axis = axes[row, column]
            axis.imshow(np.r_[upper[i], half].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            axis.axhline(3.5, color="tab:red", linewidth=1.2)
            axis.set_xticks([])
            axis.set_yticks([])
    for row, title in enumerate(("true", "predicted")):
        axes[row, 0].set_ylabel(title)
    left.suptitle("Lower halves of digits, predicted from the upper halves by extra-trees")
    axis = right.subplots()
    shown = axis.imshow(100 * importances.reshape(4, 8), cmap="viridis")
    axis.set_xticks([])
    axis.set_yticks([])
    right.colorbar(shown, orientation="horizontal", label="% of variance reduction")
    right.suptitle("Importance of input pixels")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
