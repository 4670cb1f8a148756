"""
Tell a forest what you know: monotone and bounded predictions
=============================================================

A dose–response curve rises, and a probability lies between 0 and 1. A forest does not know either.
``SemiSupervisedForest`` refits the leaf values of a forest under such priors. The trees stay as
they are.
"""

# %%
import numpy as np

rng = np.random.default_rng(0)
X = rng.uniform(size=(120, 1))


def truth(x):
    """Return the response to a dose."""
    return 1 / (1 + np.exp(-10 * (x - 0.5)))


y = truth(X[:, 0]) + rng.normal(0, 0.25, size=120)

# %%
# ``Monotone`` holds on a grid of values of feature 0. The refit is a convex programme, solved by
# Clarabel (in a clone, ``pip install '.[convex]'``).
from okforest import OKExtraTrees
from okforest.refit import Bounds, Monotone, SemiSupervisedForest

forest = OKExtraTrees(100, min_samples_leaf=2, random_state=0)
priors = [Monotone(0, n_values=200, points=X[:1]), Bounds(0.0, 1.0)]
model = SemiSupervisedForest(forest, laplacian=None, priors=priors).fit(X, y)

# %%
import matplotlib.pyplot as plt

grid = np.linspace(0, 1, 300)[:, None]
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.plot(X, y, ".", color="lightgray", label="training rows")
ax.plot(grid, truth(grid), color="black", linestyle="--", linewidth=1, label="truth")
for name, predictor, color in (
    ("forest", model.estimator_, "tab:blue"),
    ("monotone, between 0 and 1", model, "tab:orange"),
):
    predicted = predictor.predict(grid)
    error = np.sqrt(np.mean((predicted - truth(grid[:, 0])) ** 2))
    ax.plot(grid, predicted, color=color, label=f"{name}: RMSE {error:.3f}")
ax.set(xlabel="dose", ylabel="response")
ax.legend(loc="upper left", fontsize=9)
plt.show()
