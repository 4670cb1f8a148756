"""
Two moons: learn from inputs without labels
===========================================

Ten labelled points do not show the shape of two moons, but 290 unlabelled points do.
``SemiSupervisedForest`` grows trees on all inputs and refits their leaf values so that predictions
change little between neighbours.
"""

# %%
import numpy as np
from sklearn.datasets import make_moons

X, moon = make_moons(300, noise=0.08, random_state=0)
labelled = np.concatenate([np.flatnonzero(moon == k)[:5] for k in (0, 1)])
y = np.full(300, -1)  # -1 is unlabelled
y[labelled] = moon[labelled]

# %%
from okforest import OKExtraTrees, OKTotallyRandomTrees
from okforest.refit import SemiSupervisedForest

forest = OKExtraTrees(100, kernel="dirac", random_state=0).fit(X[labelled], y[labelled])
trees = OKTotallyRandomTrees(100, kernel="dirac", random_state=0)
refitted = SemiSupervisedForest(trees, laplacian_penalty=1.0).fit(X, y)

# %%
# The background shows the predicted class of every point of the plane; large circles are labelled.
# The titles give the accuracy on the 290 other points.
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap

across, down = np.meshgrid(np.linspace(-1.4, 2.4, 100), np.linspace(-0.9, 1.4, 80))
plane = np.column_stack([across.ravel(), down.ravel()])
colors = ListedColormap(["#4a7ba6", "#c8792f"])
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (name, model) in zip(
    axes, {"OKExtraTrees": forest, "SemiSupervisedForest": refitted}.items(), strict=True
):
    ax.pcolormesh(across, down, model.predict(plane).reshape(across.shape), cmap=colors, alpha=0.25)
    ax.scatter(*X.T, c=moon, cmap=colors, s=8)
    ax.scatter(*X[labelled].T, c=moon[labelled], cmap=colors, s=70, edgecolors="black")
    right = (model.predict(X) == moon)[y < 0].mean()
    ax.set(title=f"{name}: {right:.0%} correct", xticks=[], yticks=[])
plt.show()
