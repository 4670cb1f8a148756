"""
Sets of labels: one fit, a decoder for each measure
===================================================

In multi-label classification the output is a set of labels. Which set to predict depends on how
predictions are judged: the best set for the Hamming loss is not the best for the F1 score. A
forest of okforest predicts weights over the training sets, and a decoder turns the weights into a
set. The forest is fitted once; the decoders share its weights.
"""

# %%
# Generated data: 800 rows, eight labels, about three labels to a row.
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import train_test_split

X, Y = make_multilabel_classification(
    800, n_features=20, n_classes=8, n_labels=3, length=60, random_state=0
)
X_train, X_test, Y_train, Y_test = train_test_split(X, Y, test_size=0.5, random_state=0)

# %%
from okforest import OKRandomForest

forest = OKRandomForest(200, kernel="hamming", random_state=0).fit(X_train, Y_train)

# %%
# ``"threshold"`` takes the labels of probability above ½, ``"mode"`` the training set of the
# largest weight, and ``"expected_f1"`` the set with the largest expected F1 score.
from okforest.metrics import set_f1_score, set_hamming_loss, subset_accuracy

measures = {
    "1 − Hamming loss": lambda true, predicted: 1 - set_hamming_loss(true, predicted),
    "subset accuracy": subset_accuracy,
    "F1 by example": set_f1_score,
}
decoders = ["threshold", "mode", "expected_f1"]
predicted = {name: forest.set_params(decoder=name).predict(X_test) for name in decoders}

# %%
# The best decoder of each measure is blue.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 3, figsize=(9, 2.4), sharey=True, layout="constrained")
for ax, (title, measure) in zip(axes, measures.items(), strict=True):
    values = [measure(Y_test, predicted[name]) for name in decoders]
    colors = ["tab:blue" if value == max(values) else "lightgray" for value in values]
    bars = ax.barh(decoders, values, color=colors)
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set(title=title, xlim=(0, 1.25 * max(values)), xlabel="score, higher is better")
axes[0].set_ylabel("decoder")
plt.show()
