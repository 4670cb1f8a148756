"""
Distributions: predict a whole sample
=====================================

The output is a sample of numbers of any size, such as the waiting times of one day. With the
kernel ``Wasserstein``, the distance between two samples is the 2-Wasserstein distance, and a
prediction is a quantile function: the distribution in the middle of the training samples that a
forest finds similar.
"""

# %%
# Waiting times in a surgery: longer and more spread towards noon, with two peaks on busy days.
# Every day has another number of patients.
import numpy as np

rng = np.random.default_rng(0)


def waiting_times(hour, busy, n):
    """Draw n waiting times, in minutes."""
    usual = rng.gamma(3 + 3 * np.sin(np.pi * (hour - 8) / 10), 3.0, size=n)
    return np.where(rng.uniform(size=n) < 0.4 * busy, usual + 30, usual)


X = np.column_stack([rng.uniform(8, 18, size=400), rng.uniform(size=400)])  # hour, how busy
samples = [waiting_times(hour, busy, rng.integers(15, 60)) for hour, busy in X]

# %%
from okforest import OKRandomForest
from okforest.kernels import Wasserstein

kernel = Wasserstein(n_levels=50)
forest = OKRandomForest(200, kernel=kernel, min_samples_leaf=5, random_state=0).fit(X, samples)

# %%
# A prediction holds the quantiles at the levels 1%, 3%, …, 99%. The dashed lines are the quantiles
# of 20,000 draws from the true distribution.
import matplotlib.pyplot as plt

levels = (np.arange(50) + 0.5) / 50
cases = {"9:00, quiet": (9, 0.1), "13:00, quiet": (13, 0.1), "13:00, busy": (13, 0.9)}
predicted = forest.predict(list(cases.values()))
fig, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for (name, case), quantiles, color in zip(
    cases.items(), predicted, ("tab:blue", "tab:green", "tab:red"), strict=True
):
    ax.plot(quantiles, levels, color=color, label=name)
    truth = np.quantile(waiting_times(*case, 20_000), levels)
    ax.plot(truth, levels, color=color, linestyle="--", linewidth=1)
ax.plot([], [], color="gray", linestyle="--", linewidth=1, label="true distribution")
ax.set(
    xlabel="waiting time (minutes)",
    ylabel="share of patients that wait no longer",
    title="Predicted distributions of waiting times",
)
ax.legend(loc="lower right")
plt.show()
