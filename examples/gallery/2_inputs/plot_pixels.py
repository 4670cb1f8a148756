"""
Label every pixel of an image
=============================

``PixelClassifier`` learns from images and maps of labels. Subwindows vote for the labels of the
pixels that they cover. Intersection over union measures areas, and the boundary F1 score measures
how well the borders between them are found.
"""

# %%
# Generated images of four textures, with their label maps.
from okforest.datasets import make_textures

images, maps = make_textures(60, seed=1)
names = ["horizontal", "vertical", "diagonal", "checks"]

# %%
from okforest.metrics import boundary_f1, intersection_over_union
from okforest.segments import PixelClassifier, RandomSubwindows

model = PixelClassifier(RandomSubwindows(200, side_range=(0.2, 0.3)), random_state=0)
model.fit(images[:50], maps[:50])
predicted = model.predict(images[50:])
print(f"intersection over union {intersection_over_union(maps[50:], predicted):.2f}")
print(f"boundary F1 {boundary_f1(maps[50:], predicted):.2f}")

# %%
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

colors = ["#4a7ba6", "#c8792f", "#6a9a4a", "#8a6fa8"]
fig, axes = plt.subplots(3, 4, figsize=(8, 6.4), layout="constrained")
for column, i in zip(axes.T, (0, 2, 4, 7), strict=True):
    column[0].imshow(images[50 + i], cmap="gray")
    for ax, labels in zip(column[1:], (maps[50 + i], predicted[i]), strict=True):
        ax.imshow(labels, cmap=ListedColormap(colors), vmin=0, vmax=3)
    for ax in column:
        ax.set(xticks=[], yticks=[])
for ax, title in zip(axes[:, 0], ["image", "true", "predicted"], strict=True):
    ax.set_ylabel(title)
fig.legend(
    handles=[Patch(color=c, label=n) for c, n in zip(colors, names, strict=True)],
    loc="outside lower center",
    ncols=4,
)
plt.show()
