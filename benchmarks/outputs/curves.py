"""Absorbance curves of meat predicted from its contents (tecator), 10 × 10-fold cross-validation.

The loss is the root of the mean integrated squared difference of curves, in per cent of the loss of
the mean training curve. Beside: a random forest of scikit-learn on all wavelengths. No setting was
tuned; the penalty of ridge regression is chosen by leave-one-out within the training rows.
"""

import numpy as np
from benchmarks.outputs.measure import arguments, folds, report
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKExtraTrees, OKRidge
from okforest.datasets import load_tecator
from okforest.kernels import Curves

POINTS = np.linspace(850, 1050, 100)


def methods(n_trees):
    """Return models by name."""
    kernel = Curves(POINTS)
    forest = {"kernel": kernel, "max_features": None, "min_samples_leaf": 5, "random_state": 0}
    ridge = OKRidge("loo", kernel=kernel, input_kernel="rbf")
    return {
        "scikit-learn forest": RandomForestRegressor(n_trees, min_samples_leaf=5, random_state=0),
        "OKExtraTrees, mean curve": OKExtraTrees(n_trees, **forest),
        "OKExtraTrees, medoid": OKExtraTrees(n_trees, decoder="medoid", **forest),
        "OKExtraTrees, nearest known": OKExtraTrees(n_trees, decoder="training_set", **forest),
        "OKRidge, mean curve": make_pipeline(StandardScaler(), ridge),
    }


def main():
    """Print a table."""
    options = arguments("tecator", repeats=10)
    data = load_tecator()
    X, curves = data.target, data.data
    kernel = Curves(POINTS)
    losses = {}
    for train, test in folds(len(X), 10, options.repeats):
        mean = np.tile(curves[train].mean(axis=0), (len(test), 1))
        losses.setdefault("mean", []).append(kernel.diag(curves[test] - mean).mean())
        for name, model in methods(max(3, int(50 * options.scale))).items():
            found = model.fit(X[train], curves[train]).predict(X[test])
            losses.setdefault(name, []).append(kernel.diag(curves[test] - found).mean())
    base = np.sqrt(np.mean(losses.pop("mean")))
    rows = [[name, f"{100 * np.sqrt(np.mean(loss)) / base:.1f}"] for name, loss in losses.items()]
    report("Integrated error of curves, per cent of the mean curve", ["method", "error"], rows)


if __name__ == "__main__":
    main()
