"""``okforest network``: from features and an edge list to ranked links, curves and a page."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from okforest._utils.report import Block, save_figures, to_html
from okforest.cli.console import (
    Jobs,
    Out,
    Seed,
    check_jobs,
    console,
    make_writable,
    plain_errors,
    print_message,
    progress,
)

if TYPE_CHECKING:
    import pandas as pd
    import scipy.sparse as sp

    from okforest.cli.network_page import Evaluations
    from okforest.cli.tables import Edges
    from okforest.network import NetworkCompletion

DELETED = 0.2  # share of the links between known vertices that the evaluation deletes


class Isolated(StrEnum):
    """How to treat vertices without links."""

    error = "error"
    new = "new"
    known = "known"


class NetworkData(NamedTuple):
    """The features of known vertices, the links between them, and the features of new ones."""

    features: "pd.DataFrame"
    adjacency: "sp.csr_array"
    new: "pd.DataFrame | None"


def network(
    features: Annotated[
        list[Path],
        typer.Argument(
            metavar="FEATURES",
            help="Features of the vertices (CSV, TSV, Parquet), with names in the first column. "
            "Several files are joined by name.",
        ),
    ],
    links: Annotated[
        Path,
        typer.Argument(metavar="LINKS", help="Known links, the last file: two names in each line."),
    ],
    new: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Features of new vertices, whose links are to be predicted. Repeat the option "
            "for several files.",
        ),
    ] = None,
    out: Out = Path("okforest-network"),
    isolated: Annotated[
        Isolated,
        typer.Option(
            help="How to treat a vertex without links: raise an error, count it as new (its links "
            "are predicted), or as known to have none."
        ),
    ] = Isolated.error,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Ignore loops, duplicates and links of names without features."
        ),
    ] = False,
    group_by: Annotated[
        str | None,
        typer.Option(
            help="Compare groups of features, named by the part of the column names before this "
            "text."
        ),
    ] = None,
    trees: Annotated[int, typer.Option(min=1, help="Number of trees.")] = 100,
    folds: Annotated[
        int, typer.Option(min=0, help="Folds of cross-validation; 0 for no evaluation.")
    ] = 10,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of links to write.")] = 1000,
    per_vertex: Annotated[
        int, typer.Option(min=0, help="Number of links to write for each vertex; 0 for none.")
    ] = 10,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Predict the links of a network from the features of its vertices.

    Writes ranked links (CSV), curves of cross-validation (PNG), the model, and summary.html.
    """
    with plain_errors():
        from sklearn.base import clone

        from okforest.cli import network_page as page
        from okforest.cli.tables import group_columns
        from okforest.network import NetworkCompletion
        from okforest.network.links import DEFAULT
        from okforest.persistence import save

        check_jobs(jobs)
        data = _read_data(features, links, new or [], isolated, clean)
        groups = group_columns(list(data.features), group_by) if group_by else {}
        make_writable(out, "--out")
        forest = clone(DEFAULT).set_params(n_estimators=trees, random_state=seed, n_jobs=jobs)
        model = NetworkCompletion(forest)
        blocks: list[Block] = [page.overview(*data, evaluated=folds > 0)]
        if folds:
            results = _evaluate(model, data, groups, folds, seed)
            blocks += page.evaluation_blocks(results, data.new is not None, folds, DELETED)
        with console.status("growing the forest"):
            model.fit(data.features, data.adjacency)
        save(model, out / "model.okforest")
        blocks += page.importance_blocks(model, groups)
        if data.new is not None:
            blocks += _rank(model, data.new, k, per_vertex, out)
        blocks += _rank(model, None, k, per_vertex, out)
        blocks.append(page.closing_note(trees, seed))
        _remove_old_files(out, data.new is not None, per_vertex)
        save_figures(blocks, out, ["png"])
        text = to_html(f"Predicted links of {links.name}", blocks, out)
        (out / "summary.html").write_text(text, encoding="utf-8")
    print_message(f"the results are in {out}: open {out / 'summary.html'}")


