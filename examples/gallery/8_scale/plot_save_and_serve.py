"""
Save a model, load it, and predict one row at a time
====================================================

A service loads a model once and answers single requests. ``okforest.save`` writes text and arrays
to one file that executes no code when it is loaded and can be memory-mapped. Predicting one row
touches the training outputs with non-zero weight only.
"""

# %%
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.datasets import load_digits

import okforest
from okforest import OKExtraTrees
from okforest.kernels import RBF

images = load_digits().data / 16
upper, lower = images[:, :32], images[:, 32:]
forests = {
    n: OKExtraTrees(n, kernel=RBF(), random_state=0).fit(upper[:1200], lower[:1200])
    for n in (10, 50, 100, 200)
}

# %%
# Save and load. The loaded model predicts the same.
sizes, latencies = {}, {}
with tempfile.TemporaryDirectory() as folder:
    for n, forest in forests.items():
        path = Path(folder) / f"digits-{n}.okforest"
        okforest.save(forest, path)
        sizes[n] = path.stat().st_size / 1e6
        loaded = okforest.load(path)
        assert (loaded.predict(upper[1200:1210]) == forest.predict(upper[1200:1210])).all()
        times = []
        for row in range(1200, 1400):
            start = process_time()
            loaded.predict(upper[row : row + 1])
            times.append(1000 * (process_time() - start))
        latencies[n] = times
for n in forests:
    print(f"{n} trees: {sizes[n]:.1f} MB, median latency {np.median(latencies[n]):.2f} ms")

# %%
# CPU times of 200 single rows on this machine, from input to decoded image. The box holds the
# middle half of them.
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].boxplot(list(latencies.values()), tick_labels=list(latencies), showfliers=False)
axes[0].set(xlabel="trees", ylabel="CPU time of one row (ms)", title="latency", ylim=(0, None))
bars = axes[1].bar([str(n) for n in sizes], list(sizes.values()))
axes[1].bar_label(bars, fmt="%.1f")
axes[1].set(
    xlabel="trees", ylabel="size (MB)", title="saved model", ylim=(0, 1.15 * max(sizes.values()))
)
plt.show()
