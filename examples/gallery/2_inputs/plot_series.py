"""
Classify time series by random subseries
========================================

A short event may decide the class of a long series, wherever it happens. ``SegmentClassifier`` cuts
random subseries and lets them vote. Series may have different lengths.
"""

# %%
# Random walks with a bump or a dip at a random time.
import numpy as np

rng = np.random.default_rng(0)
labels = rng.choice(["bump", "dip"], 300)
series, events = [], []
for label in labels:
    walk = rng.normal(0, 0.25, rng.integers(100, 140)).cumsum()
    start = rng.integers(5, len(walk) - 25)
    walk[start : start + 20] += 3 * np.hanning(20) * (1 if label == "bump" else -1)
    series.append(walk)
    events.append(start)

# %%
from okforest.segments import RandomSubseries, SegmentClassifier

model = SegmentClassifier(RandomSubseries(100, length_range=(0.1, 0.4)), random_state=0)
model.fit(series[:200], labels[:200])
print(f"accuracy on new series: {model.score(series[200:], labels[200:]):.2f}")

# %%
# Darker: more evidence for the predicted class. The blue bar marks the event.
import matplotlib.pyplot as plt

shown = [200, 203, 205]
fig, axes = plt.subplots(1, 3, figsize=(11, 2.9), layout="constrained")
for ax, i in zip(axes, shown, strict=True):
    model.evidence(series[i]).plot(ax)
    ax.hlines(ax.get_ylim()[0], events[i], events[i] + 20, color="tab:blue", linewidth=9)
    ax.set(title=f"true {labels[i]}, predicted {model.predict([series[i]])[0]}", xlabel="time")
plt.show()
