"""
Grow a forest on a Dask cluster
===============================

``okforest.dask.fit`` grows trees on all workers of a Dask cluster and returns an ordinary
estimator. The same seed gives the same trees as a local fit, to the last bit, whatever the number
of workers. Here the cluster runs within this process; ``Client("tcp://scheduler:8786")`` connects
to a real one.
"""

# %%
from dask.distributed import Client, LocalCluster
from sklearn.datasets import load_digits

from okforest import OKExtraTrees
from okforest.dask import fit, predict

images = load_digits().data / 16
upper, lower = images[:, :32], images[:, 32:]
estimator = OKExtraTrees(100, kernel="rbf", random_state=0)

# %%
# ``predict`` works on the partitions of a Dask array, and is lazy until ``compute``.
import dask.array as da

with (
    LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster,
    Client(cluster) as client,
):
    forest = fit(estimator, upper[:1000], lower[:1000], client=client)
    lazy = predict(forest, da.from_array(upper[1000:], chunks=(200, -1)))
    completed = lazy.compute()
local = OKExtraTrees(100, kernel="rbf", random_state=0).fit(upper[:1000], lower[:1000])
print("the same predictions as a local forest:", (local.predict(upper[1000:]) == completed).all())
print("partitions:", lazy.numblocks[0])

# %%
# Digits completed by the partitions. Everything below the blue line is predicted.
import matplotlib.pyplot as plt
import numpy as np

shown = range(0, 700, 70)
fig, axes = plt.subplots(1, len(shown), figsize=(9, 1.4), layout="constrained")
for ax, i in zip(axes, shown, strict=True):
    digit = np.concatenate([upper[1000 + i], completed[i]]).reshape(8, 8)
    ax.imshow(digit, cmap="gray_r")
    ax.axhline(3.5, color="tab:blue", linewidth=1.5)
    ax.set(xticks=[], yticks=[], xlabel=f"part {i // 200 + 1}")
fig.suptitle("Lower halves predicted in four partitions by a forest grown on two workers")
plt.show()
