"""``okforest network``: results on a small network, and what it says about bad files."""

import re
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import okforest
from okforest.cli._app import app
from okforest.cli._files import clean_edges, group_columns
from reference.network import make_network

FAST = ("--trees", "5", "--folds", "2", "--jobs", "1")


@pytest.fixture
def files(tmp_path):
    """Write features and links; return the folder, the features and the links."""
    network = make_network()
    columns = ["a: one", "a: two", "a: three", "b: one", "b: two"]
    features = pd.DataFrame(network.X, index=network.names, columns=columns)
    features.iloc[::9, 3] = np.nan
    links = np.argwhere(np.triu(network.graph.toarray()))
    links = pd.DataFrame(network.names[links], columns=["from", "to"])
    features.to_csv(tmp_path / "features.csv")
    links.to_csv(tmp_path / "links.csv", index=False)
    return tmp_path, features, links


def run(*arguments, code=0):
    """Run the command; return what it says, on one line."""
    result = CliRunner().invoke(app, ["network", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return re.sub(r"\s+", " ", result.output)


def test_results(files):
    """Ranked links, curves, a model and a page; new vertices from a file of their own."""
    folder, features, links = files
    known, new = features.iloc[:50], features.iloc[50:]
    known.to_csv(folder / "known.csv")
    new.to_parquet(folder / "new.parquet")
    names = set(known.index)
    inside = links[links["from"].isin(names) & links["to"].isin(names)]
    inside.to_csv(folder / "inside.csv", index=False)
    out = folder / "out"
    said = run(
        folder / "known.csv", folder / "inside.csv", "--new", folder / "new.parquet", "--out", out,
        "--group-by", ":", "--top", "40", *FAST,
    )  # fmt: skip
    assert "summary.html" in said
    table = pd.read_csv(out / "links_new.csv")
    assert table.columns.tolist() == ["source", "target", "score", "kind"]
    assert len(table) == 40
    assert set(table["source"]) <= set(new.index)
    model = okforest.load(out / "model.okforest")
    expected = model.rank_links(new, top=40)
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
    """Numbers and signs in names stay as they are, and do no harm on the page; a tab separates."""
    network = make_network(40)
    names = [f"00{i}" for i in range(39)] + ["<b>&"]
    pd.DataFrame(network.X, index=names).to_csv(tmp_path / "f.tsv", sep="\t")
    lines = [f"{names[i]}\t{names[j]}" for i, j in np.argwhere(np.triu(network.graph.toarray()))]
    (tmp_path / "e.tsv").write_text("\n".join(lines) + "\n")  # no titles
    run(tmp_path / "f.tsv", tmp_path / "e.tsv", "--out", tmp_path, "--folds", "0", "--trees", "3",
        "--top", "5000")  # fmt: skip
    table = pd.read_csv(tmp_path / "links_missing.csv", dtype=str)
    assert set(table["source"]) | set(table["target"]) == set(names)
    assert len(table) == 40 * 39 // 2 - len(lines)
    page = (tmp_path / "summary.html").read_text()
    assert "<b>&" not in page
    assert not (tmp_path / "roc.png").exists()


def test_names_that_look_missing(tmp_path):
    """NA, nan and null are names; an empty cell is none."""
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
        ("v01,x", "names without a row of features (1): 'x'"),
        ("x,v01", "names without a row of features (1): 'x'"),
        ("v03,v03", "links 'v03' with itself"),
        ("x,x", "names without a row of features (1): 'x'"),
        ("v01,", "link with one name only, in row 1"),
    ],
)
def test_first_line_of_links(files, first, message):
    """It is a link, and as good as any other, if one of its names is known."""
    folder, _features, links = files
    text = links.to_csv(index=False, header=False)
    (folder / "links.csv").write_text(f"{first}\n{text}")
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    said = run(*paths, *FAST, code=2)
    assert message in said
    assert "titles" not in said
    (folder / "links.csv").write_text(f"x,y\n{text}")
    assert "the first line (x, y) was read as titles" in run(*paths, *FAST)
    model = okforest.load(folder / "out/model.okforest")
    assert model.adjacency_.nnz == 2 * len(links)
    links.to_parquet(folder / "links.parquet")
    assert "titles" not in run(paths[0], folder / "links.parquet", *paths[2:], *FAST)


def test_isolated_vertices(files):
    """They are an error, until it is said what they are."""
    folder, _features, links = files
    alone = "v00"
    links[(links["from"] != alone) & (links["to"] != alone)].to_csv(
        folder / "links.csv", index=False
    )
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    said = run(*paths, *FAST, code=2)
    assert "1 vertices have features but no link: 'v00'. Say --isolated new" in said
    run(*paths, "--isolated", "new", *FAST)
    table = pd.read_csv(folder / "out/links_new.csv")
    assert set(table["source"]) == {alone}
    run(*paths, "--isolated", "known", *FAST)
    assert not (folder / "out/links_new.csv").exists()


