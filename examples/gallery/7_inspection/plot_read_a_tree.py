"""
Read a tree whose outputs are images
====================================

A single tree can be read. ``plot_tree`` draws it with the output of every leaf, ``leaf_rules``
writes the way to a leaf as a rule, and ``leaf_clusters`` lists the training rows that share a leaf.
"""

# %%
# Predict the lower half of a digit from its upper half.
from sklearn.datasets import load_digits

from okforest import OKTree
from okforest.kernels import RBF

images = load_digits().data / 16
upper, lower = images[:, :32], images[:, 32:]
tree = OKTree(kernel=RBF(), max_leaf_nodes=6, random_state=0).fit(upper[:1000], lower[:1000])

# %%
# The rules of the first two leaves.
from okforest.inspection import leaf_rules

names = [f"pixel {row},{column}" for row in range(4) for column in range(8)]
for rule in leaf_rules(tree, feature_names=names, decimals=2)[:2]:
    print(f"leaf {rule.leaf}, {rule.n_samples} rows: {rule}")

# %%
# Leaves show their prototype: the training output that is nearest to the mean of the leaf. Darker
# blue means lower variance.
import matplotlib.pyplot as plt

from okforest.inspection import plot_tree


def draw(ax, half):
    """Draw the lower half of a digit."""
    ax.imshow(half.reshape(4, 8), cmap="gray_r")


fig, ax = plt.subplots(figsize=(9, 5.4), layout="constrained")
plot_tree(tree, feature_names=names, decimals=2, draw_output=draw, ax=ax)

# %%
# Each row is a leaf: its prototype, in blue, and ten of the training digits that share it.
from okforest.inspection import leaf_clusters

clusters = leaf_clusters(tree)
fig, axes = plt.subplots(len(clusters), 11, figsize=(8.5, 4.8), layout="constrained")
for cluster, row_of_axes in zip(clusters, axes, strict=True):
    label = f"leaf {cluster.leaf}\nn = {len(cluster.members)}"
    row_of_axes[0].set_ylabel(label, rotation=0, ha="right", va="center")
    rows = [cluster.prototype, *cluster.members[:10]]
    for ax, row, color in zip(row_of_axes, rows, ["Blues"] + ["gray_r"] * 10, strict=True):
        ax.imshow(images[row].reshape(8, 8), cmap=color)
        ax.set(xticks=[], yticks=[])
plt.show()
