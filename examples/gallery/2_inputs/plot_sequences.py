"""
Find the motif that decides the class of a sequence
===================================================

Half of the sequences contain a motif at a random place. ``KmerWindows`` describes a sequence by
windows of six letters. The classifier learns which windows matter, and its evidence shows where
the motif is.
"""

# %%
import numpy as np

rng = np.random.default_rng(0)
labels = rng.choice(["plain", "motif"], 400)
sequences, places = [], []
for label in labels:
    letters = "".join(rng.choice(list("acgt"), rng.integers(40, 55)))
    place = int(rng.integers(0, len(letters) - 6))
    if label == "motif":
        letters = letters[:place] + "tataat" + letters[place + 6 :]
    sequences.append(letters)
    places.append(place)

# %%
# Most windows of a sequence say nothing. ``combine="confidence"`` gives more weight to windows
# whose leaves are nearly pure.
from okforest import OKExtraTrees
from okforest.segments import KmerWindows, SegmentClassifier

for combine in ("mean", "confidence"):
    model = SegmentClassifier(
        KmerWindows(length=6, position=False),
        OKExtraTrees(30, min_samples_leaf=5),
        combine=combine,
        random_state=0,
    )
    model.fit(sequences[:250], labels[:250])
    print(f"{combine}: accuracy {model.score(sequences[250:], labels[250:]):.2f}")

# %%
import matplotlib.pyplot as plt

shown = 250 + np.flatnonzero(labels[250:] == "motif")[:2]
fig, axes = plt.subplots(2, 1, figsize=(10, 2.6), layout="constrained")
for ax, i in zip(axes, shown, strict=True):
    model.evidence(sequences[i], "motif").plot(ax)
    frame = plt.Rectangle((places[i] - 0.5, -0.5), 6, 1, fc="none", ec="tab:blue", lw=3, zorder=3)
    ax.add_patch(frame).set_clip_on(False)
    ax.set_title("evidence for the class 'motif'; the true place of the motif is framed")
plt.show()
