"""
Quantiles and calibrated intervals
==================================

A forest predicts a distribution: weights over the training outputs. Its quantiles are a first
estimate of an interval. ``ConformalIntervals`` calibrates intervals so that a chosen share of new
outputs lies inside.
"""

# %%
# Noise grows from left to right.
import numpy as np

rng = np.random.default_rng(0)
X = rng.uniform(size=(900, 1))
y = np.sin(6 * X[:, 0]) + rng.normal(scale=0.05 + 0.4 * X[:, 0])
train, test = slice(0, 450), slice(450, None)

# %%
# Plain quantiles of the forest, then three ways to calibrate. ``"absolute"`` has the same width
# everywhere; the others follow the noise.
from okforest import OKRandomForest
from okforest.uncertainty import ConformalIntervals, intervals

forest = OKRandomForest(100, min_samples_leaf=15, random_state=0).fit(X[train], y[train])
grid = np.linspace(0, 1, 200)[:, None]
found = {
    "quantiles of the forest": [intervals(forest, rows, coverage=0.9) for rows in (X[test], grid)]
}
for score in ("absolute", "normalized", "quantiles"):
    model = ConformalIntervals(forest, method="oob", conformity_score=score).fit(X[train], y[train])
    found[f"conformal, {score}"] = [
        model.predict_interval(rows, coverage=0.9) for rows in (X[test], grid)
    ]

# %%
import matplotlib.pyplot as plt

fig, axes = plt.subplots(2, 2, figsize=(9, 5.4), sharex=True, sharey=True, layout="constrained")
for ax, (name, (at_test, on_grid)) in zip(axes.flat, found.items(), strict=True):
    inside = (at_test[:, 0] <= y[test]) & (y[test] <= at_test[:, 1])
    width = (at_test[:, 1] - at_test[:, 0]).mean()
    ax.fill_between(grid[:, 0], *on_grid.T, color="tab:blue", alpha=0.3, lw=0)
    ax.plot(X[test][inside], y[test][inside], ".", color="gray", markersize=3)
    ax.plot(X[test][~inside], y[test][~inside], ".", color="tab:red", markersize=4)
    ax.set_title(f"{name}: {inside.mean():.1%} inside, mean width {width:.2f}", fontsize=10)
for ax in axes[1]:
    ax.set_xlabel("x")
for ax in axes[:, 0]:
    ax.set_ylabel("y")
fig.suptitle("Intervals for 90 % of new outputs; red points are outside")
plt.show()
