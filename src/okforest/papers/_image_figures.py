"""Figure 1 of the ICML 2006 paper: predicted halves of digits and the importance of pixels."""

from typing import TYPE_CHECKING, Any

import numpy as np

from okforest._utils.plotting import new_figure
from okforest.papers._image_data import HALF, fold_positions, load_images

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

GREY = -0.6  # the missing half of the input


def draw_predictions(predicted: dict[str, Any]) -> "Drawing":
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


def draw_importances(importances: list[float]) -> "Drawing":
    """Draw the importance of each input pixel."""
    drawing = new_figure((4.6, 2.4))
    ax = drawing.subplots()
    ax.imshow(np.reshape(importances, (8, 16)), cmap="gray", vmin=0.0)
    ax.set(xticks=[], yticks=[], xlabel="(the predicted half is below)")
    return drawing
