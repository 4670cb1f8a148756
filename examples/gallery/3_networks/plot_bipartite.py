"""
Links between two kinds of vertices
===================================

Drugs bind to targets, users like films. ``BipartiteCompletion`` has a model for each side: a new
drug gets weights over the known drugs, a new target weights over the known targets, and the score
of a pair combines both with the known links.
"""

# %%
# 90 drugs and 60 targets, each with two features of which one matters.
import numpy as np

rng = np.random.default_rng(0)
drugs, targets = rng.uniform(size=(90, 2)), rng.uniform(size=(60, 2))
distance = np.abs(drugs[:, :1] - targets[:, 0])
links = (rng.uniform(size=distance.shape) < 0.85 * (distance < 0.12)).astype(float)
print(f"{links.mean():.0%} of the pairs are linked")

# %%
# How well are links ranked if the drug is new, if the target is new, and if both are? An area under
# the ROC curve of 0.5 is chance.
from okforest.network import BipartiteCompletion, cross_validate_bipartite

areas = {
    setting: cross_validate_bipartite(
        BipartiteCompletion(), drugs, targets, links, setting, cv=4
    ).auc
    for setting in ("new rows", "new columns", "both new")
}
for setting, area in areas.items():
    print(f"{setting}: AUC {np.nanmean(area):.3f}")

# %%
# Fit without the last 30 drugs and the last 20 targets, and complete the matrix. Rows and columns
# are sorted by the feature that matters.
import matplotlib.pyplot as plt

model = BipartiteCompletion().fit(drugs[:60], targets[:40], links[:60, :40])
scores = np.block(
    [
        [model.predict_links(), model.predict_links(X_columns=targets[40:])],
        [model.predict_links(drugs[60:]), model.predict_links(drugs[60:], targets[40:])],
    ]
)
known = np.zeros_like(links)
known[:60, :40] = links[:60, :40]
hidden = np.ones_like(links)
hidden[:60, :40] = 0
rows, columns = np.argsort(drugs[:, 0]), np.argsort(targets[:, 0])
order = np.ix_(rows, columns)

fig, axes = plt.subplots(1, 3, figsize=(10, 4.4), sharey=True, layout="constrained")
axes[0].imshow(np.where(hidden, np.nan, known)[order], cmap="Blues", vmax=1.3, aspect="auto")
axes[0].set_facecolor("lightgray")
axes[0].set_title("known links; grey: to predict")
axes[1].imshow(scores[order], cmap="Blues", aspect="auto")
axes[1].set_title("predicted scores")
axes[2].imshow(links[order], cmap="Blues", vmax=1.3, aspect="auto")
axes[2].set_title("true links")
for ax in axes:
    ax.set_xlabel("targets, sorted by feature")
axes[0].set_ylabel("drugs, sorted by feature")
plt.show()
