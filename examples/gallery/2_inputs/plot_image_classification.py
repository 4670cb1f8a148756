"""
Classify images by random subwindows, and see why
=================================================

``SegmentClassifier`` cuts random square windows from every image, scales them to one size, and
grows trees on their pixels. The class of an image is the vote of its windows. Each window votes
where it lies, so that the votes make a map of the evidence.
"""

# %%
# Generated images: noise, and somewhere a patch of one of three fabrics.
import numpy as np

rng = np.random.default_rng(0)
names = ["checks", "diagonal", "stripes"]


def picture(name):
    """Draw a patch of a fabric at a random place on a noisy background."""
    down, across = np.mgrid[:48, :48] + rng.uniform(0, 6, size=2)[:, None, None]
    wave = {
        "checks": np.sign(np.sin(down) * np.sin(across)),
        "diagonal": np.sin((down + across) * 0.75),
        "stripes": np.sin(across),
    }[name]
    side = rng.integers(18, 26)
    top, left = rng.integers(0, 48 - side, size=2)
    inside = np.zeros((48, 48))
    inside[top : top + side, left : left + side] = 1
    values = 128 + 28 * inside * wave + rng.normal(0, 25, size=(48, 48))
    return np.clip(values, 0, 255).astype(np.uint8)


labels = rng.choice(names, 450)
images = np.stack([picture(name) for name in labels])
train, test = slice(0, 300), slice(300, None)

# %%
# Most windows show background only. ``combine="confidence"`` gives more weight to windows that
# reach nearly pure leaves.
from okforest import OKExtraTrees
from okforest.segments import RandomSubwindows, SegmentClassifier

model = SegmentClassifier(
    RandomSubwindows(100, side_range=(0.2, 0.3)),
    OKExtraTrees(30, min_samples_leaf=5),
    combine="confidence",
    random_state=0,
)
model.fit(images[train], labels[train])
predicted = model.predict(images[test])
right = predicted == labels[test]
print(f"accuracy on {right.size} new images: {right.mean():.2f}")

# %%
# Bright: windows that cover this place vote for the predicted class, which is named above the map
# with its probability. The last image is the one of whose class the model is least certain.
import matplotlib.pyplot as plt

certainty = model.predict_proba(images[test]).max(axis=1)
shown = [np.argmax(certainty * (labels[test] == name)) for name in names]
shown.append(np.argmin(certainty))
fig, axes = plt.subplots(2, 4, figsize=(10, 5), layout="constrained")
for (above, below), i in zip(axes.T, shown, strict=True):
    above.imshow(images[test][i], cmap="gray")
    above.set(xticks=[], yticks=[], title=f"true: {labels[test][i]}")
    model.evidence(images[test][i]).plot(below)
    below.set_title(f"{predicted[i]}: {certainty[i]:.0%}")
plt.show()
