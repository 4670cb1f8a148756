"""
Bands that contain whole curves
===============================

For a curve, intervals at each place are not enough: if each contains 90 % of the values, far fewer
curves lie inside everywhere. A simultaneous band contains whole curves.
"""

# %%
# Curves with correlated noise, larger for some inputs than for others.
import numpy as np

rng = np.random.default_rng(0)
places = np.linspace(0, 1, 50)
X = rng.uniform(size=(700, 2))
noise = rng.normal(size=(700, 50)).cumsum(axis=1) / 7
curves = np.sin(6 * (places + X[:, :1])) + (0.2 + X[:, 1:]) * noise
train, test = slice(0, 400), slice(400, None)

# %%
from okforest import OKRandomForest
from okforest.uncertainty import ConformalIntervals, bands, intervals

forest = OKRandomForest(100, min_samples_leaf=10, random_state=0).fit(X[train], curves[train])
conformal = ConformalIntervals(forest, method="oob").fit(X[train], curves[train])
found = {
    "intervals at each place": intervals(forest, X[test], coverage=0.9),
    "bands of the forest": bands(forest, X[test], coverage=0.9),
    "conformal bands": conformal.predict_interval(X[test], coverage=0.9),
}

# %%
# One curve with little noise (above) and one with much noise (below).
import matplotlib.pyplot as plt

shown = [np.argmin(X[test][:, 1]), np.argmax(X[test][:, 1])]
fig, axes = plt.subplots(2, 3, figsize=(10, 4.6), sharex=True, sharey=True, layout="constrained")
for column, (name, limits) in zip(axes.T, found.items(), strict=True):
    inside = (limits[..., 0] <= curves[test]) & (curves[test] <= limits[..., 1])
    column[0].set_title(f"{name}:\n{inside.all(axis=1).mean():.0%} of curves inside", fontsize=10)
    for ax, i in zip(column, shown, strict=True):
        ax.fill_between(places, *limits[i].T, color="tab:blue", alpha=0.3, lw=0)
        ax.plot(places, curves[test][i], color="black", linewidth=1)
    column[1].set_xlabel("place")
axes[0, 0].set_ylabel("little noise")
axes[1, 0].set_ylabel("much noise")
plt.show()
