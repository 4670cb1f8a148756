"""Figure 1 of the paper on boosting: losses and AUC against rounds.

The text of the paper does not say which learning rates ν and numbers of splits J the figure has;
here they are those of slide 45 of the 2007 talk, and a third panel shows what more splits do.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

from okforest import OKBoost
from okforest.inspection._colours import CURVES
from okforest.metrics import output_loss
from okforest.papers._boosting_network import N_VERTICES, diffusion
from okforest.papers._digits import KERNEL, halves
from okforest.papers._jobs import Job, Results
from okforest.papers._proteins import best_linked, linked
from okforest.papers._report import Block, Figure, Heading, new_drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

IMAGE_PANELS = ((0.5, 10), (0.05, 10), (0.05, 40))
NETWORK_PANELS = ((0.25, 10), (0.05, 10), (0.05, 40))
STEP = 5  # rounds between two points of curves that are not losses in H


def jobs(image_rounds: int, network_rounds: int) -> list[Job]:
    """Return a job for each panel."""
    made = []
    for row, work, panels, rounds, cost in (
        ("image curve", follow_image, IMAGE_PANELS, image_rounds, 0.02),
        ("network curve", follow_network, NETWORK_PANELS, network_rounds, 0.1),
    ):
        for rate, splits in panels:
            arguments = {"rate": rate, "splits": splits, "rounds": rounds}
            made.append(Job(row, work, arguments, cost * rounds))
    return made


def follow_image(rate: float, splits: int, rounds: int) -> dict[str, Any]:
    """Return losses of training and test images, round by round; 200 images are learnt from."""
    data = halves(200, 0)
    model = OKBoost(rounds, kernel=KERNEL, learning_rate=rate, max_splits=splits, random_state=0)
    model.fit(data.X, data.Y)
    found: dict[str, Any] = {}
    for name, X, Y in (("LS", data.X, data.Y), ("TS", data.X_test, data.Y_test)):
        found[f"Errφ({name})"] = [float(losses.mean()) for losses in model.staged_losses(X, Y)]
        found[f"ErrY({name})"] = [
            output_loss(KERNEL, Y, predicted)
            for m, predicted in enumerate(model.staged_predict(X), start=1)
            if m % STEP == 0
        ]
    return found


def follow_network(rate: float, splits: int, rounds: int) -> dict[str, Any]:
    """Return losses in H and AUC of training and test vertices, round by round."""
    X, graph, _ = best_linked(2 * N_VERTICES)
    order = np.random.default_rng(0).permutation(len(X))
    seen, unseen = (np.sort(part) for part in np.split(order, 2))
    model = OKBoost(rounds, learning_rate=rate, max_splits=splits, random_state=0)
    model.set_params(kernel=diffusion(graph.adjacency)).fit(X[seen], seen)
    found: dict[str, Any] = {
        f"Errφ({name})": [float(losses.mean()) for losses in model.staged_losses(X[rows], rows)]
        for name, rows in (("LS", seen), ("TS", unseen))
    }
    # Where links are predicted, those of unseen vertices must not be known.
    model.set_params(kernel=diffusion(graph.part(seen).adjacency))
    model.fit(X[seen], np.arange(len(seen)))
    span = model.span_
    known, new = (np.triu_indices(len(rows), k=1) for rows in (seen, unseen))
    truth = linked(graph.adjacency, seen, seen)[known]
    across = linked(graph.adjacency, unseen, seen).ravel()
    truth_new = np.r_[across, linked(graph.adjacency, unseen, unseen)[new]]
    found["AUC(LS)"], found["AUC(TS)"] = [], []
    staged = zip(model.staged_weights(X[seen]), model.staged_weights(X[unseen]), strict=True)
    for m, (W, W_new) in enumerate(staged, start=1):
        if m % STEP == 0:
            scores_new = np.r_[span.gram(W_new, W).ravel(), span.gram(W_new)[new]]
            found["AUC(LS)"].append(float(roc_auc_score(truth, span.gram(W)[known])))
            found["AUC(TS)"].append(float(roc_auc_score(truth_new, scores_new)))
    return found


def blocks(results: Results) -> list[Block]:
    """Return the figure, in two parts."""
    return [
        Heading("Figure 1", 3),
        Figure(
            "boosting_image_curves",
            "Figure 1, top. Losses of boosted trees on images, against rounds: in feature space "
            "(Errφ) and of pre-images (ErrY), of 200 training images (LS) and 800 test images "
            "(TS), fold 0; ν is the learning rate, J the number of splits.",
            lambda: _draw(results, "image curve", IMAGE_PANELS, "loss"),
            wide=True,
        ),
        Figure(
            "boosting_network_curves",
            "Figure 1, bottom. Losses in feature space and AUC of boosted trees on a network, "
            "against rounds: of the 668 yeast proteins with most links, a random half is learnt "
            "from (LS), the other is for the test (TS). The paper has 668 enzymes.",
            lambda: _draw(results, "network curve", NETWORK_PANELS, "loss, or AUC"),
            wide=True,
        ),
    ]


def _draw(
    results: Results, row: str, panels: tuple[tuple[float, int], ...], label: str
) -> "Drawing":
    drawing = new_drawing(10.0, 3.3)
    axes = drawing.subplots(1, len(panels), sharey=True)
    for ax, (rate, splits) in zip(axes, panels, strict=True):
        (found,) = results.of(row, rate=rate, splits=splits)
        for name in sorted(found, key=lambda name: (name.endswith("(TS)"), name[:4] != "Errφ")):
            in_h = name.startswith("Errφ")
            rounds = (1 if in_h else STEP) * np.arange(1, len(found[name]) + 1)
            colour = CURVES[0] if name.endswith("(LS)") else CURVES[1]
            ax.plot(rounds, found[name], "-" if in_h else "--", color=colour, lw=1.5, label=name)
        ax.set(title=f"ν = {rate}, J = {splits}", xlabel="rounds")
        ax.set_xlim(left=0)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(label)
    axes[0].set_ylim(bottom=0.0)  # of all, and not before all is drawn
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return drawing
