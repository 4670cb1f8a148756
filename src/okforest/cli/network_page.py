"""The page of ``okforest network``: blocks of a report, with the terms explained."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from okforest import __version__
from okforest._utils.plotting import new_figure
from okforest._utils.report import Block, Figure, Heading, Paragraph, Row, Table
from okforest.network import (
    Evaluation,
    KindScores,
    NetworkCompletion,
    compare_links,
    group_importances,
    plot_curves,
    plot_groups,
)
from okforest.network.graphs import PairKind

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

LINKS_PER_RANKING = 100
N_PARTNERS = 5  # links listed for each vertex
N_FEATURES = 15
SIGNIFICANT = 0.05  # the p-value below which a difference between two methods is stated

KIND_WORDS: dict[PairKind, str] = {
    "known-new": "known–new",
    "new-new": "new–new",
    "with-new": "at least one new",
    "known-known": "known–known",
}

MODEL, BASELINE = "network completion", "similarity of features (baseline)"

TERMS = (
    ("known vertex", "A vertex that the model was trained on, with its links."),
    ("new vertex", "A vertex with features only, whose links are predicted."),
    (
        "score",
        "Ranks pairs of the same kind: a higher score means that a link is more likely. It is not "
        "a probability.",
    ),
    ("importance", "Share of a feature in the total variance reduction of the forest."),
)

EVALUATION_TERMS = (
    (
        "baseline",
        "The cosine of the features of two vertices. Nothing is learnt from the links: a model is "
        "useful if it is better.",
    ),
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


class Evaluations(NamedTuple):
    """Cross-validation of the model, of the baseline, and of the model on groups of features."""

    model: Evaluation
    baseline: Evaluation
    groups: Mapping[str, Evaluation]


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
    results: Evaluations, with_new: bool, folds: int, deleted: float
) -> list[Block]:
    """Return the scores for the kinds of pairs that are listed, the curves, and the groups."""
    by_name = {MODEL: results.model, BASELINE: results.baseline}
    kinds = [kind for kind in results.model.kinds if with_new or kind == "known-known"]
    heading = Heading("Quality of the predictions")
    if not kinds:
        return [heading, Paragraph("There are too few links to evaluate predictions of others.")]
    rows = [
        (KIND_WORDS[kind], name, *_score_cells(result.kinds[kind]))
        for kind in kinds
        for name, result in by_name.items()
    ]
    ks = [f"precision at {k}" for k in results.model.kinds[kinds[0]].precision]
    drawn: PairKind = "with-new" if "with-new" in kinds else kinds[0]
    blocks: list[Block] = [
        heading,
        Paragraph(_protocol(with_new, folds, deleted)),
        Table(["pairs", "method", "AUC", "AUPR", *ks, "share of links"], rows),
        Paragraph(_verdict(by_name, [kind for kind in kinds if kind != "with-new"])),
        Row(
            [
                [_curve(by_name, "roc", "ROC curve", drawn)],
                [_curve(by_name, "pr", "Precision–recall curve", drawn)],
            ]
        ),
    ]
    if results.groups:
        groups = {**results.groups, "all": results.model}
        caption = "AUC of predictions from each group of features, and from all"
        figure = Figure("groups", caption, lambda: _draw_groups(groups, drawn))
        blocks += [Heading("Groups of features"), figure]
    return blocks


def _score_cells(scores: KindScores) -> list[str]:
    areas = (f"{np.nanmean(a):.3f} ± {np.nanstd(a):.3f}" for a in (scores.auc, scores.aupr))
    precision = (f"{np.nanmean(values):.2f}" for values in scores.precision.values())
    share = scores.n_links.sum() / scores.n_pairs.sum()
    return [*areas, *precision, f"{share:.4f}"]


def _protocol(with_new: bool, folds: int, deleted: float) -> str:
    if not with_new:
        return (
            f"In each of {folds} folds, one part of the vertices is left out, {deleted:.0%} of the "
            "links between the others are deleted at random, and the model is trained on the "
            "remaining links. It is evaluated on finding the deleted links among the pairs that "
            "are not linked in training. Means ± standard deviations over folds."
        )
    return (
        f"{folds}-fold cross-validation over vertices: the vertices held out are new to the model, "
        f"which knows none of their links. For the known–known pairs, {deleted:.0%} of the links "
        "between the other vertices are deleted as well, and are to be found again. Means ± "
        "standard deviations over folds."
    )


def _verdict(by_name: Mapping[str, Evaluation], kinds: Sequence[PairKind]) -> str:
    """Return for which kinds of pairs the model has a higher AUPR than the baseline."""
    parts, sentence = [], ""
    for kind in kinds:
        difference, p_value = astuple(
            compare_links(by_name[MODEL], by_name[BASELINE], kind, "aupr")
        )
        relation = "is not clearly better than"
        if p_value < SIGNIFICANT:
            relation = "is better than" if difference > 0 else "is worse than"
        ours, simple = (np.nanmean(by_name[name].kinds[kind].aupr) for name in (MODEL, BASELINE))
        parts.append(
            f"on {KIND_WORDS[kind]} pairs, network completion {relation} the baseline (AUPR "
            f"{ours:.3f} against {simple:.3f}, p = {p_value:.2g})"
        )
        if difference < 0:
            sentence = (
                " Where the baseline has the higher AUPR, prefer a ranking by the similarity of "
                "features, such as `okforest.network.InputSimilarity`."
            )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}.{sentence}"


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
        for link in overall[:LINKS_PER_RANKING].itertuples(index=False)
    ]
    parts: list[list[Block]] = [
        [
            Heading("Best overall", 3),
            Table([vertex, "partner", "score", "pair"], rows, text=True, sortable=True),
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
    for source in sources[:LINKS_PER_RANKING]:
        partners = by_vertex[by_vertex["source"] == source][:N_PARTNERS]
        words = (f"{link.target} ({link.score:.3f})" for link in partners.itertuples(index=False))
        rows.append((source, f"{partners['score'].iloc[0]:.4f}", "; ".join(words)))
    return [
        Heading("Best for each vertex", 3),
        Table([vertex, "best score", "partners (score)"], rows, text=True, sortable=True),
        Paragraph(
            f"The {len(rows)} vertices with the best links, of {len(sources)} in {file}.", note=True
        ),
    ]


def closing_note(trees: int, seed: int) -> Block:
    """Return how the results were computed."""
    return Paragraph(
        f"okforest {__version__}: {trees} trees, seed {seed}. A score is the inner product of two "
        "vertices in the feature space of a diffusion kernel, divided by the square roots of their "
        "norms.",
        note=True,
    )


def _curve(by_name: Mapping[str, Evaluation], name: str, words: str, kind: PairKind) -> Figure:
    def draw() -> "Drawing":
        drawing = new_figure((5.0, 4.6))
        plot_curves(by_name, name, kind, ax=drawing.subplots())  # type: ignore[arg-type]
        return drawing

    return Figure(name, f"{words}, mean over folds", draw)


def _draw_groups(groups: Mapping[str, Evaluation], kind: PairKind) -> "Drawing":
    drawing = new_figure((5.0, 0.9 + 0.4 * len(groups)))
    plot_groups(groups, kind=kind, ax=drawing.subplots())
    return drawing
