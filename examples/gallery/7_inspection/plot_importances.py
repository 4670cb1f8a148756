"""
Which features matter?
======================

``feature_importances_`` is the share of the total variance reduction in the feature space of the
output kernel. It works for any output: here for a number, with the features of a table, and for
images, with pixels.
"""

# %%
# Progression of diabetes, from ten features. Three of them are measures of cholesterol; their
# importances can be added up.
from sklearn.datasets import load_diabetes, load_digits

from okforest import OKExtraTrees, OKRandomForest
from okforest.kernels import RBF

X, y = load_diabetes(return_X_y=True, as_frame=True)
diabetes = OKRandomForest(100, random_state=0).fit(X, y)

# %%
# Completion of digits: which pixels of the upper half matter for the lower half?
images = load_digits().data[:1000] / 16
digits = OKExtraTrees(100, kernel=RBF(), max_features=None, random_state=0)
digits.fit(images[:, :32], images[:, 32:])

# %%
# Error bars show one standard deviation over the trees.
import matplotlib.pyplot as plt

from okforest.inspection import plot_importances

fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
plot_importances(diabetes, groups={"cholesterol (s1, s2, s3)": ["s1", "s2", "s3"]}, ax=axes[0])
axes[0].set_title("progression of diabetes")
picture = axes[1].imshow(digits.feature_importances_.reshape(4, 8), cmap="Blues", vmin=0)
axes[1].set(
    title="pixels of the upper half of a digit", xlabel="column", ylabel="row", yticks=range(4)
)
fig.colorbar(picture, ax=axes[1], label="importance", shrink=0.6)
plt.show()
