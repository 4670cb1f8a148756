"""
Curves: spectra predicted from contents
=======================================

The output is a curve: here an absorbance spectrum, predicted from the contents of a sample. The
kernel ``Curves`` is the integral of the product of two curves, at points that need not be evenly
spaced; with ``slope`` it also compares derivatives. The spectra are generated in the manner of the
Tecator data: broad bands whose heights depend on water, fat and protein.
"""

# %%
import numpy as np

rng = np.random.default_rng(0)
wavelength = np.linspace(850, 1050, 100)
contents = rng.dirichlet([6, 3, 2], size=240)  # shares of water, fat and protein


def band(center, width):
    """Return an absorption band on the grid of wavelengths."""
    return np.exp(-0.5 * ((wavelength - center) / width) ** 2)


pure = np.stack([band(970, 25), band(930, 12) + 0.3 * band(1040, 20), band(910, 30)])
thickness = rng.lognormal(0, 0.05, size=(240, 1))
spectra = 2.5 + thickness * (contents**1.3 @ pure) + 0.004 * rng.normal(size=(240, 100))
train, test = slice(0, 180), slice(180, None)

# %%
# A forest and kernel ridge regression, with the same output kernel. The relation is smooth, which
# suits ridge regression.
from okforest import OKExtraTrees, OKRidge
from okforest.kernels import RBF, Curves

kernel = Curves(wavelength)
models = {
    "OKExtraTrees": OKExtraTrees(200, kernel=kernel, min_samples_leaf=3, random_state=0),
    "OKRidge": OKRidge("loo", kernel=kernel, input_kernel=RBF(0.32)),
}
for name, model in models.items():
    model.fit(contents[train], spectra[train])
    print(f"{name}: kernel R² {model.score(contents[test], spectra[test]):.2f}")

# %%
# The error band is the root mean squared error at each wavelength over all test samples.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    predicted = model.predict(contents[test])
    error = np.sqrt(((predicted - spectra[test]) ** 2).mean(axis=0))
    for i, color in zip((0, 1, 6), ("tab:blue", "tab:orange", "tab:green"), strict=True):
        ax.fill_between(
            wavelength, predicted[i] - error, predicted[i] + error, color=color, alpha=0.15
        )
        ax.plot(wavelength, predicted[i], color=color)
        ax.plot(wavelength, spectra[test][i], color=color, linestyle="--", linewidth=1)
    ax.plot([], [], color="gray", label="predicted, ± RMSE")
    ax.plot([], [], color="gray", linestyle="--", linewidth=1, label="true")
    ax.set(title=name, xlabel="wavelength (nm)")
axes[0].set_ylabel("absorbance")
axes[0].legend()
plt.show()
