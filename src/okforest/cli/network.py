"""``okforest network``: from features and an edge list to ranked links, curves and a page."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.base import clone

from okforest import __version__, save
from okforest.cli._console import console, plain_errors
from okforest.cli._files import (
    check_columns,
    clean_edges,
    group_columns,
    read_edge_list,
    read_features,
)
from okforest.cli._page import Page
from okforest.network import (
    NetworkCompletion,
    compare_groups,
    cross_validate_links,
    group_importances,
    plot_curves,
    plot_groups,
)
from okforest.network._graphs import read_edges, shown
from okforest.network._models import DEFAULT

SHOWN = 25  # links on the page
KIND_WORDS = {
    "seen-unseen": "a new vertex with a known one",
    "unseen-unseen": "two new vertices",
    "with-unseen": "at least one new vertex",
}


class Isolated(StrEnum):
    """What vertices without links are."""

    error = "error"
    new = "new"
    known = "known"


def network(
    features: Annotated[
        Path,
        typer.Argument(help="Features of vertices (CSV, TSV, Parquet), names in the first column."),
    ],
    edges: Annotated[Path, typer.Argument(help="Known links: two names in each line.")],
    new: Annotated[
        Path | None, typer.Option(help="Features of new vertices, whose links are wanted.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("okforest-network"),
    isolated: Annotated[
        Isolated,
        typer.Option(
            help="What a vertex without links is: a mistake, new (its links are unknown), or "
            "known to have none."
        ),
    ] = Isolated.error,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Leave out loops, duplicates and links of names without features."
        ),
    ] = False,
    group_by: Annotated[
        str | None,
        typer.Option(
            help="Compare groups of features: what is before this text in names of columns."
        ),
    ] = None,
    trees: Annotated[int, typer.Option(min=1, help="Trees of the forest.")] = 100,
    folds: Annotated[
        int, typer.Option(min=0, help="Folds of cross-validation; 0 for no evaluation.")
    ] = 10,
    top: Annotated[int, typer.Option(min=1, help="How many links to write.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for all cores.")] = -1,
) -> None:
    """Predict links of a network from features of its vertices.

    Writes ranked links (CSV), curves of cross-validation (PNG), the model, and summary.html.
    """
    with plain_errors():
        table = read_features(features)
        pairs = _links(edges, table, clean)
        unseen = None if new is None else check_columns(read_features(new), table, new)
        table, unseen = _settle_isolated(table, pairs, unseen, isolated)
        adjacency = read_edges(pairs, table.index.to_numpy())
        forest = clone(DEFAULT).set_params(n_estimators=trees, random_state=seed, n_jobs=jobs)
        model = NetworkCompletion(forest)
        groups = group_columns(list(table), group_by) if group_by else {}
        out.mkdir(parents=True, exist_ok=True)
        page = Page(f"Links of {edges.name}")
        degrees = np.asarray((adjacency > 0).sum(axis=0)).ravel()
        page.table(
            ["", ""],
            [
                ("known vertices", len(table)),
                ("links", len(pairs)),
                ("vertices without links", int((degrees == 0).sum())),
                ("features", table.shape[1]),
                ("missing values", f"{table.isna().to_numpy().mean():.1%}"),
                ("new vertices", 0 if unseen is None else len(unseen)),
            ],
        )
        if folds:
            _evaluate(model, table, adjacency, groups, folds, seed, out, page)
        with console.status("growing the forest"):
            model.fit(table, adjacency)
        save(model, out / "model.okforest")
        _importances(model, groups, page)
        if unseen is not None:
            _rank(model.rank_links(unseen, top=top), "links_new.csv", "New vertices", out, page)
        _rank(model.rank_links(top=top), "links_missing.csv", "Known vertices", out, page)
        page.paragraph(
            f"okforest {__version__}: {trees} trees, seed {seed}. Scores are inner products in the "
            "space of a diffusion kernel, divided by the roots of lengths; they rank pairs of a "
            "kind, and are no probabilities.",
            note=True,
        )
        page.write(out / "summary.html")
        made = {
            "links_new.csv": unseen is not None,
            "roc.png": folds > 0,
            "pr.png": folds > 0,
            "groups.png": folds > 0 and len(groups) > 1,
        }
        for name in made:
            if not made[name]:  # what is there is of an earlier run
                (out / name).unlink(missing_ok=True)
    console.print(f"results are in {out}: open [bold]{out / 'summary.html'}[/bold]")


def _links(path: Path, table: pd.DataFrame, clean: bool) -> list[tuple[str, str]]:
    names = set(table.index)
    pairs = read_edge_list(path, names)
    if clean:
        cleaned = clean_edges(pairs, names)
        console.print(
            f"left out {cleaned.unknown} links of names without features, {cleaned.loops} loops "
            f"and {cleaned.duplicates} duplicates"
        )
        return cleaned.edges
    try:
        read_edges(pairs, table.index.to_numpy())
    except ValueError as error:
        raise ValueError(f"{path}: {error} (Or use --clean.)") from None
    return pairs


def _settle_isolated(
    table: pd.DataFrame, pairs: list[tuple[str, str]], unseen: Any, isolated: Isolated
) -> tuple[pd.DataFrame, Any]:
    """Return the known vertices and the new ones, those without links where they belong."""
    if not pairs:
        raise ValueError("there are no links among the vertices; there is nothing to learn from.")
    linked = {name for pair in pairs for name in pair}
    alone = [name for name in table.index if name not in linked]
    if not alone or isolated is Isolated.known:
        return table, unseen
    if isolated is Isolated.error:
        raise ValueError(
            f"{len(alone)} vertices have features but no link: {shown(alone)}. Say --isolated new "
            "if their links are wanted, --isolated known if they have none."
        )
    rows = table.loc[alone]
    return table.drop(index=alone), rows if unseen is None else pd.concat([unseen, rows])


def _evaluate(
    model: NetworkCompletion,
    table: pd.DataFrame,
    adjacency: Any,
    groups: dict[str, list[str]],
    folds: int,
    seed: int,
    out: Path,
    page: Page,
) -> None:
    """Cross-validate; draw curves, and groups of features if there are several."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    several = len(groups) > 1
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        total = folds * (1 + len(groups) if several else 1)
        task = progress.add_task("cross-validating", total=total)
        options: dict[str, Any] = {"cv": folds, "random_state": seed}
        options["callback"] = lambda done: progress.advance(task)
        result = cross_validate_links(model, table, adjacency, **options)
        compared = {}
        if several:
            compared = compare_groups(
                model, table, adjacency, groups, all_features=False, **options
            )
    page.heading("How good predictions are")
    page.paragraph(
        f"{folds}-fold cross-validation over vertices: links of a vertex that is held out are "
        "unknown to the model. Means over folds, with standard deviations."
    )
    rows = []
    for kind, scores in result.kinds.items():
        areas = (f"{np.nanmean(a):.3f} ± {np.nanstd(a):.3f}" for a in (scores.auc, scores.aupr))
        best = (f"{np.nanmean(values):.2f}" for values in scores.precision.values())
        chance = scores.n_links.sum() / scores.n_pairs.sum()
        rows.append((KIND_WORDS[kind], *areas, *best, f"{chance:.4f}"))
    ks = [f"precision at {k}" for k in scores.precision]
    page.table(["pairs", "AUC", "AUPR", *ks, "share of links"], rows)
    named = {"extra-trees": result}
    for curve, words in (("roc", "ROC curve"), ("pr", "precision–recall curve")):
        _save(plot_curves(named, curve), out / f"{curve}.png")  # type: ignore[arg-type]
        page.figure(out / f"{curve}.png", f"{words}, averaged over folds")
    if several:
        page.heading("Groups of features")
        _save(plot_groups(compared | {"all": result}), out / "groups.png")
        page.figure(out / "groups.png", "AUC by group of features")


def _importances(model: NetworkCompletion, groups: dict[str, list[str]], page: Page) -> None:
    page.heading("Features that matter")
    page.paragraph("Shares of the variance reduction of the forest.")
    if len(groups) > 1:
        shares = group_importances(model, groups)
        page.table(["group", "share"], [(name, f"{s:.1%}") for name, s in shares.items()])
    shares = group_importances(model, {name: [name] for name in model.model_.feature_names_in_})
    rows = [(name, f"{share:.1%}") for name, share in list(shares.items())[:15]]
    page.table(["feature", "share"], rows)


def _rank(links: Any, name: str, title: str, out: Path, page: Page) -> None:
    frame = pd.DataFrame(links)
    frame.to_csv(out / name, index=False)
    page.heading(f"{title}: most likely links")
    rows = [
        (*row[:2], f"{row.score:.4f}", row.kind) for row in frame[:SHOWN].itertuples(index=False)
    ]
    page.table(["", "", "score", "kind of pair"], rows, text=True)
    page.paragraph(f"{len(frame)} of them are in {name}.", note=True)


def _save(ax: Any, path: Path) -> None:
    ax.figure.savefig(path, dpi=110, metadata={"Software": None})
    import matplotlib.pyplot as plt

    plt.close(ax.figure)