def test_results_of_an_earlier_run(files):
    """What this run does not write goes once it is done; other files stay."""
    folder, features, _links = files
    features[:3].set_axis(["x", "y", "z"]).to_csv(folder / "new.csv")
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    run(*paths, "--new", folder / "new.csv", "--group-by", ":", *FAST)
    written = {path.name for path in (folder / "out").iterdir()}
    assert {"links_new.csv", "groups.png", "roc.png", "pr.png"} <= written
    (folder / "out/notes.txt").write_text("mine")
    run(*paths, "--trees", "3", "--folds", "0")
    left = {path.name for path in (folder / "out").iterdir()}
    assert left == {"links_missing.csv", "model.okforest", "summary.html", "notes.txt"}


def bad_files():
    return {
        "unknown": ("v01,x\nv02,y\n", "names without a row of features (2): 'x', 'y'"),
        "loop": ("v01,v01\n", "links 'v01' with itself"),
        "duplicate": ("v02,v01\nv01,v02\n", "'v01' – 'v02' twice"),
        "half": ("v01,\n", "link with one name only, in row"),
    }


@pytest.mark.parametrize("case", bad_files())
def test_bad_edges(files, case):
    """Said in words, with the way out; ``--clean`` is that way."""
    folder, _features, links = files
    lines, message = bad_files()[case]
    if case == "duplicate":
        links = links[~((links["from"] == "v01") & (links["to"] == "v02"))]
    text = links.to_csv(index=False) + lines
    (folder / "links.csv").write_text(text)
    paths = folder / "features.csv", folder / "links.csv", "--out", folder / "out"
    said = run(*paths, *FAST, code=2)
    assert said.split(" was read as titles ")[-1].startswith("error: ")
    assert message in said
    if case != "half":
        assert "--clean" in said
        assert "left out" in run(*paths, "--clean", *FAST)


def test_clean_edges():
    edges = [("a", "b"), ("b", "a"), ("a", "a"), ("a", "x"), ("b", "c"), ("a", "b")]
    assert clean_edges(edges, set("abc")) == ([("a", "b"), ("b", "c")], 1, 1, 2)


def test_groups_of_columns():
    assert group_columns(["a: x", "b", "a:y"], ":") == {"a": ["a: x", "a:y"], "other": ["b"]}
    with pytest.raises(ValueError, match="columns such as 'all: x' are of a group named 'all'"):
        group_columns(["a: x", "all: x"], ":")


def test_bad_features(files):
    folder, features, _links = files
    out = ("--out", folder / "out", *FAST)
    edges = folder / "links.csv"
    assert "there is no file" in run(folder / "no.csv", edges, *out, code=2)
    pd.concat([features, features[:2]]).to_csv(folder / "twice.csv")
    said = run(folder / "twice.csv", edges, *out, code=2)
    assert "2 names more than once: 'v00', 'v01'" in said
    (folder / "empty.csv").write_text("")
    assert "is empty" in run(folder / "empty.csv", edges, *out, code=2)
    features.iloc[:, :0].to_csv(folder / "none.csv")
    assert "has 1 columns" in run(folder / "none.csv", edges, *out, code=2)
    features[:3].drop(columns="a: one").set_axis(["x", "y", "z"]).to_csv(folder / "new.csv")
    paths = folder / "features.csv", edges, "--new", folder / "new.csv"
    assert "lacks 1 columns" in run(*paths, *out, code=2)
    features[:3].to_csv(folder / "new.csv")
    assert "3 vertices that are known already" in run(*paths, *out, code=2)


def test_text_among_numbers(files):
    """One in a column of numbers is a mistake; a column of text is one of categories."""
    folder, features, _links = files
    features = features.astype(object)
    features["c"] = np.where(np.arange(60) % 2, "red", "7")
    paths = folder / "f.csv", folder / "links.csv", "--out", folder / "out", *FAST
    features.to_csv(paths[0])
    run(*paths)
    features.iloc[4, 3] = "n.d."
    features.to_csv(paths[0])
    said = run(*paths, code=2)
    assert "f.csv has 'n.d.' in column 'b: one', row 5 ('v04'), where 52 of 52 other" in said
    assert "Leave the cell empty" in said


def test_without_the_extra():
    """What to install is said where something is missing."""
    code = "import sys; sys.modules['typer'] = None; from okforest.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "pip install okforest[cli]" in result.stderr