def _read_data(
    features: list[Path], links: Path, new: list[Path], isolated: Isolated, clean: bool
) -> NetworkData:
    import pandas as pd

    from okforest.cli.tables import drop_empty_columns, match_columns, read_features
    from okforest.network.graphs import list_names, read_edges

    known = drop_empty_columns(read_features(features))
    pairs = _read_links(links, known, clean)
    new_features = match_columns(read_features(new), known) if new else None
    if not pairs:
        raise ValueError(f"{links} has no links between vertices with features; add some.")
    linked = {name for pair in pairs for name in pair}
    alone = [name for name in known.index if name not in linked]
    if alone and isolated is Isolated.error:
        raise ValueError(
            f"vertices have features but no link ({len(alone)}): {list_names(alone)}. Use "
            "--isolated new to predict their links, or --isolated known if they have none."
        )
    if alone and isolated is Isolated.new:
        rows = known.loc[alone]
        known = known.drop(index=alone)
        new_features = rows if new_features is None else pd.concat([new_features, rows])
    return NetworkData(known, read_edges(pairs, known.index.to_numpy()), new_features)


def _read_links(path: Path, features: "pd.DataFrame", clean: bool) -> "Edges":
    from okforest.cli.tables import clean_edges, read_edge_list
    from okforest.network.graphs import read_edges

    names = set(features.index)
    pairs = read_edge_list(path, names)
    if clean:
        cleaned = clean_edges(pairs, names)
        print_message(
            f"ignored {cleaned.unknown} links of names without features, {cleaned.loops} loops and "
            f"{cleaned.duplicates} duplicates"
        )
        return cleaned.edges
    try:
        read_edges(pairs, features.index.to_numpy())
    except ValueError as error:
        raise ValueError(f"{path}: {error} Or use --clean to ignore them.") from None
    return pairs


def _evaluate(
    model: "NetworkCompletion",
    data: NetworkData,
    groups: dict[str, list[str]],
    folds: int,
    seed: int,
) -> "Evaluations":
    """Cross-validate the model, the baseline, and the model on each group if there are several."""
    from okforest.cli.network_page import Evaluations
    from okforest.cli.tables import as_numbers
    from okforest.network import InputSimilarity, compare_groups, cross_validate_links

    several = groups if len(groups) > 1 else {}
    done = 0
    with progress("cross-validating", folds * (2 + len(several))) as update:

        def count(_fold: int) -> None:
            nonlocal done
            done += 1
            update(done)

        options: dict[str, Any] = {"cv": folds, "deleted": DELETED, "random_state": seed}
        options["callback"] = count
        by_model = cross_validate_links(model, data.features, data.adjacency, **options)
        numbers = as_numbers(data.features)
        baseline = cross_validate_links(InputSimilarity(), numbers, data.adjacency, **options)
        by_group = {}
        if several:
            by_group = compare_groups(
                model, data.features, data.adjacency, several, all_features=False, **options
            )
    return Evaluations(by_model, baseline, by_group)


def _rank(
    model: "NetworkCompletion", new: "pd.DataFrame | None", k: int, per_vertex: int, out: Path
) -> list[Block]:
    """Write the ranked links, and return them for the page."""
    import pandas as pd

    from okforest.cli.network_page import link_blocks
    from okforest.cli.tables import write_csv

    stem = "links_missing" if new is None else "links_new"
    overall = pd.DataFrame(model.rank_links(new, k=k))
    write_csv(overall, out / f"{stem}.csv")
    by_vertex = None
    if per_vertex:
        by_vertex = pd.DataFrame(model.rank_links(new, k=per_vertex, per_vertex=True))
        best = by_vertex.groupby("source", sort=False)["score"].transform("max")
        order = best.sort_values(ascending=False, kind="stable").index
        by_vertex = by_vertex.loc[order]
        write_csv(by_vertex, out / f"{stem}_per_vertex.csv")
    return link_blocks(overall, by_vertex, stem)


def _remove_old_files(out: Path, new: bool, per_vertex: int) -> None:
    """Remove the files of an earlier run that this one has not written, and all figures."""
    written = {
        "links_new.csv": new,
        "links_new_per_vertex.csv": new and per_vertex,
        "links_missing_per_vertex.csv": per_vertex,
        "roc.png": False,
        "pr.png": False,
        "groups.png": False,
    }
    for name, is_current in written.items():
        if not is_current:
            (out / name).unlink(missing_ok=True)
