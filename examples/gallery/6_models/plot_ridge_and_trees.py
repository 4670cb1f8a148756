"""
Ridge regression or trees?
==========================

Every model of okforest takes every output kernel. ``OKRidge`` suits smooth relations and few
features; trees suit jumps, irrelevant features, missing values and categories. Here the output is a
pair of numbers on a circle, so that the mean of two outputs need not be a sensible output.
"""

# %%
# In the first problem the angle depends smoothly on all features. In the second it depends on the
# first feature only, and jumps.
import numpy as np

rng = np.random.default_rng(0)


def problem(smooth, n_features):
    """Return inputs and points on a circle."""
    X = rng.uniform(size=(600, n_features))
    if smooth:
        angle = 4 * np.sqrt(n_features) * (X.mean(axis=1) - 0.5)
    else:
        angle = 2 * np.pi * np.floor(5 * X[:, 0]) / 5
    angle = angle + rng.normal(0, 0.15, size=600)
    return X, np.column_stack([np.cos(angle), np.sin(angle)])


# %%
# ``"loo"`` chooses the penalty of ridge regression by leave-one-out, in closed form.
from okforest import OKExtraTrees, OKNeighbors, OKRidge
from okforest.kernels import RBF

models = {
    "OKRidge": OKRidge("loo", kernel="rbf", input_kernel=RBF(0.71)),
    "OKExtraTrees": OKExtraTrees(
        100, kernel="rbf", max_features=None, min_samples_leaf=3, random_state=0
    ),
    "OKNeighbors": OKNeighbors(10, kernel="rbf"),
}
numbers = [1, 2, 4, 8, 16]
scores = {(smooth, name): [] for smooth in (True, False) for name in models}
for smooth in (True, False):
    for n_features in numbers:
        X, y = problem(smooth, n_features)
        for name, model in models.items():
            scores[smooth, name].append(model.fit(X[:300], y[:300]).score(X[300:], y[300:]))

# %%
# Ridge regression leads where all features act together; trees where few of them matter.
import matplotlib.pyplot as plt

titles = {True: "smooth, all features matter", False: "jumps, one feature matters"}
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (smooth, title) in zip(axes, titles.items(), strict=True):
    for name, marker in zip(models, "osd", strict=True):
        ax.plot(numbers, scores[smooth, name], marker + "-", label=name)
    ax.set(title=title, xlabel="number of features", xscale="log")
    ax.set_xticks(numbers, [str(number) for number in numbers])
    ax.minorticks_off()
axes[0].set_ylabel("kernel R² on new rows")
axes[0].legend()
plt.show()
