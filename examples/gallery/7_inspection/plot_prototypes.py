"""
The training examples behind a prediction
=========================================

A prediction is a set of weights over the training outputs. ``prototypes`` returns the rows with
the largest weights, so that every prediction can be explained by examples.
"""

# %%
from sklearn.datasets import load_digits

from okforest import OKExtraTrees
from okforest.inspection import prototypes
from okforest.kernels import RBF

images = load_digits().data / 16
upper, lower = images[:, :32], images[:, 32:]
forest = OKExtraTrees(100, kernel=RBF(), min_samples_leaf=3, random_state=0)
forest.fit(upper[:1000], lower[:1000])
rows, weights = prototypes(forest, upper[1000:1005], k=8)

# %%
# The forest saw the upper halves of the new digits (blue). Beside each are the training digits
# whose lower halves have the largest weights in the prediction.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(5, 9, figsize=(8, 5.4), layout="constrained")
for i, (first, *others) in enumerate(axes):
    first.imshow(images[1000 + i].reshape(8, 8), cmap="Blues")
    for ax, row, weight in zip(others, rows[i], weights[i], strict=True):
        ax.imshow(images[row].reshape(8, 8), cmap="gray_r")
        ax.set_xlabel(f"{weight:.1%}", fontsize=8, labelpad=2)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
axes[0, 0].set_title("new digit")
axes[0, 4].set_title("training digits of largest weight")
plt.show()
