"""
Refit a forest to censored numbers
==================================

A forest that is grown on the exact cases alone predicts times that are too short, because long
times are censored more often. ``CensoredForest`` keeps the trees and moves the values of their
leaves so that predictions for censored cases lie beyond their censoring times.
"""

# %%
# The logarithm of a time is the Friedman function of ten features; half of the cases are censored.
import numpy as np
from sklearn.datasets import make_friedman1

X, target = make_friedman1(700, random_state=0)
rng = np.random.default_rng(0)
log_time = target / 5 + rng.normal(0, 0.2, size=700)
limit = rng.normal(target.mean() / 5, 1, size=700)
y = np.rec.fromarrays([log_time <= limit, np.exp(np.minimum(log_time, limit))], names="event,time")
train, test = slice(0, 400), slice(400, None)
print(f"{1 - y.event.mean():.0%} censored")

# %%
from okforest.refit import CensoredForest

model = CensoredForest(scale="log").fit(X[train], y[train])
predicted = {
    "forest of the exact cases": model.estimator_.predict(X[test]),
    "refitted to all cases": np.log(model.predict(X[test])),
}

# %%
# The true logarithms are known here, because the data are generated.
import matplotlib.pyplot as plt

truth = target[test] / 5
fig, axes = plt.subplots(1, 2, figsize=(8.5, 4), sharex=True, sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, predicted.items(), strict=True):
    error = np.sqrt(np.mean((values - truth) ** 2))
    ax.plot([0, 5.5], [0, 5.5], color="gray", linewidth=1)
    ax.scatter(truth, values, s=9, color="tab:blue", alpha=0.7)
    ax.set(title=f"{name}: RMSE {error:.2f}", xlabel="true logarithm of the time", aspect="equal")
axes[0].set_ylabel("predicted")
plt.show()
