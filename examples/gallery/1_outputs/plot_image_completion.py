"""
Complete images of digits
=========================

The input is the upper half of a handwritten digit, the output its lower half: an image. A forest
with the RBF kernel predicts weights over the training images. Decoding turns the weights into an
image, in one of two ways: the nearest training image, which is always sharp, or the weighted mean,
which shows where the forest hesitates.
"""

# %%
# Load the digits that come with scikit-learn, and cut them in two.
from sklearn.datasets import load_digits

images = load_digits().data / 16
upper, lower = images[:, :32], images[:, 32:]
train, test = slice(0, 1200), slice(1200, None)

# %%
# ``sigma="median"`` sets the width of the kernel to the median distance between training images.
# The score is the kernel R²: 1 for perfect predictions, 0 for the mean output.
from okforest import OKExtraTrees
from okforest.kernels import RBF

forest = OKExtraTrees(100, kernel=RBF(sigma="median"), random_state=0)
forest.fit(upper[train], lower[train])
print(f"kernel R² of new digits: {forest.score(upper[test], lower[test]):.3f}")

# %%
# The same weights are decoded twice; this needs no second fit.
nearest = forest.predict(upper[test])
mean = forest.set_params(decoder="mean").predict(upper[test])

# %%
# Each column is a digit that the forest has not seen. Everything below the blue line is predicted.
import matplotlib.pyplot as plt
import numpy as np

rows = {"true": lower[test], "nearest\nimage": nearest, "mean\nimage": mean}
shown = range(0, 96, 8)
fig, axes = plt.subplots(3, len(shown), figsize=(9, 2.7), layout="constrained")
for row_of_axes, (name, halves) in zip(axes, rows.items(), strict=True):
    for ax, i in zip(row_of_axes, shown, strict=True):
        digit = np.concatenate([upper[test][i], halves[i]]).reshape(8, 8)
        ax.imshow(digit, cmap="gray_r", vmin=0, vmax=1)
        ax.axhline(3.5, color="tab:blue", linewidth=1.5)
        ax.set(xticks=[], yticks=[])
    row_of_axes[0].set_ylabel(name, rotation=0, ha="right", va="center")
fig.suptitle("Lower halves of digits, predicted from the upper halves")
plt.show()
