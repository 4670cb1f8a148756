"""
Strings that were never seen in training
========================================

The output is a string, described by its substrings of three symbols (the kernel ``Spectrum``). The
nearest training string is a safe prediction, but it can only be a string that is known. The decoder
``"eulerian_path"`` rounds the predicted numbers of substrings and looks for a path through them: if
there is one, it spells a string that contains exactly these substrings.
"""

# %%
# Seven switches, each of which writes one letter. A third of the combinations is held out.
import itertools

import numpy as np

pairs = ["ax", "be", "co", "di", "fu", "gy", "hz"]
X = np.array(list(itertools.product([0, 1], repeat=7)), dtype=float)
words = np.array(["".join(p[int(v)] for p, v in zip(pairs, row, strict=True)) for row in X])
order = np.random.default_rng(0).permutation(len(X))
print(words[:4])

# %%
# Kernel ridge regression learns the numbers of substrings from few examples. We increase the number
# of training words and count how many of 40 unseen words are spelled correctly.
from okforest import OKRidge
from okforest.kernels import Spectrum

test = order[-40:]
sizes = [10, 20, 30, 45, 60, 80]
right = {"training_set": [], "eulerian_path": []}
for size in sizes:
    train = order[:size]
    model = OKRidge(1e-3, kernel=Spectrum(length=3, boundaries=True), input_kernel="poly")
    model.fit(X[train], words[train])
    for decoder, shares in right.items():
        shares.append((model.set_params(decoder=decoder).predict(X[test]) == words[test]).mean())
print("true:     ", words[test][:3])
print("nearest:  ", model.set_params(decoder="training_set").predict(X[test])[:3])
print("assembled:", model.set_params(decoder="eulerian_path").predict(X[test])[:3])

# %%
# The nearest training word is never right, because no test word is a training word.
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
ax.plot(sizes, right["eulerian_path"], "o-", label="assembled from substrings (eulerian_path)")
ax.plot(sizes, right["training_set"], "s-", color="gray", label="nearest training word")
ax.set(
    xlabel="training words",
    ylabel="unseen words, correct",
    ylim=(-0.05, 1.05),
    title="Exact prediction of words of seven letters",
)
ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
ax.legend(loc="center right")
plt.show()
