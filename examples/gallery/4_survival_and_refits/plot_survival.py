"""
Survival curves of censored cases
=================================

How long until an event? Some cases leave the study before it happens; their times are *censored*.
With ``kernel="survival"`` every model of okforest learns from such times and predicts survival
functions: the probability that the event has not happened yet.
"""

# %%
# 800 cases with four features, two of which matter. About a third is censored.
import numpy as np

rng = np.random.default_rng(0)
X = rng.uniform(size=(800, 4))
time = 12 * np.exp(1.5 * X[:, 0] - X[:, 1]) * rng.weibull(2.5, size=800)
limit = rng.exponential(40, size=800)
y = np.rec.fromarrays([time <= limit, np.minimum(time, limit)], names="event,time")
train, test = slice(0, 500), slice(500, None)
print(f"{1 - y.event.mean():.0%} censored")

# %%
from okforest import OKRandomForest
from okforest.survival import concordance_index, integrated_brier_score

forest = OKRandomForest(200, kernel="survival", min_samples_leaf=10, random_state=0)
forest.fit(X[train], y[train])
functions = forest.predict_survival_function(X[test])
print(f"concordance index {concordance_index(y[test], forest.predict_risk(X[test])):.3f}")
print(f"integrated Brier score {integrated_brier_score(y[train], y[test], functions):.3f}")

# %%
# Left: three cases; a filled dot is an event, an open one a censored time. Right: groups of cases
# by predicted probability, against what was observed in each group.
import matplotlib.pyplot as plt

from okforest.survival import plot_calibration, plot_survival

risk = forest.predict_risk(X[test])
shown = 500 + np.argsort(risk)[[15, 150, 285]]
fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
plot_survival(forest, X[shown], y[shown], ax=axes[0])
plot_calibration(forest, X[test], y[test], time=15, ax=axes[1])
axes[0].set_title("predicted survival functions")
axes[1].set_title("calibration at time 15")
plt.show()
