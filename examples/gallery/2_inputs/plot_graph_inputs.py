"""
Graphs as inputs
================

``Neighborhoods`` describes a graph by the surroundings of random vertices: how many vertices, edges
and triangles they have. Trees then classify whole graphs, or predict a number for each.
"""

# %%
# Rings in which a share of the links has been rewired at random. The share is the output.
import networkx as nx
import numpy as np

rng = np.random.default_rng(0)
share = rng.uniform(0, 0.6, size=160)
graphs = [nx.watts_strogatz_graph(40, 4, p, seed=i) for i, p in enumerate(share)]

# %%
from okforest.segments import Neighborhoods, SegmentRegressor

model = SegmentRegressor(Neighborhoods(20, radius=2), random_state=0)
model.fit(graphs[:110], share[:110])
predicted = model.predict(graphs[110:])
print(f"R² on new graphs: {model.score(graphs[110:], share[110:]):.2f}")

# %%
import matplotlib.pyplot as plt

order = np.argsort(share[110:])
shown = 110 + order[[2, len(order) // 3, -3]]
fig, axes = plt.subplots(1, 4, figsize=(11, 2.9), layout="constrained")
for ax, i in zip(axes, shown, strict=False):
    position = nx.circular_layout(graphs[i])
    nx.draw_networkx_edges(graphs[i], position, ax=ax, width=0.7, edge_color="tab:gray")
    nx.draw_networkx_nodes(graphs[i], position, ax=ax, node_size=12, node_color="tab:blue")
    ax.set_title(f"rewired {share[i]:.0%}, predicted {predicted[i - 110]:.0%}", fontsize=10)
    ax.set_aspect("equal")
    ax.set_axis_off()
axes[3].plot([0, 0.6], [0, 0.6], color="gray", linewidth=1)
axes[3].plot(share[110:], predicted, "o", markersize=4, color="tab:blue")
axes[3].set(xlabel="true share of rewired links", ylabel="predicted", aspect="equal")
plt.show()
