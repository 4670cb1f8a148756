"""
Predict links of a network from features
========================================

Some links of a network are known, and so are features of its vertices. ``NetworkCompletion`` learns
to map features to positions in the feature space of a kernel on the known network. Two vertices
whose predicted positions are close are likely to be linked, even if neither was in the network.
"""

# %%
# A generated network: vertices have a hidden place in the plane, and close ones are linked. The
# features are eight noisy functions of the place, and four columns of noise.
import numpy as np

rng = np.random.default_rng(0)
n = 240
place = rng.uniform(size=(n, 2))
distance = np.linalg.norm(place[:, None] - place, axis=2)
links = ((distance < 0.12) & (distance > 0)).astype(float)
measured = np.sin(4 * place @ rng.normal(size=(2, 8)) + rng.uniform(0, 6, size=8))
X = np.hstack([measured + rng.normal(0, 0.15, (n, 8)), rng.normal(size=(n, 4))])

# %%
# Cross-validation over vertices: the model knows no link of the vertices that are held out. The
# cosine of the features, which learns nothing from links, is the baseline.
from okforest.network import InputSimilarity, NetworkCompletion, cross_validate_links, format_table

compared = {
    "extra-trees": cross_validate_links(NetworkCompletion(), X, links, cv=5),
    "cosine of features": cross_validate_links(InputSimilarity(), X, links, cv=5),
}
print(format_table(compared, "known-new"))

# %%
# Fit to 180 vertices, and predict the two best links of each of the other 60. (Without
# ``per_vertex=True``, most of the best links belong to a few well-connected vertices.)
known, new = slice(0, 180), slice(180, None)
model = NetworkCompletion().fit(X[known], links[known, known], names=np.arange(180))
best = model.rank_links(X[new], names=np.arange(180, n), k=2, per_vertex=True)
right = links[best["source"], best["target"]] > 0
print(f"{right.mean():.0%} of these links exist; chance is {links.mean():.0%}")

# %%
# On the right, vertices at their hidden places, and the predicted links: blue if they exist, red if
# they do not.
import matplotlib.pyplot as plt

from okforest.network import plot_curves

fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), width_ratios=[1, 1.2], layout="constrained")
plot_curves(compared, "roc", "known-new", ax=axes[0])
axes[0].set_title("pairs of a known and a new vertex")
for source, target in np.argwhere(np.triu(links[known, known])):
    axes[1].plot(*place[[source, target]].T, color="lightgray", linewidth=0.8, zorder=1)
for link, exists in zip(best, right, strict=True):
    color = "tab:blue" if exists else "tab:red"
    axes[1].plot(*place[[link["source"], link["target"]]].T, color=color, linewidth=1.3, zorder=2)
axes[1].scatter(*place[known].T, s=14, color="gray", zorder=3, label="known vertex")
axes[1].scatter(*place[new].T, s=30, color="black", zorder=3, label="new vertex")
axes[1].plot([], [], color="lightgray", label="known link")
axes[1].plot([], [], color="tab:blue", label="predicted, exists")
axes[1].plot([], [], color="tab:red", label="predicted, does not exist")
axes[1].set(xticks=[], yticks=[], title="the two best links of each new vertex")
axes[1].legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, fontsize=9, frameon=False)
plt.show()
