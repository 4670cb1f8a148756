"""
Classes of a hierarchy: stop where the evidence ends
====================================================

Classes are often arranged in a hierarchy: every herb is a plant. With the kernel ``Hierarchy``,
outputs are paths such as ``"plant/herb"``, and a mistake among the children of a class costs less
than a mistake higher up. Where the inputs do not tell which child is right, the prediction is the
parent.
"""

# %%
# Two features. Animals and plants are well separated; trees and herbs are not. A third of the
# training rows are labelled at the upper level only.
import numpy as np

rng = np.random.default_rng(0)
X = rng.uniform(size=(600, 2))
animal = X[:, 0] > 0.5
herb = X[:, 1] + rng.normal(0, 0.12, 600) > 0.5
bird = X[:, 1] > 0.7
y = np.where(
    animal,
    np.where(bird, "animal/bird", "animal/mammal"),
    np.where(herb, "plant/herb", "plant/tree"),
)
y[::3] = [path.split("/")[0] for path in y[::3]]

# %%
from okforest import OKExtraTrees
from okforest.kernels import Hierarchy

model = OKExtraTrees(200, kernel=Hierarchy(), max_features=None, min_samples_leaf=8, random_state=0)
model.fit(X, y.tolist())
print(model.predict([[0.2, 0.1], [0.2, 0.5], [0.9, 0.9]]))

# %%
# The map shows the prediction at every point. In the grey-green strip it is ``plant``: the forest
# is sure of the kingdom, and not sure of the rest.
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

names = ["plant/tree", "plant", "plant/herb", "animal/mammal", "animal", "animal/bird"]
colors = ["#1b7837", "#b8c4b0", "#7fbf5b", "#8c510a", "#d9ccb4", "#dfa03a"]
grid = np.linspace(0, 1, 120)
points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
predicted = np.array([names.index(path) for path in model.predict(points)])

fig, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
ax.pcolormesh(grid, grid, predicted.reshape(120, 120), cmap=ListedColormap(colors), vmax=5, vmin=0)
level = np.array([path.count("/") for path in y])
for depth, marker, label in ((1, "o", "known in detail"), (0, "x", "known at the upper level")):
    rows = level == depth
    ax.scatter(*X[rows].T, marker=marker, s=9, c="black", linewidths=0.6, alpha=0.6, label=label)
fig.legend(
    handles=[Patch(color=c, label=n) for c, n in zip(colors, names, strict=True)],
    loc="outside right upper",
    title="predicted class",
)
ax.legend(
    loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, title="training rows"
)
ax.set(xlabel="first feature", ylabel="second feature", xlim=(0, 1), ylim=(0, 1))
plt.show()
