"""
The set with the largest expected F1 score
==========================================

Predicting every label of probability above ½ is right for the Hamming loss, but too cautious for
the F1 score: where all labels are improbable, it predicts nothing. The decoder ``"expected_f1"``
finds the set with the largest expected F1 score, exactly, among all sets of labels. It has no
threshold to tune.
"""

# %%
# Labels that are rare and hard to predict: 12 labels, two to a row, and noisy inputs.
import numpy as np
from sklearn.datasets import make_multilabel_classification

X, Y = make_multilabel_classification(
    1000, n_features=30, n_classes=12, n_labels=2, length=25, allow_unlabeled=False, random_state=1
)
train, test = slice(0, 500), slice(500, None)

# %%
from okforest import OKRandomForest
from okforest.metrics import set_f1_score

forest = OKRandomForest(200, kernel="hamming", random_state=0).fit(X[train], Y[train])
probabilities = forest.predict_proba(X[test])
exact = forest.set_params(decoder="expected_f1").predict(X[test])

# %%
# Compare with every fixed threshold, even the one that is best on the test rows. The figure on the
# right counts the predicted labels.
import matplotlib.pyplot as plt

thresholds = np.linspace(0.05, 0.7, 27)
scores = [set_f1_score(Y[test], (probabilities > t).astype(int)) for t in thresholds]
score = set_f1_score(Y[test], exact)
print(f"F1: threshold ½ {set_f1_score(Y[test], (probabilities > 0.5).astype(int)):.3f}, ", end="")
print(f"best threshold {max(scores):.3f}, expected F1 {score:.3f}")

fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].plot(thresholds, scores, color="tab:gray", label="fixed threshold")
axes[0].axvline(0.5, color="tab:gray", linestyle=":", label="threshold ½")
axes[0].axhline(score, color="tab:blue", label="expected F1")
axes[0].set(xlabel="threshold on the probability of a label", ylabel="F1 score by example")
axes[0].legend(loc="lower left")

sizes = np.arange(7)
for offset, (name, sets, color) in enumerate(
    [
        ("true", Y[test], "black"),
        ("threshold ½", probabilities > 0.5, "tab:gray"),
        ("expected F1", exact, "tab:blue"),
    ]
):
    counts = np.bincount(np.minimum(sets.sum(axis=1), 6), minlength=7)
    axes[1].bar(sizes + 0.28 * (offset - 1), counts, width=0.26, color=color, label=name)
axes[1].set(xlabel="labels in a set", ylabel="test rows", xticks=sizes)
axes[1].set_xticklabels([*map(str, sizes[:-1]), "6+"])
axes[1].legend()
plt.show()
