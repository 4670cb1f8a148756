"""
Kernel alignment: compare output kernels before any fit
=======================================================

``kernel_alignment`` is the cosine between two centred Gram matrices. An output kernel that is
aligned with a kernel of the inputs calls two outputs similar where the inputs are similar. It takes
a moment to compute, and can rule out most of a long list of kernels. The final choice should be
made by a loss: alignment does not see the model or the decoder.
"""

# %%
# Complete digits: the lower half from the upper half. We compare RBF and Laplacian kernels of many
# widths.
import numpy as np
from sklearn.datasets import load_digits

from okforest.kernels import RBF, Laplacian

images = load_digits().data[:600] / 16
upper, lower = images[:, :32], images[:, 32:]
sigmas = np.array([0.125, 0.25, 0.5, 1, 2, 4, 8])
kernels = {
    "RBF": [RBF(sigma) for sigma in sigmas],
    "Laplacian": [Laplacian(sigma) for sigma in 4 * sigmas],
}

# %%
# The alignments take a fraction of a second. For comparison, cross-validate a forest with every
# kernel, and measure its weights in the space of the linear kernel.
from sklearn.model_selection import cross_val_score

from okforest import OKExtraTrees
from okforest.metrics import kernel_alignment, make_kernel_scorer

inputs = RBF().resolve(upper)(upper)  # a kernel of the inputs, with the median width
scoring = make_kernel_scorer("linear")
alignment, r2 = {}, {}
for name, family in kernels.items():
    alignment[name] = [kernel_alignment(kernel(lower), inputs) for kernel in family]
    r2[name] = []
    for kernel in family:
        forest = OKExtraTrees(30, kernel=kernel, min_samples_leaf=5, random_state=0)
        r2[name].append(cross_val_score(forest, upper, lower, scoring=scoring, cv=5).mean())

# %%
# Both reject narrow kernels. Alignment prefers a certain width; for the score, any wider kernel is
# about as good.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, marker in zip(kernels, "os", strict=True):
    widths = sigmas * (4 if name == "Laplacian" else 1)
    axes[0].plot(widths, alignment[name], marker + "-", label=name)
    axes[1].plot(widths, r2[name], marker + "-", label=name)
axes[0].set(title="before any fit", ylabel="alignment with the inputs")
axes[1].set(title="after 70 fits", ylabel="kernel R², linear kernel")
for ax in axes:
    ax.set(xscale="log", xlabel="sigma")
    ax.legend(loc="lower right")
plt.show()
