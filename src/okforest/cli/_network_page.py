"""The page of ``okforest network``: blocks of a report, with the terms explained."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy.sparse as sp

from okforest import __version__
from okforest._plotting import new_figure
from okforest._report import Block, Figure, Heading, Paragraph, Row, Table
from okforest.network import (
    Evaluation,
    NetworkCompletion,
    group_importances,
    plot_curves,
    plot_groups,
)
from okforest.network._pairs import PairKind

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

N_LINKS = 25  # on the page, of each ranking
N_PARTNERS = 5  # of each vertex
N_FEATURES = 15

KIND_WORDS: dict[PairKind, str] = {
    "seen-unseen": "known – new",
    "unseen-unseen": "new – new",
    "with-unseen": "at least one new",
    "seen-seen": "known – known",
}

TERMS = (
    (
        "known vertex",
        "A vertex that the model was trained on, with its links; “seen” in the CSV files.",
    ),
    (
        "new vertex",
        "A vertex with features only, whose links are predicted; “unseen” in the CSV files.",
    ),
    (
        "score",
        "Ranks pairs of the same kind: a higher score means that a link is more likely. It is not "
        "a probability.",
    ),
    ("importance", "Share of a feature in the total variance reduction of the forest."),
)

EVALUATION_TERMS = (
    (
        "AUC",
        "Area under the ROC curve: the probability that a linked pair has a higher score than an "
        "unlinked one. 0.5 is chance, 1 is perfect.",
    ),
    (
        "AUPR",
        "Area under the precision–recall curve (average precision). Chance is the share of links; "
        "1 is perfect.",
    ),
    ("precision at k", "Share of linked pairs among the k pairs with the highest scores."),
    ("share of links", "Share of linked pairs among all pairs of this kind."),
)


def overview(
    features: pd.DataFrame, adjacency: sp.csr_array, new: pd.DataFrame | None, evaluated: bool
) -> Block:
    """Return the size of the data, beside the terms used on the page."""
    terms = TERMS + EVALUATION_TERMS if evaluated else TERMS
    degrees = np.asarray((adjacency > 0).sum(axis=0)).ravel()
    rows = [
        ("known vertices", len(features)),
        ("links", int(degrees.sum()) // 2),
        ("known vertices without links", int((degrees == 0).sum())),
        ("features", features.shape[1]),
        ("missing values", f"{features.isna().to_numpy().mean():.1%}"),
        ("new vertices", 0 if new is None else len(new)),
    ]
    return Row(
        [
            [Heading("Data"), Table(["", "number"], rows)],
            [Heading("Terms"), Table(["term", "meaning"], terms, text=True)],
        ]
    )


def evaluation_blocks(
    result: Evaluation, by_group: Mapping[str, Evaluation], folds: int
) -> list[Block]:
    """Return the scores and curves of cross-validation, and the scores of groups of features."""
    rows = []
    for kind, scores in result.kinds.items():
        areas = (f"{np.nanmean(a):.3f} ± {np.nanstd(a):.3f}" for a in (scores.auc, scores.aupr))
        precision = (f"{np.nanmean(values):.2f}" for values in scores.precision.values())
        share = scores.n_links.sum() / scores.n_pairs.sum()
        rows.append((KIND_WORDS[kind], *areas, *precision, f"{share:.4f}"))
    ks = [f"precision at {k}" for k in scores.precision]
    curves = {"extra-trees": result}
    blocks: list[Block] = [
        Heading("Quality of the predictions"),
        Paragraph(
            f"{folds}-fold cross-validation over vertices: the vertices held out are new to the "
            "model, which knows none of their links. Means ± standard deviations over folds."
        ),
        Table(["pairs", "AUC", "AUPR", *ks, "share of links"], rows),
        Row(
            [
                [Figure("roc", "ROC curve, mean over folds", lambda: _draw_curve(curves, "roc"))],
                [
                    Figure(
                        "pr",
                        "Precision–recall curve, mean over folds",
                        lambda: _draw_curve(curves, "pr"),
                    )
                ],
            ]
        ),
    ]
    if by_group:
        groups = {**by_group, "all": result}
        caption = "AUC of predictions from each group of features, and from all"
        blocks += [
            Heading("Groups of features"),
            Figure("groups", caption, lambda: _draw_groups(groups)),
        ]
    return blocks


def importance_blocks(model: NetworkCompletion, groups: Mapping[str, list[str]]) -> list[Block]:
    """Return the most important features, and the importances of several groups."""
    features = model.model_.feature_names_in_
    shares = group_importances(model, {name: [name] for name in features})
    rows = [(name, f"{share:.1%}") for name, share in list(shares.items())[:N_FEATURES]]
    parts: list[list[Block]] = [[Table(["feature", "importance"], rows)]]
    if len(groups) > 1:
        shares = group_importances(model, groups)
        rows = [(name, f"{share:.1%}") for name, share in shares.items()]
        parts.insert(0, [Table(["group of features", "importance"], rows)])
    return [Heading("Important features"), Row(parts)]


def link_blocks(overall: pd.DataFrame, by_vertex: pd.DataFrame | None, stem: str) -> list[Block]:
    """Return the most likely links, overall and for each vertex."""
    new = stem == "links_new"
    vertex = "new vertex" if new else "vertex"
    rows = [
        (link.source, link.target, f"{link.score:.4f}", KIND_WORDS[link.kind])
        for link in overall[:N_LINKS].itertuples(index=False)
    ]
    parts: list[list[Block]] = [
        [
            Heading("Best overall", 3),
            Table([vertex, "partner", "score", "pair"], rows, text=True),
            Paragraph(f"The first {len(rows)} of {len(overall)} links in {stem}.csv.", note=True),
        ]
    ]
    if by_vertex is not None:
        parts.append(_vertex_blocks(by_vertex, vertex, f"{stem}_per_vertex.csv"))
    title = "Links of new vertices" if new else "Missing links between known vertices"
    return [Heading(title), Row(parts)]


def _vertex_blocks(by_vertex: pd.DataFrame, vertex: str, file: str) -> list[Block]:
    sources = by_vertex["source"].unique()
    rows = []
    for source in sources[:N_LINKS]:
        partners = by_vertex[by_vertex["source"] == source][:N_PARTNERS]
        words = (f"{link.target} ({link.score:.3f})" for link in partners.itertuples(index=False))
        rows.append((source, "; ".join(words)))
    return [
        Heading("Best for each vertex", 3),
        Table([vertex, "partners (score)"], rows, text=True),
        Paragraph(f"The first {len(rows)} of {len(sources)} vertices in {file}.", note=True),
    ]


def closing_note(trees: int, seed: int) -> Block:
    """Return how the results were computed."""
    return Paragraph(
        f"okforest {__version__}: {trees} trees, seed {seed}. A score is the inner product of two "
        "vertices in the feature space of a diffusion kernel, divided by the square roots of their "
        "norms.",
        note=True,
    )


def _draw_curve(curves: Mapping[str, Evaluation], curve: str) -> "Drawing":
    drawing = new_figure((5.0, 4.6))
    plot_curves(curves, curve, ax=drawing.subplots())  # type: ignore[arg-type]
    return drawing


def _draw_groups(groups: Mapping[str, Evaluation]) -> "Drawing":
    drawing = new_figure((5.0, 0.9 + 0.4 * len(groups)))
    plot_groups(groups, ax=drawing.subplots())
    return drawing
