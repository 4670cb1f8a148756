"""Interpretation of trees on a network: slides 43 and 44 of the 2007 talk."""

from functools import cache
from typing import Any

import numpy as np

from okforest import OKTree
from okforest._utils.plotting import new_figure
from okforest._utils.report import Block, Figure, Heading, Paragraph, Table
from okforest.network import ClusterNetwork, NetworkCompletion, plot_clusters, vertex_clusters
from papers.data import load_network
from papers.jobs import Job, Results
from papers.rows import SETTINGS, make_completion

# The most important features for proteins, slide 44.
PAPER_RANKING = (
    ("loc – nucleolus", 0.021),
    ("expr (Spell.) – elu 120", 0.013),
    ("loc – cytoplasm", 0.012),
    ("expr (Eisen) – sporulation ndt80 early", 0.012),
    ("loc – nucleus", 0.012),
    ("expr (Eisen) – sporulation 30m", 0.011),
    ("expr (Eisen) – sporulation ndt80 middle", 0.010),
    ("expr (Spell.) – alpha 14", 0.010),
    ("expr (Spell.) – elu 150", 0.010),
    ("loc – mitochondrion", 0.009),
)
N_LEAVES = 7


def jobs(trees: int) -> list[Job]:
    """Return the jobs of the ranking; the tree takes a second and is fitted for the report."""
    arguments = [{"setting": setting, "trees": trees} for setting in SETTINGS]
    return [Job("ranking", rank_features, one, 3.0) for one in arguments]


def rank_features(setting: str, trees: int) -> dict[str, Any]:
    """Return the ten most important features for a forest on the whole network."""
    X, graph, names = load_network()
    model = make_completion("extra-trees", setting, trees, 0).fit(X, graph.adjacency)
    importances = model.model_.feature_importances_
    best = np.argsort(-importances, kind="stable")[: len(PAPER_RANKING)]
    return {
        "features": [names[i] for i in best],
        "importances": importances[best].tolist(),
    }


def blocks(results: Results) -> list[Block]:
    """Return the report."""
    return [*_cluster_blocks(), *_ranking_blocks(results)]


@cache
def _clusters() -> ClusterNetwork:
    X, graph, names = load_network()
    tree = OKTree(max_leaf_nodes=N_LEAVES, random_state=0)
    model = NetworkCompletion(tree).fit(X, graph.adjacency, graph.names)
    return vertex_clusters(model, feature_names=names, decimals=2)


def _cluster_blocks() -> list[Block]:
    network = _clusters()
    rows = [
        [cluster.rule, len(cluster.members), f"{links:.0f}", f"{enrichment:.1f}"]
        for cluster, links, enrichment in zip(
            network.clusters,
            np.diagonal(network.links),
            np.diagonal(network.enrichment),
            strict=True,
        )
    ]

    def draw() -> Any:
        drawing = new_figure((8.2, 5.0))
        plot_clusters(network, ax=drawing.subplots())
        return drawing

    return [
        Heading("Rules and clusters (slide 43)", 3),
        Paragraph(
            f"A tree with {N_LEAVES} leaves on all proteins, with okforest's default kernel: every "
            "leaf is a rule and a cluster. Enrichment is the fraction of linked pairs within a "
            "cluster, divided by the same fraction in the whole network."
        ),
        Table(["rule", "proteins", "links within", "enrichment"], rows, text=True),
        Figure(
            "network_clusters",
            "Slide 43. Clusters are discs labelled with their number of proteins; darker blue "
            "means that more pairs are linked. Lines join clusters with more links between them "
            "than expected by chance.",
            draw,
            wide=True,
        ),
    ]


def _ranking_blocks(results: Results) -> list[Block]:
    rankings = [
        zip(found["features"], found["importances"], strict=True)
        for found in (results.select("ranking", setting=setting)[0] for setting in SETTINGS)
    ]
    rows = [
        [rank, *(f"{feature} ({importance:.3f})" for feature, importance in line)]
        for rank, line in enumerate(zip(*rankings, PAPER_RANKING, strict=True), start=1)
    ]
    header = ["", "ours, papers' setting", "ours, k(v, v) = 1", "ours, defaults", "paper, proteins"]
    return [
        Heading("Feature importances (slide 44)", 3),
        Paragraph(
            "Extra-trees on the whole network, random_state = 0: the ten most important features, "
            "with their fraction of the variance reduction."
        ),
        Table(header, rows, text=True),
    ]
