"""
Sets that contain the true output with a chosen probability
===========================================================

A prediction set is small where the model is certain and large where it is not. ``ConformalSets``
calibrates the sets so that they contain the true output with the probability that you ask for,
whatever the model and the kernel.
"""

# %%
# The right half of every digit is hidden: some cannot be told apart. The guarantee holds if new
# rows and calibration rows are drawn alike. The digits are sorted by writer, so we shuffle them.
import numpy as np
from sklearn.datasets import load_digits

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
images, labels = digits.images[order], digits.target[order]
half = images[:, :, :4].reshape(len(images), -1)
train, test = slice(0, 900), slice(900, None)

# %%
# ``method="oob"`` calibrates with out-of-bag predictions, so that no row is set aside.
from okforest import OKRandomForest
from okforest.uncertainty import ConformalSets

forest = OKRandomForest(100, kernel="dirac", random_state=0)
model = ConformalSets(forest, method="oob").fit(half[train], labels[train])
asked = [0.8, 0.9, 0.95, 0.98, 0.99]
found = [model.predict_sets(half[test], coverage=coverage) for coverage in asked]
for coverage, sets in zip(asked, found, strict=True):
    reached = sets.contain(labels[test]).mean()
    print(f"asked {coverage:.2f}  reached {reached:.3f}  mean size {sets.sizes.mean():.2f}")

# %%
# Above, sets with coverage 98 %, from the smallest to the largest.
from textwrap import fill

import matplotlib.pyplot as plt

sets = found[3]
by_size = np.argsort(sets.sizes, kind="stable")
shown = by_size[(np.linspace(0, 1, 9) ** 0.4 * (len(by_size) - 1)).astype(int)]
fig = plt.figure(figsize=(10, 4.4), layout="constrained")
above, below = fig.subfigures(2, 1, height_ratios=[1, 1.5])
for ax, i in zip(above.subplots(1, len(shown)), shown, strict=True):
    ax.imshow(np.hstack([images[test][i, :, :4], np.full((8, 4), 8)]), cmap="gray_r")
    contents = ", ".join(str(digit) for digit in sorted(sets[i]))
    ax.set(xticks=[], yticks=[], xlabel=f"true {labels[test][i]}")
    title = "all ten" if sets.sizes[i] == 10 else "{" + fill(contents, 9) + "}"
    ax.set_title(title, fontsize=9)
left, right = below.subplots(1, 2)
reached = [sets.contain(labels[test]).mean() for sets in found]
left.plot([0.78, 1], [0.78, 1], color="gray", linewidth=1)
left.plot(asked, reached, "o-")
left.set(xlabel="coverage asked for", ylabel="coverage reached")
right.plot(asked, [sets.sizes.mean() for sets in found], "o-")
right.set(xlabel="coverage asked for", ylabel="mean set size")
plt.show()
