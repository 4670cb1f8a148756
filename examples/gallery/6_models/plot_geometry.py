"""
What trees draw between the samples
===================================

A single tree is a staircase. Bagging smooths the stairs a little. Totally randomised trees, whose
splits ignore the outputs, approach a continuous function as their number grows: piecewise
linear between samples with one input, and piecewise multilinear with several.
"""

# %%
# Twelve samples of one input. All trees are fully grown.
import numpy as np

from okforest import OKBagging, OKTotallyRandomTrees, OKTree

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 1, 12))
y = 2 * np.sin(6 * x) + rng.normal(0, 0.6, 12)
grid = np.linspace(x[0], x[-1], 2001)
models = {
    "a single tree": OKTree(random_state=0),
    "bagging, 2,000 trees": OKBagging(2000, random_state=0),
    "totally randomised, 10 trees": OKTotallyRandomTrees(10, random_state=0),
    "totally randomised, 2,000 trees": OKTotallyRandomTrees(2000, random_state=0),
}
curves = {name: model.fit(x[:, None], y).predict(grid[:, None]) for name, model in models.items()}

# %%
# The largest distance from the interpolation falls with the square root of the number of trees.
# With 20,000 trees, which take longer, it is 0.013 for one input and 0.017 for two. The samples of
# two inputs are on a grid of 6 × 6 points, where the limit is known to be bilinear interpolation.
from scipy.interpolate import RegularGridInterpolator

sides = np.sort(rng.uniform(0, 1, (2, 6)))
X = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
heights = rng.normal(size=36)
inside = rng.uniform(sides[:, 0], sides[:, -1], (2000, 2))
bilinear = RegularGridInterpolator(sides, heights.reshape(6, 6))(inside)
linear = np.interp(grid, x, y)
numbers = [10, 100, 2000]
errors = {"one input": [], "two inputs": []}
for n in numbers:
    forest = OKTotallyRandomTrees(n, random_state=0)
    found = forest.fit(x[:, None], y).predict(grid[:, None])
    errors["one input"].append(np.abs(found - linear).max())
    found = forest.fit(X, heights).predict(inside)
    errors["two inputs"].append(np.abs(found - bilinear).max())
for name, values in errors.items():
    print(name, [f"{n:,} trees: {value:.3f}" for n, value in zip(numbers, values, strict=True)])

# %%
# The staircase of the single tree jumps half-way between samples. With bagging, a tree has some of
# the samples only: its stairs are elsewhere, but even 2,000 trees do not pass through the samples.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(2, 3, figsize=(11, 5.5), layout="constrained")
for ax, (name, values) in zip(axes[:, :2].flat, curves.items(), strict=True):
    ax.plot(grid, linear, color="tab:orange", linewidth=1, label="linear interpolation")
    ax.plot(grid, values, color="tab:blue", label=name)
    ax.plot(x, y, "o", color="black", markersize=4)
    ax.set(title=name, xlabel="x", ylabel="y")
axes[0, 0].legend(["linear interpolation", "prediction", "samples"], fontsize=8)
ax = axes[0, 2]
for name, values in errors.items():
    ax.loglog(numbers, values, "o-", label=name)
ax.loglog(numbers, 2 / np.sqrt(numbers), ":", color="gray", label="2 / √M")
ax.set(title="distance from the interpolation", xlabel="trees (M)", ylabel="largest distance")
ax.legend(fontsize=8)
axes[1, 2].axis("off")
plt.show()
