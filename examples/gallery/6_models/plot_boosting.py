"""
Boosting in the feature space of the output kernel
==================================================

``OKBoost`` adds small trees, each fitted to the residuals of those before it, in the feature space
of the output kernel. The learning curve shows when more rounds stop helping.
"""

# %%
from sklearn.datasets import load_digits

from okforest import OKBoost, OKExtraTrees
from okforest.kernels import RBF

images = load_digits().data / 16
upper, lower = images[:, :32], images[:, 32:]
train, test = slice(0, 300), slice(1000, None)
kernel = RBF(sigma="median").resolve(lower[train])
boost = OKBoost(
    300,
    kernel=kernel,
    learning_rate=0.03,
    splitter="random",
    max_features="sqrt",
    max_splits=40,
    random_state=0,
).fit(upper[train], lower[train])
forest = OKExtraTrees(100, kernel=kernel, random_state=0).fit(upper[train], lower[train])

# %%
# The loss in feature space needs no decoding; ``preimages=True`` adds the loss of decoded images.
import matplotlib.pyplot as plt

from okforest.inspection import plot_learning_curve
from okforest.metrics import kernel_loss, output_loss

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
plot_learning_curve(boost, {"test": (upper[test], lower[test])}, preimages=True, ax=ax)
losses = {
    "extra-trees, test": kernel_loss(forest, upper[test], lower[test]),
    "extra-trees, test, images": output_loss(kernel, lower[test], forest.predict(upper[test])),
}
for (name, loss), style in zip(losses.items(), ((0, (1, 1)), (0, (5, 4))), strict=True):
    ax.axhline(loss, color="gray", linestyle=style, linewidth=1, label=name)
ax.legend(fontsize=9)
ax.set_title("Completion of digits: 300 rounds of boosting")
plt.show()
