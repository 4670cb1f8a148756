"""
Several outputs of different types at once
==========================================

``Tuples`` joins outputs of different types. Here a patient has a blood pressure (a number), a
diagnosis (a class), and symptoms (a set of labels). One forest predicts all three, and every part
is decoded in its own way. By default the parts count alike, by their variance in feature space.
"""

# %%
import numpy as np

rng = np.random.default_rng(0)
n = 600
age, weight = rng.uniform(20, 80, n), rng.uniform(50, 120, n)
risk = (age - 20) / 60 + (weight - 50) / 70
pressure = 105 + 30 * risk + rng.normal(0, 6, n)
diagnosis = np.where(pressure > 145, "high", np.where(pressure > 125, "raised", "normal"))
symptoms = [
    {name for name, p in (("headache", 0.3 * r), ("fatigue", 0.4 * r)) if rng.uniform() < p}
    for r in risk
]
X = np.column_stack([age, weight])
y = list(zip(pressure.tolist(), diagnosis.tolist(), symptoms, strict=True))
print(y[0])

# %%
from okforest import OKRandomForest
from okforest.kernels import Tuples

kernel = Tuples(["linear", "dirac", "hamming"])
forest = OKRandomForest(200, kernel=kernel, min_samples_leaf=5, random_state=0)
forest.fit(X[:400], y[:400])
predicted = forest.predict(X[400:])
print(predicted[0])

# %%
# One model, three answers for every pair of age and weight.
import matplotlib.pyplot as plt

grid = np.stack(np.meshgrid(np.linspace(20, 80, 50), np.linspace(50, 120, 50)), axis=-1)
parts = forest.predict(grid.reshape(-1, 2))
numbers = np.array([part[0] for part in parts]).reshape(50, 50)
classes = np.array([["normal", "raised", "high"].index(part[1]) for part in parts])
sizes = np.array([len(part[2]) for part in parts])

fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
extent = (20, 80, 50, 120)
pictures = [
    axes[0].imshow(numbers, extent=extent, origin="lower", aspect="auto", cmap="viridis"),
    axes[1].imshow(
        classes.reshape(50, 50),
        extent=extent,
        origin="lower",
        aspect="auto",
        cmap=plt.get_cmap("YlOrRd", 3),
        vmin=-0.5,
        vmax=2.5,
    ),
    axes[2].imshow(
        sizes.reshape(50, 50),
        extent=extent,
        origin="lower",
        aspect="auto",
        cmap=plt.get_cmap("PuBu", 3),
        vmin=-0.5,
        vmax=2.5,
    ),
]
fig.colorbar(pictures[0], ax=axes[0], label="mmHg")
fig.colorbar(pictures[1], ax=axes[1], ticks=[0, 1, 2]).ax.set_yticklabels(
    ["normal", "raised", "high"]
)
fig.colorbar(pictures[2], ax=axes[2], ticks=[0, 1, 2], label="predicted symptoms")
for ax, title in zip(axes, ["blood pressure", "diagnosis", "number of symptoms"], strict=True):
    ax.set(title=title, xlabel="age (years)")
axes[0].set_ylabel("weight (kg)")
plt.show()
