"""
Your own kernel, decoder and loss
=================================

Outputs of your own type need a kernel: how similar are two outputs? A decoder and a loss are
optional. All work everywhere without registration: in forests, searches, conformal sets and saved
files. Here the output is a time of day, so that 23:30 and 0:30 are close.
"""

# %%
# The kernel. ``check`` validates outputs, ``__call__`` returns the Gram matrix. Arguments of
# ``__init__`` are parameters that can be searched, as ``kernel__width``.
import numpy as np

from okforest.kernels import OutputKernel


class Clock(OutputKernel):
    """A Gaussian of the chord between two times on a clock of 24 hours."""

    known_psd = True

    def __init__(self, width=2.0):
        self.width = width

    def check(self, y):
        """Return hours as an array between 0 and 24."""
        hours = np.asarray(y, dtype=float)
        if hours.ndim != 1 or ((hours < 0) | (hours >= 24)).any():
            raise ValueError("y must hold hours from 0 to 24; take them modulo 24.")
        return hours

    def __call__(self, y, z=None):
        """Return the kernel of every time in a with every time in b."""
        z = y if z is None else z
        half_angle = np.pi * (y[:, None] - z[None, :]) / 24
        chord = 24 / np.pi * np.sin(half_angle)
        return np.exp(-(chord**2) / (2 * self.width**2))


# %%
# The decoder: the mean direction of the weighted training outputs.
from okforest.decode import Decoder


class MeanTime(Decoder):
    """The circular mean of the training times."""

    def decode(self, W, span):
        """Return a time for each row of weights."""
        angles = 2 * np.pi * span.outputs / 24
        mean = W @ np.column_stack([np.cos(angles), np.sin(angles)])
        return np.arctan2(mean[:, 1], mean[:, 0]) * 24 / (2 * np.pi) % 24


# %%
# The loss of two times, in hours, and a scorer for searches.
from okforest.metrics import make_output_scorer


def hours_apart(true, predicted):
    """Return the difference of two times on the clock."""
    difference = abs(true - predicted) % 24
    return min(difference, 24 - difference)


scorer = make_output_scorer(hours_apart)

# %%
# When does somebody go to bed? Between 21:00 and 4:00, later on some days than on others. The
# linear kernel takes 23 and 1 for distant numbers.
from sklearn.model_selection import GridSearchCV

from okforest import OKRandomForest

rng = np.random.default_rng(0)
X = rng.uniform(size=(500, 3))
bedtime = (21 + 7 * X[:, 0] + 0.7 * rng.normal(size=500)) % 24
train, test = slice(0, 300), slice(300, None)
forest = OKRandomForest(100, kernel=Clock(), decoder=MeanTime(), min_samples_leaf=5, random_state=0)
search = GridSearchCV(forest, {"kernel__width": [1, 2, 4, 8]}, scoring=scorer, cv=3)
search.fit(X[train], bedtime[train])
linear = OKRandomForest(100, min_samples_leaf=5, random_state=0).fit(X[train], bedtime[train])
print("best width:", search.best_params_["kernel__width"])

# %%
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(
    axes, {"linear kernel, mean": linear, "Clock kernel, MeanTime": search}.items(), strict=True
):
    error = -scorer(model, X[test], bedtime[test])
    ax.plot(X[test, 0], bedtime[test], ".", color="lightgray", label="true times")
    predicted = model.predict(X[test])
    ax.plot(X[test, 0], predicted, ".", color="tab:blue", markersize=5, label="predicted")
    ax.set(title=f"{name}: {error:.1f} hours apart", xlabel="first feature", yticks=range(0, 25, 4))
axes[0].set_ylabel("hour of the day")
axes[1].legend(loc="center left")
plt.show()
