"""
Find several labels in an image, and where they are
===================================================

A picture often shows several things. ``SegmentAnnotator`` learns from images and *sets* of labels:
nobody has marked where in the picture a label is seen. Its maps show where it was found.
"""

# %%
# Images of textures. Only the set of textures in an image is used for training, not the label map.
from okforest.datasets import make_textures

images, maps = make_textures(60, seed=1)
names = ["horizontal", "vertical", "diagonal", "checks"]
labels = [{names[k] for k in set(label_map.ravel().tolist())} for label_map in maps]

# %%
from okforest.metrics import set_f1_score
from okforest.segments import RandomSubwindows, SegmentAnnotator

model = SegmentAnnotator(RandomSubwindows(200, side_range=(0.2, 0.3)), random_state=0)
model.fit(images[:50], labels[:50])
predicted = model.predict(images[50:])
print(f"F1 score of predicted sets: {set_f1_score(labels[50:], predicted):.2f}")
print("true:", sorted(labels[52]), "predicted:", sorted(predicted[2]))

# %%
# Bright: subwindows that are typical of images with this label. White lines: the true area.
import matplotlib.pyplot as plt

seen = model.label_map(images[52])
fig, axes = plt.subplots(1, 5, figsize=(11, 2.6), layout="constrained")
axes[0].imshow(images[52], cmap="gray")
axes[0].set_title("image")
for ax, name in zip(axes[1:], names, strict=True):
    column = list(model.classes_).index(name)
    picture = ax.imshow(seen[:, :, column], cmap="inferno", vmin=0.3, vmax=1)
    if name in labels[52]:
        ax.contour(maps[52] == names.index(name), levels=[0.5], colors="white", linewidths=1)
    ax.set_title(name if name in predicted[2] else f"{name}: not predicted")
for ax in axes:
    ax.set(xticks=[], yticks=[])
fig.colorbar(picture, ax=axes, label="mean probability")
plt.show()
