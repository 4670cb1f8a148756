"""
Search images without training
==============================

``SubwindowIndex`` cuts random windows from every picture and drops them into totally randomised
trees. Two pictures are similar if their windows share leaves, above all leaves that few other
pictures reach. Building needs no labels; the index is a folder on disk.
"""

# %%
# Index 1,500 digits. A temporary folder will do here.
import tempfile

import numpy as np
from sklearn.datasets import load_digits

from okforest.retrieval import SubwindowIndex
from okforest.segments import RandomSubwindows

digits = load_digits()
images = np.round(digits.images * 255 / 16).astype(np.uint8)
labels = digits.target.astype(str)
with tempfile.TemporaryDirectory() as folder:
    index = SubwindowIndex.build(
        f"{folder}/digits",
        images[:1500],
        labels=labels[:1500],
        segmenter=RandomSubwindows(50, side_range=(0.7, 1.0)),
        thumbnail_side=0,
    )
    queries = [1500, 1507, 1600, 1720, 1790]
    answers = [index.search(images[i], k=8) for i in queries]
    quality = index.evaluate(images[1500:], labels[1500:])
print(f"the first answer has the right label in {quality.top_1:.0%} of cases")

# %%
# Queries on the left. The frame of an answer is green if it shows the same digit, which the index
# does not know.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(len(queries), 9, figsize=(8, 5.2), layout="constrained")
for row, query, hits in zip(axes, queries, answers, strict=True):
    row[0].imshow(images[query], cmap="Blues")
    for ax, hit in zip(row[1:], hits, strict=True):
        ax.imshow(images[int(hit.name.split("-")[1])], cmap="gray_r")
        ax.set_xlabel(f"{hit.score:.3f}", fontsize=8, labelpad=2)
        for spine in ax.spines.values():
            spine.set(color="tab:green" if hit.label == labels[query] else "tab:red", linewidth=2)
    for ax in row:
        ax.set(xticks=[], yticks=[])
axes[0, 0].set_title("query")
axes[0, 4].set_title("most similar pictures, with scores")
plt.show()
