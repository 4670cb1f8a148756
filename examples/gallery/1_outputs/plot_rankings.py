"""
Rankings: Borda and Kemeny
==========================

An output may be a ranking of labels, such as the order in which somebody prefers dishes. A model
predicts weights over the training rankings; two decoders combine them. ``Borda`` orders labels by
their mean rank. ``Kemeny`` finds the ranking with the fewest weighted disagreements between pairs,
which is what Kendall's τ measures. With few labels Kemeny's ranking is found exactly.
"""

# %%
# Five dishes, four features of a person. Every person ranks the dishes with some noise.
import numpy as np

rng = np.random.default_rng(0)
dishes = np.array(["cake", "crisps", "curry", "lemon", "olives"])
X = rng.uniform(size=(700, 4))
taste = rng.normal(size=(4, 5))
utility = np.sin(3 * X) @ taste + rng.gumbel(scale=0.25, size=(700, 5))
rankings = [tuple(dishes[order].tolist()) for order in np.argsort(-utility, axis=1)]
print(rankings[0])

# %%
# Fit one forest for each leaf size, and decode its weights with both decoders.
from okforest import OKRandomForest
from okforest.metrics import kendall_tau

sizes = [1, 2, 5, 10, 20, 40, 80]
taus = {"borda": [], "kemeny": []}
for size in sizes:
    forest = OKRandomForest(60, kernel="kendall", min_samples_leaf=size, random_state=0)
    forest.fit(X[:350], rankings[:350])
    for decoder, values in taus.items():
        predicted = forest.set_params(decoder=decoder).predict(X[350:])
        values.append(kendall_tau(rankings[350:], predicted))

# %%
# The decoders are close; the leaf size matters more. The dotted line is the τ of one ranking for
# everybody.
import matplotlib.pyplot as plt

everybody = OKRandomForest(1, kernel="kendall", decoder="kemeny", max_depth=1, bootstrap=False)
everybody.fit(np.zeros((350, 1)), rankings[:350])
baseline = kendall_tau(rankings[350:], everybody.predict(np.zeros((350, 1))))

fig, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
for (decoder, values), marker in zip(taus.items(), "os", strict=True):
    ax.plot(sizes, values, marker + "-", label=decoder.capitalize())
ax.axhline(baseline, color="gray", linestyle=":", label="one ranking for everybody")
ax.set(
    xscale="log",
    xlabel="min_samples_leaf",
    ylabel="mean Kendall's τ of new persons",
    title="Rankings of five dishes",
)
ax.set_xticks(sizes, [str(size) for size in sizes])
ax.minorticks_off()
ax.legend()
plt.show()
