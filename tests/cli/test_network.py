"""``okforest network``: results on a small network, and messages about mistakes in files."""

import re

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import okforest
from okforest._utils.report import Paragraph
from okforest.cli.app import app
from okforest.cli.network_page import Evaluations, evaluation_blocks
from okforest.cli.tables import as_numbers, clean_edges
from okforest.network import InputSimilarity, NetworkCompletion, cross_validate_links
from reference.network import make_network

FAST = ("--trees", "5", "--folds", "2", "--jobs", "1")


def run(*arguments, code=0):
    """Run the command and return its output on one line."""
    result = CliRunner().invoke(app, ["network", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return re.sub(r"\s+", " ", result.output)


def test_results(files):
    """Ranked links, curves, a model and a page; new vertices are in a separate file."""
    folder, features, links = files
    known, new = features.iloc[:50], features.iloc[50:]
    known.to_csv(folder / "known.csv")
    new.to_parquet(folder / "new.parquet")
    names = set(known.index)
    inside = links[links["from"].isin(names) & links["to"].isin(names)]
    inside.to_csv(folder / "inside.csv", index=False)
    out = folder / "out"
    output = run(
        folder / "known.csv", folder / "inside.csv", "--new", folder / "new.parquet", "--out", out,
        "--group-by", ":", "-k", "40", *FAST,
    )  # fmt: skip
    assert "summary.html" in output
    table = pd.read_csv(out / "links_new.csv")
    assert table.columns.tolist() == ["source", "target", "score", "kind"]
    assert len(table) == 40
    assert set(table["source"]) <= set(new.index)
    model = okforest.load(out / "model.okforest")
    expected = model.rank_links(new, k=40)
    assert table["target"].tolist() == expected["target"].tolist()
    missing = pd.read_csv(out / "links_missing.csv")
    pairs = {frozenset(pair) for pair in inside.to_numpy().tolist()}
    assert not any(frozenset(pair) in pairs for pair in missing[["source", "target"]].to_numpy())
    for figure in ("roc.png", "pr.png", "groups.png"):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")
    page = (out / "summary.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    for words in ("known vertices</td><td>50", "new vertices</td><td>10", table["source"][0]):
        assert words in page


def test_names_are_text(tmp_path):
    """Names that look like numbers or markup do not change; tabs are separators."""
    network = make_network(40)
    names = [f"00{i}" for i in range(39)] + ["<b>&"]
    pd.DataFrame(network.X, index=names).to_csv(tmp_path / "f.tsv", sep="\t")
    lines = [f"{names[i]}\t{names[j]}" for i, j in np.argwhere(np.triu(network.graph.toarray()))]
    (tmp_path / "e.tsv").write_text("\n".join(lines) + "\n")  # no header
    run(tmp_path / "f.tsv", tmp_path / "e.tsv", "--out", tmp_path, "--folds", "0", "--trees", "3",
        "-k", "5000")  # fmt: skip
    table = pd.read_csv(tmp_path / "links_missing.csv", dtype=str)
    assert set(table["source"]) | set(table["target"]) == set(names)
    assert len(table) == 40 * 39 // 2 - len(lines)
    page = (tmp_path / "summary.html").read_text()
    assert "<b>&" not in page
    assert not (tmp_path / "roc.png").exists()


def test_names_that_look_missing(tmp_path):
    """NA, nan and null are names; an empty cell is not."""
    network = make_network(40)
    names = ["NA", "nan", "null", *(f"v{i}" for i in range(37))]
    features = pd.DataFrame(network.X, index=names)
    features.to_csv(tmp_path / "f.csv")
    links = np.array(names)[np.argwhere(np.triu(network.graph.toarray()))]
    pd.DataFrame(links).to_csv(tmp_path / "e.csv", index=False, header=False)
    paths = tmp_path / "f.csv", tmp_path / "e.csv", "--out", tmp_path / "out"
    run(*paths, "--folds", "0", "--trees", "3")
    model = okforest.load(tmp_path / "out/model.okforest")
    assert model.names_.tolist() == names
    assert model.adjacency_.nnz == network.graph.nnz
    features.set_axis(["", *names[1:]]).to_csv(tmp_path / "f.csv")
    assert "no name in row 1" in run(*paths, code=2)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("v01,x", "names without features (1): 'x'"),
        ("x,v01", "names without features (1): 'x'"),
        ("v03,v03", "links 'v03' with itself"),
        ("x,x", "names without features (1): 'x'"),
        ("v01,", "link with one name only, in row 1"),
    ],
)
def test_first_line_of_links(files, first, message):
    """The first line is a link if one of its names is known, and a header otherwise."""
    folder, _features, links = files
    text = links.to_csv(index=False, header=False)
    (folder / "links.csv").write_text(f"{first}\n{text}")
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    output = run(*paths, *FAST, code=2)
    assert message in output
    assert "header" not in output
    (folder / "links.csv").write_text(f"x,y\n{text}")
    assert "the first line ('x', 'y') was read as a header" in run(*paths, *FAST)
    model = okforest.load(folder / "out/model.okforest")
    assert model.adjacency_.nnz == 2 * len(links)
    links.to_parquet(folder / "links.parquet")
    assert "header" not in run(paths[0], folder / "links.parquet", *paths[2:], *FAST)


def test_isolated_vertices(files):
    """Vertices without links are an error unless an option states how to treat them."""
    folder, _features, links = files
    alone = "v00"
    links[(links["from"] != alone) & (links["to"] != alone)].to_csv(
        folder / "links.csv", index=False
    )
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    output = run(*paths, *FAST, code=2)
    assert "vertices have features but no link (1): 'v00'. Use --isolated new" in output
    run(*paths, "--isolated", "new", *FAST)
    table = pd.read_csv(folder / "out/links_new.csv")
    assert set(table["source"]) == {alone}
    run(*paths, "--isolated", "known", *FAST)
    assert not (folder / "out/links_new.csv").exists()


def test_results_of_an_earlier_run(files):
    """Results that this run does not write are removed at its end; other files are kept."""
    folder, features, _links = files
    features[:3].set_axis(["x", "y", "z"]).to_csv(folder / "new.csv")
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    run(*paths, "--new", folder / "new.csv", "--group-by", ":", *FAST)
    written = {path.name for path in (folder / "out").iterdir()}
    assert {"links_new.csv", "groups.png", "roc.png", "pr.png"} <= written
    assert {"links_new_per_vertex.csv", "links_missing_per_vertex.csv"} <= written
    (folder / "out/notes.txt").write_text("mine")
    run(*paths, "--trees", "3", "--folds", "0", "--per-vertex", "0")
    left = {path.name for path in (folder / "out").iterdir()}
    assert left == {"links_missing.csv", "model.okforest", "summary.html", "notes.txt"}


def bad_files():
    return {
        "unknown": ("v01,x\nv02,y\n", "names without features (2): 'x', 'y'"),
        "loop": ("v01,v01\n", "links 'v01' with itself"),
        "duplicate": ("v02,v01\nv01,v02\n", "'v01' – 'v02' twice"),
        "half": ("v01,\n", "link with one name only, in row"),
    }


@pytest.mark.parametrize("case", bad_files())
def test_bad_edges(files, case):
    """The error names the mistake; ``--clean`` ignores it."""
    folder, _features, links = files
    lines, message = bad_files()[case]
    if case == "duplicate":
        links = links[~((links["from"] == "v01") & (links["to"] == "v02"))]
    text = links.to_csv(index=False) + lines
    (folder / "links.csv").write_text(text)
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    output = run(*paths, *FAST, code=2)
    assert output.split(" was read as a header ")[-1].startswith("error: ")
    assert message in output
    if case != "half":
        assert "--clean" in output
        assert "ignored" in run(*paths, "--clean", *FAST)


def test_clean_edges():
    edges = [("a", "b"), ("b", "a"), ("a", "a"), ("a", "x"), ("b", "c"), ("a", "b")]
    assert clean_edges(edges, set("abc")) == ([("a", "b"), ("b", "c")], 1, 1, 2)


def test_several_files(files):
    """Features in several files, and new vertices in several files, are joined by name."""
    folder, features, links = files
    for name, part in (("a", features.iloc[:, :3]), ("b", features.iloc[::-1, 3:])):
        part.loc[part.index < "v50"].to_csv(folder / f"{name}.csv")
        part.loc[part.index >= "v50"].to_csv(folder / f"{name}_new.csv")
    links[(links < "v50").all(axis=1)].to_csv(folder / "inside.csv", index=False)
    run(folder / "a.csv", folder / "b.csv", folder / "inside.csv", "--new", folder / "a_new.csv",
        "--new", folder / "b_new.csv", "--out", folder / "out", *FAST)  # fmt: skip
    model = okforest.load(folder / "out/model.okforest")
    assert model.model_.feature_names_in_.tolist() == features.columns.tolist()
    expected = model.rank_links(features[features.index >= "v50"])
    table = pd.read_csv(folder / "out/links_new.csv")[:100]
    assert table["target"].tolist() == expected["target"].tolist()


def test_links_of_each_vertex(files):
    """Vertices with the best links come first, in files and on the page; terms are explained."""
    folder, features, _links = files
    new = features[:12].set_axis([f"n{i:02d}" for i in range(12)])
    new.to_csv(folder / "new.csv")
    run(folder / "features.csv", folder / "links.csv", "--new", folder / "new.csv", "--out",
        folder / "out", "--per-vertex", "3", *FAST)  # fmt: skip
    table = pd.read_csv(folder / "out/links_new_per_vertex.csv")
    model = okforest.load(folder / "out/model.okforest")
    expected = pd.DataFrame(model.rank_links(new, k=3, per_vertex=True))
    links = expected.groupby("source")
    order = links["score"].max().sort_values(ascending=False, kind="stable").index
    assert table["source"].tolist() == np.repeat(order, 3).tolist()
    for name, part in table.groupby("source"):
        assert part["target"].tolist() == links.get_group(name)["target"].tolist()
    missing = pd.read_csv(folder / "out/links_missing_per_vertex.csv")
    assert missing.groupby("source").size().tolist() == [3] * 60
    page = (folder / "out/summary.html").read_text()
    first = table[:3].itertuples(index=False)
    partners = "; ".join(f"{link.target} ({link.score:.3f})" for link in first)
    best = f"{table['score'][0]:.4f}"
    assert f"<tbody><tr><td>{order[0]}</td><td>{best}</td><td>{partners}</td>" in page
    for term in ("known vertex", "new vertex", "score", "AUC", "AUPR", "precision at k"):
        assert f"<tr><td>{term}</td><td>" in page


def quality_of(folder):
    """Return the rows of the table of scores: kind of pair, method, AUC and AUPR."""
    page = (folder / "out/summary.html").read_text()
    table = re.search("<tr><th>pairs</th>.*?</table>", page).group()
    rows = re.findall("<tr><td>(.*?)</td></tr>", table)
    return page, [row.split("</td><td>")[:4] for row in rows]


def test_what_is_listed_is_evaluated(files):
    """Deleted links, and with new vertices all kinds of pairs, beside the baseline."""
    folder, features, links = files
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    run(*paths, "--trees", "20", "--folds", "3", "--group-by", ":")
    page, rows = quality_of(folder)
    methods = ["network completion", "similarity of features (baseline)"]
    assert [row[:2] for row in rows] == [["known–known", method] for method in methods]
    options = {"cv": 3, "deleted": 0.2}
    forest = okforest.load(folder / "out/model.okforest").estimator
    for row, model, X in (
        (rows[0], NetworkCompletion(forest), features),
        (rows[1], InputSimilarity(), as_numbers(features)),
    ):
        scores = cross_validate_links(model, X, links, **options).kinds["known-known"]
        assert row[2] == f"{scores.auc.mean():.3f} ± {scores.auc.std():.3f}"
        assert row[3] == f"{scores.aupr.mean():.3f} ± {scores.aupr.std():.3f}"
    assert "On known–known pairs, network completion is" in page
    assert "20% of the links between the others are deleted" in page
    features[:3].set_axis(["x", "y", "z"]).to_csv(folder / "new.csv")
    run(*paths, "--new", folder / "new.csv", *FAST)
    page, rows = quality_of(folder)
    kinds = ["known–new", "new–new", "at least one new", "known–known"]
    assert [row[:2] for row in rows] == [[kind, method] for kind in kinds for method in methods]
    assert "seen" not in re.sub("<img[^>]*>|<script.*</script>", "", page)


def test_verdict_on_the_baseline():
    """The page states where the baseline is better, and where there is no clear difference."""
    network = make_network(80)
    noise = np.random.default_rng(0).normal(size=(80, 5))
    options = {"cv": 5, "deleted": 0.2}
    model = NetworkCompletion(okforest.OKExtraTrees(20, random_state=0))
    by_features = cross_validate_links(model, network.X, network.graph, **options)
    by_noise = cross_validate_links(InputSimilarity(), noise, network.graph, **options)

    def verdict(model, baseline):
        results = Evaluations(model, baseline, {})
        blocks = evaluation_blocks(results, with_new=False, folds=5, deleted=0.2)
        return [block.text for block in blocks if isinstance(block, Paragraph)][-1]

    assert "is better than the baseline (AUPR" in verdict(by_features, by_noise)
    worse = verdict(by_noise, by_features)
    assert "is worse than the baseline" in worse
    assert "prefer a ranking by the similarity of features" in worse
    assert "is not clearly better than the baseline" in verdict(by_noise, by_noise)


def test_too_few_links_to_evaluate(tmp_path):
    """With two links, none can be deleted; the page says that there is no evaluation."""
    pd.DataFrame({"x": range(8)}, index=[f"v{i}" for i in range(8)]).to_csv(tmp_path / "f.csv")
    (tmp_path / "e.csv").write_text("v0,v1\nv2,v3\n")
    paths = tmp_path / "f.csv", tmp_path / "e.csv", "--out", tmp_path / "out"
    run(*paths, "--isolated", "known", "--trees", "3", "--folds", "8", "--jobs", "1")
    page = (tmp_path / "out/summary.html").read_text()
    assert "too few links to evaluate" in page
    assert not (tmp_path / "out/roc.png").exists()


def test_features_of_the_baseline():
    """Categories become columns, and no column dominates by its unit; missing values stay."""
    table = pd.DataFrame({"x": [2.0, -4.0, np.nan], "y": [0, 0, 0], "z": ["a", "b", None]})
    numbers = as_numbers(table)
    assert numbers.columns.tolist() == ["x", "y", "z_a", "z_b"]
    expected = [[0.5, 0, 1, 0], [-1, 0, 0, 1], [np.nan, 0, 0, 0]]
    np.testing.assert_array_equal(numbers, expected)


def test_terms_of_the_evaluation(files):
    """Terms that the page does not use are not explained."""
    folder, _features, _links = files
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    run(*paths, "--trees", "3", "--folds", "0")
    page = (folder / "out/summary.html").read_text()
    assert "AUC" not in page
    assert "<tr><td>score</td>" in page


def test_markup_in_names(files):
    """Names are never markup: in the console, on the page and in spreadsheets."""
    folder, features, links = files
    names = {"v00": "<b>x</b>", "v01": "=1+1", "v02": "[red]y[/red]", "v03": "a|b & c", "v04": "-5"}
    features.rename(names).rename(columns={"a: one": "<i>: $one$"}).to_csv(folder / "features.csv")
    links.replace(names).to_csv(folder / "links.csv", index=False)
    out = folder / "[bold]out"
    paths = folder / "features.csv", folder / "links.csv", "--out", out
    output = run(*paths, "--group-by", ":", "-k", "5000", *FAST)
    assert f"the results are in {out}: open {out}/summary.html" in output
    table = pd.read_csv(out / "links_missing.csv", dtype=str)
    written = {*table["source"], *table["target"]}
    assert {"<b>x</b>", "'=1+1", "[red]y[/red]", "a|b & c", "-5"} <= written
    page = (out / "summary.html").read_text()
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "a|b &amp; c" in page
    assert "[red]y[/red]" in page
    assert not re.search("<b>|<i>|& ", page)
    with open(folder / "links.csv", "a") as file:
        file.write("[red]z,v05\n")
    assert "names without features (1): '[red]z'" in run(*paths, *FAST, code=2)


def test_columns_that_are_empty_for_new_vertices(files):
    """Features that are missing for all new vertices are missing values, not missing columns."""
    folder, features, _links = files
    new = features[:3].set_axis(["x", "y", "z"])
    new["b: two"] = np.nan
    new.to_csv(folder / "new.csv")
    features["empty"] = np.nan
    features.to_csv(folder / "features.csv")
    output = run(folder / "features.csv", folder / "links.csv", "--new", folder / "new.csv",
                 "--out", folder / "out", *FAST)  # fmt: skip
    assert "left out columns without values (1): 'empty'" in output
    assert (folder / "out/links_new.csv").exists()


def test_bad_arguments(files):
    """Errors name the file or the option, without a traceback."""
    folder, features, links = files
    edges, out = folder / "links.csv", ("--out", folder / "out", *FAST)
    paths = folder / "features.csv", edges
    assert "does not exist" in run(folder / "no.csv", edges, *out, code=2)
    (folder / "bad.csv.gz").write_bytes(b"not compressed")
    for bad in ((folder / "bad.csv.gz", edges), (paths[0], folder / "bad.csv.gz")):
        assert "bad.csv.gz is damaged or incomplete" in run(*bad, *out, code=2)
    (folder / "single.csv").write_text("v01\nv02\n")
    output = run(paths[0], folder / "single.csv", *out, code=2)
    assert "single.csv has a single column; an edge list has the two names" in output
    links[:0].to_csv(edges, index=False)
    assert "links.csv has no links between vertices" in run(*paths, *out, code=2)
    links.to_csv(edges, index=False)
    assert "--jobs is 0; use a positive" in run(*paths, *out, "--jobs", "0", code=2)
    output = run(*paths, *FAST, "--out", edges / "out", code=2)
    assert "choose another folder with --out" in output
    features[:3].to_csv(folder / "new.csv")
    output = run(*paths, "--new", folder / "new.csv", *out, code=2)
    assert "vertices are both new and known (3)" in output
    assert "Missing argument" in run(paths[0], code=2)
