"""Figure 1 of the paper on boosting: losses and AUC against the number of rounds.

The text of the paper does not state the learning rates ν and numbers of splits J of the figure.
Those here are from slide 45 of the 2007 talk; a third panel shows the effect of more splits.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

from okforest import OKBoost
from okforest._utils.plotting import CURVES, new_figure
from okforest._utils.report import Block, Figure, Heading
from okforest.metrics import output_loss
from papers.boosting_network import N_VERTICES, make_kernel
from papers.data import KERNEL, are_linked, image_fold, most_connected
from papers.jobs import Job, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

IMAGE_PANELS = ((0.5, 10), (0.05, 10), (0.05, 40))
NETWORK_PANELS = ((0.25, 10), (0.05, 10), (0.05, 40))
STEP = 5  # curves have a point every 5 rounds; losses in feature space have all


def jobs(image_rounds: int, network_rounds: int) -> list[Job]:
    """Return one job for each panel."""
    made = []
    for row, work, panels, rounds, cost in (
        ("image curve", image_curves, IMAGE_PANELS, image_rounds, 0.02),
        ("network curve", network_curves, NETWORK_PANELS, network_rounds, 0.1),
    ):
        for rate, splits in panels:
            arguments = {"rate": rate, "splits": splits, "rounds": rounds}
            made.append(Job(row, work, arguments, cost * rounds))
    return made


def image_curves(rate: float, splits: int, rounds: int) -> dict[str, Any]:
    """Return the losses on training and test images in each round; 200 images for training."""
    data = image_fold(200, 0)
    model = OKBoost(rounds, kernel=KERNEL, learning_rate=rate, max_splits=splits, random_state=0)
    model.fit(data.X, data.Y)
    curves: dict[str, Any] = {}
    for name, X, Y in (("LS", data.X, data.Y), ("TS", data.X_test, data.Y_test)):
        curves[f"Errφ({name})"] = [float(losses.mean()) for losses in model.staged_losses(X, Y)]
        curves[f"ErrY({name})"] = [
            output_loss(KERNEL, Y, predicted)
            for m, predicted in enumerate(model.staged_predict(X), start=1)
            if m % STEP == 0
        ]
    return curves


def network_curves(rate: float, splits: int, rounds: int) -> dict[str, Any]:
    """Return the losses in feature space and AUC of training and test vertices in each round."""
    X, graph, _ = most_connected(2 * N_VERTICES)
    order = np.random.default_rng(0).permutation(len(X))
    known, new = (np.sort(part) for part in np.split(order, 2))
    model = OKBoost(rounds, learning_rate=rate, max_splits=splits, random_state=0)
    model.set_params(kernel=make_kernel(graph.adjacency)).fit(X[known], known)
    curves: dict[str, Any] = {
        f"Errφ({name})": [float(losses.mean()) for losses in model.staged_losses(X[rows], rows)]
        for name, rows in (("LS", known), ("TS", new))
    }
    # A model that predicts links must not know the links of new vertices.
    model.set_params(kernel=make_kernel(graph.part(known).adjacency))
    model.fit(X[known], np.arange(len(known)))
    span = model.span_
    pairs, new_pairs = (np.triu_indices(len(rows), k=1) for rows in (known, new))
    truth = are_linked(graph.adjacency, known, known)[pairs]
    across = are_linked(graph.adjacency, new, known).ravel()
    new_truth = np.r_[across, are_linked(graph.adjacency, new, new)[new_pairs]]
    curves["AUC(LS)"], curves["AUC(TS)"] = [], []
    staged = zip(model.staged_weights(X[known]), model.staged_weights(X[new]), strict=True)
    for m, (W, new_W) in enumerate(staged, start=1):
        if m % STEP == 0:
            new_scores = np.r_[span.gram(new_W, W).ravel(), span.gram(new_W)[new_pairs]]
            curves["AUC(LS)"].append(float(roc_auc_score(truth, span.gram(W)[pairs])))
            curves["AUC(TS)"].append(float(roc_auc_score(new_truth, new_scores)))
    return curves


def blocks(results: Results) -> list[Block]:
    """Return the report."""
    return [
        Heading("Figure 1", 3),
        Figure(
            "boosting_image_curves",
            "Figure 1, top. Losses of boosted trees on images against the number of rounds: in "
            "feature space (Errφ) and of pre-images (ErrY), on 200 training images (LS) and 800 "
            "test images (TS), fold 0. ν is the learning rate, J the number of splits.",
            lambda: _draw(results, "image curve", IMAGE_PANELS, "loss"),
            wide=True,
        ),
        Figure(
            "boosting_network_curves",
            "Figure 1, bottom. Losses in feature space and AUC of boosted trees on a network "
            "against the number of rounds: the 668 yeast proteins of highest degree, a random half "
            "for training (LS) and the other for testing (TS). The paper has 668 enzymes.",
            lambda: _draw(results, "network curve", NETWORK_PANELS, "loss or AUC"),
            wide=True,
        ),
    ]


def _draw(
    results: Results, row: str, panels: tuple[tuple[float, int], ...], label: str
) -> "Drawing":
    drawing = new_figure((10.0, 3.3))
    axes = drawing.subplots(1, len(panels), sharey=True)
    for ax, (rate, splits) in zip(axes, panels, strict=True):
        (curves,) = results.select(row, rate=rate, splits=splits)
        for name in sorted(curves, key=lambda name: (name.endswith("(TS)"), name[:4] != "Errφ")):
            in_feature_space = name.startswith("Errφ")
            rounds = (1 if in_feature_space else STEP) * np.arange(1, len(curves[name]) + 1)
            style = "-" if in_feature_space else "--"
            colour = CURVES[0] if name.endswith("(LS)") else CURVES[1]
            ax.plot(rounds, curves[name], style, color=colour, lw=1.5, label=name)
        ax.set(title=f"ν = {rate}, J = {splits}", xlabel="rounds")
        ax.set_xlim(left=0)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(label)
    axes[0].set_ylim(bottom=0.0)  # after plotting, so that the upper limit fits all panels
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return drawing
