"""Structured outputs from images: the lower half of an image from the upper half.

Subwindows of the upper half, combined, beside a forest on all its pixels, both with the RBF kernel
on lower halves (median distance) and splits searched in 32 directions: 30 trees on subwindows, 100
on whole halves. As in the papers, the loss is ‖φ(y) − F‖² of the prediction and 2 (1 − k(y, ŷ)) of
the decoded output, on USPS digits (1,000 of the training images, tested on 1,000 others) and ORL
faces (one shot of each person left out). Means over seeds, with half of their range; times are CPU
times.
"""

import numpy as np
from benchmarks import machine
from benchmarks.segments.measure import SEEDS, report, spread, timed

from okforest import OKExtraTrees
from okforest.datasets import fetch_usps, load_orl_faces
from okforest.metrics import kernel_loss, output_loss
from okforest.segments import RandomSubwindows, SegmentModel

WHOLE, SEGMENTS = 100, 30  # numbers of trees


def digits(seed):
    """Return upper halves, lower halves and which are for training."""
    usps = fetch_usps()
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(usps.split == "train"))[:2000]
    images = np.round(127.5 * (usps.images[chosen] + 1)).astype(np.uint8)
    return images[:, :8], images[:, 8:].reshape(2000, -1) / 255.0, np.arange(2000) < 1000


def faces(seed):
    """Return the same for faces; lower halves have a quarter of the pixels in each direction."""
    orl = load_orl_faces()
    lower = orl.images[:, 56:].reshape(400, 14, 4, 23, 4).mean(axis=(2, 4)) / 255.0
    return orl.images[:, :56], lower.reshape(400, -1), orl.shot != seed + 1


def forest(n_trees):
    """Return the forest of both sides."""
    return OKExtraTrees(n_trees, kernel="rbf", search_rank=32)


def main() -> None:
    """Print the table."""
    machine.fix_threads()
    rows = []
    for name, load in {"USPS": digits, "ORL": faces}.items():
        methods = {
            "whole half": lambda: None,
            "100 subwindows, sides 0.5 to 1": lambda: RandomSubwindows(100, side_range=(0.5, 1.0)),
            "100 subwindows, sides 0.9 to 1": lambda: RandomSubwindows(100, side_range=(0.9, 1.0)),
        }
        for method, make in methods.items():
            inner, decoded, times = [], [], []
            for seed in SEEDS:
                X, Y, train = load(seed)
                segmenter = make()
                if segmenter is None:
                    X = X.reshape(len(X), -1)
                    model = forest(WHOLE).set_params(random_state=seed)
                else:
                    model = SegmentModel(segmenter, forest(SEGMENTS), random_state=seed)
                _, seconds = timed(
                    lambda model=model, X=X, Y=Y, train=train: model.fit(X[train], Y[train])
                )
                inner.append(kernel_loss(model, X[~train], Y[~train]))
                predicted = model.predict(X[~train])
                decoded.append(output_loss(model.kernel_, Y[~train], predicted))
                times.append(seconds)
            rows.append([f"{name}, {method}", spread(inner, 4), spread(decoded, 4),
                         f"{np.mean(times):.1f}"])  # fmt: skip
            print(rows[-1], flush=True)
    report("Completion of images", ["data and inputs", "loss in H", "decoded", "fit, s"], rows)


if __name__ == "__main__":
    main()
