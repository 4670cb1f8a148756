"""Complete a protein network: predict interactions from expression and localization.

The features of a protein predict its position in the feature space of a diffusion kernel on the
known network; proteins close to each other are likely to interact. The data set yeast_ppi is read
from the folder named by OKFOREST_DATA, or downloaded. If that fails, a small synthetic network is
completed instead. The figure is written to ``build/demo/network.png``.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest import OKExtraTrees, OKTree
from okforest.datasets import load_yeast_ppi
from okforest.network import (
    InputSimilarity,
    NetworkCompletion,
    compare_groups,
    cross_validate_links,
    format_table,
    group_importances,
    plot_clusters,
    plot_curves,
    plot_groups,
    vertex_clusters,
)


def main() -> None:
    """Evaluate, rank missing links, and plot curves, groups of features and clusters."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=100, help="number of trees in the forest")
    parser.add_argument("--folds", type=int, default=10, help="number of cross-validation folds")
    parser.add_argument("--figure", type=Path, default=Path("build/demo/network.png"))
    options = parser.parse_args()

    data = load()
    n_links = data.graph.nnz // 2
    print(f"{len(data.names)} vertices, {n_links} links, {data.data.shape[1]} features\n")
    forest = OKExtraTrees(
        options.trees, max_features=0.25, min_samples_split=5, random_state=0, n_jobs=-1
    )
    model = NetworkCompletion(forest)
    cv = {"cv": options.folds}
    cosine = cross_validate_links(InputSimilarity(), data.data, data.graph, **cv)
    groups = compare_groups(model, data.data, data.graph, data.feature_groups, **cv)
    compared = {"extra-trees": groups["all"], "cosine of features": cosine}
    for kind in ("known-new", "new-new"):
        print(f"{kind} pairs\n{format_table(compared, kind)}\n")

    model.fit(data.data, data.graph, data.names)
    print("Most likely missing links:")
    for source, target, score, _ in model.rank_links(k=5).tolist():
        print(f"  {source} – {target}, {score:.3f}")
    shares = group_importances(model, data.feature_groups)
    print("Importance:", ", ".join(f"{name} {share:.0%}" for name, share in shares.items()))

    tree = OKTree(max_leaf_nodes=9, min_samples_leaf=len(data.names) // 60, random_state=0)
    clusters = vertex_clusters(
        NetworkCompletion(tree).fit(data.data, data.graph, data.names),
        feature_names=data.feature_names,
        decimals=2,
    )
    draw(options.figure, compared, groups, clusters)
    print(f"\nFigure: {options.figure.resolve()}")


def load() -> Bunch:
    """Return the yeast network or, if it is not available, a synthetic one."""
    try:
        return load_yeast_ppi()
    except (OSError, ImportError, ValueError) as error:
        print(f"yeast_ppi is not available: {error}\nCompleting a synthetic network instead.\n")
    rng = np.random.default_rng(0)
    group = np.arange(120) % 4
    probability = np.where(group[:, None] == group, 0.2, 0.01)
    links = np.triu(rng.random((120, 120)) < probability, k=1)
    informative = np.eye(4)[group] + rng.normal(0.0, 0.4, (120, 4))
    return Bunch(
        data=np.hstack([informative, rng.normal(size=(120, 6))]),
        feature_names=[f"informative {i}" for i in range(4)] + [f"noise {i}" for i in range(6)],
        feature_groups={"informative": slice(0, 4), "noise": slice(4, 10)},
        graph=sp.csr_array((links | links.T).astype(float)),
        names=np.array([f"v{i}" for i in range(120)]),
    )


def draw(path: Path, compared, groups, clusters) -> None:
    """Plot curves, groups of features, and clusters with their rules."""
    figure, axes = plt.subplot_mosaic(
        [["roc", "pr", "groups"], ["clusters"] * 3],
        figsize=(13, 11),
        height_ratios=[1, 1.7],
        layout="constrained",
    )
    plot_curves(compared, "roc", "known-new", ax=axes["roc"])
    plot_curves(compared, "pr", "known-new", ax=axes["pr"])
    plot_groups(groups, ax=axes["groups"])
    axes["groups"].set_title("Groups of features")
    plot_clusters(clusters, ax=axes["clusters"])
    axes["clusters"].set_title("Clusters of vertices, their rules, and enriched links")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
