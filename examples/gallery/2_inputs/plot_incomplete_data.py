"""
Missing values and categories
=============================

Trees of okforest split on columns with missing values and on categories as they are. Every split
learns on which side missing values go, so that "missing" can carry information. No imputation or
one-hot encoding is needed.
"""

# %%
# A table whose output depends on a category and a number. The number is missing more often where
# the output is large, as happens when a sensor fails under stress.
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 1500
effect = pd.Series({"coast": 0.0, "hills": 2.0, "plain": -1.0, "valley": -2.5})
place = rng.choice(effect.index.to_numpy(), n)
height = rng.uniform(-2, 2, size=n)
y = effect[place].to_numpy() + 2 * np.tanh(2 * height) + rng.normal(0, 0.3, n)
missing = rng.uniform(size=n) < np.where(y > effect[place].to_numpy(), 0.35, 0.05)
X = pd.DataFrame({"place": pd.Categorical(place), "height": np.where(missing, np.nan, height)})
print(X.head())

# %%
# The forest takes the table as it is. For comparison: imputation and one-hot encoding, then the
# same forest. The scores are about equal here, because trees can find an imputed value; what is
# saved is the preparation.
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from okforest import OKRandomForest

forest = OKRandomForest(100, min_samples_leaf=5, max_features=None, random_state=0)
prepared = make_pipeline(
    make_column_transformer((SimpleImputer(), ["height"]), (OneHotEncoder(), ["place"])), forest
)
for name, model in (("prepared", prepared), ("as it is", forest)):
    print(f"{name}: R² {model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]):.3f}")

# %%
# Left: predictions by height. Right: predictions for a missing height. They are high, because the
# forest has learnt that large outputs lose their heights.
import matplotlib.pyplot as plt

grid = np.linspace(-2, 2, 200)
fig, (ax, right) = plt.subplots(
    1, 2, figsize=(8, 3.6), sharey=True, width_ratios=[4, 1], layout="constrained"
)
for name, color in zip(
    effect.index, ("tab:blue", "tab:green", "tab:orange", "tab:red"), strict=True
):
    repeated = pd.Categorical([name] * len(grid), categories=X["place"].cat.categories)
    known = pd.DataFrame({"place": repeated, "height": grid})
    ax.plot(grid, forest.predict(known), color=color, label=name)
    unknown = known[:1].assign(height=np.nan)
    right.plot(0, forest.predict(unknown)[0], "o", color=color)
    right.plot(0, y[missing & (place == name)].mean(), "_", color=color, markersize=22)
right.plot([], [], "o", color="gray", label="predicted")
right.plot([], [], "_", color="gray", markersize=12, label="mean of rows")
right.set(xticks=[0], xlim=(-1, 1))
right.set_xticklabels(["missing"])
right.legend(loc="lower center", fontsize=8)
ax.set(xlabel="height", ylabel="predicted output")
ax.legend(title="place", ncols=2)
plt.show()
