"""What trees say of a network: slides 43 and 44 of the 2007 talk."""

from functools import cache
from typing import Any

import numpy as np

from okforest import OKTree
from okforest.network import ClusterNetwork, NetworkCompletion, plot_clusters, vertex_clusters
from okforest.papers._jobs import Job, Results
from okforest.papers._models import completion
from okforest.papers._proteins import proteins
from okforest.papers._report import Block, Figure, Heading, Paragraph, Table, on_axes

# Features of largest importance for proteins, slide 44.
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
LEAVES = 8  # of the tree that is read


def jobs(trees: int) -> list[Job]:
    """Return the job of the ranking; the tree is grown in a second, where it is drawn."""
    return [Job("ranking", rank_features, {"trees": trees}, 3.0)]


def rank_features(trees: int) -> dict[str, Any]:
    """Return the ten features of largest importance, learnt from the whole network."""
    X, graph, names = proteins()
    model = completion("extra-trees", "papers", trees, 0).fit(X, graph.adjacency)
    importances = model.model_.feature_importances_
    best = np.argsort(-importances, kind="stable")[: len(PAPER_RANKING)]
    return {
        "features": [names[i] for i in best],
        "importances": importances[best].tolist(),
    }


def blocks(results: Results) -> list[Block]:
    """Return the tables and the figure."""
    return [*_cluster_blocks(), *_ranking_blocks(results)]


@cache
def _clusters() -> ClusterNetwork:
    X, graph, names = proteins()
    tree = OKTree(max_leaf_nodes=LEAVES, random_state=0)
    model = NetworkCompletion(tree).fit(X, graph.adjacency, graph.names)
    return vertex_clusters(model, feature_names=names, decimals=2)


def _cluster_blocks() -> list[Block]:
    network = _clusters()
    rows = [
        [str(cluster.rule), str(len(cluster.members)), f"{links:.0f}", f"{more:.1f}"]
        for cluster, links, more in zip(
            network.clusters,
            np.diagonal(network.links),
            np.diagonal(network.enrichment),
            strict=True,
        )
    ]
    return [
        Heading("Rules and clusters (slide 43)", 3),
        Paragraph(
            f"A tree of {LEAVES} leaves on all proteins, with okforest's default kernel: every "
            "leaf is a rule and a cluster. Enrichment: the share of linked pairs within a cluster, "
            "divided by that of the whole network."
        ),
        Table(["rule", "proteins", "links within", "enrichment"], rows),
        Figure(
            "network_clusters",
            "Slide 43. Clusters as discs with their number of proteins, bluer the more of their "
            "pairs are linked; lines join clusters with more links than chance.",
            lambda: on_axes(10.0, 6.5, lambda ax: plot_clusters(network, ax=ax)),
            wide=True,
        ),
    ]


def _ranking_blocks(results: Results) -> list[Block]:
    (found,) = results.of("ranking")
    ours = zip(found["features"], found["importances"], strict=True)
    rows = [
        [str(rank), feature, f"{share:.3f}", theirs, f"{their_share:.3f}"]
        for rank, ((feature, share), (theirs, their_share)) in enumerate(
            zip(ours, PAPER_RANKING, strict=True), start=1
        )
    ]
    return [
        Heading("Features that matter (slide 44)", 3),
        Paragraph(
            "Extra-trees on the whole network, papers' setting: the ten largest importances."
        ),
        Table(["", "ours", "importance", "paper, proteins", "importance"], rows, text=True),
    ]
