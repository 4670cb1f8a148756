"""The Python code of README.md, CONTRIBUTING.md and the guides runs and prints what they show."""

import json
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import okforest

make_figures = pytest.importorskip("make_figures", reason="docs/ is only in the source tree")
make_tables = pytest.importorskip("make_tables", reason="docs/ is only in the source tree")

DOCS = Path(make_figures.__file__).parent
RAW = "https://raw.githubusercontent.com/okforest/okforest/main/"
PAGES = [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs(page, tmp_path, monkeypatch, request):
    """Running the code of a page changes none of its text, at any time: everything is seeded.

    Blocks marked `no-run` are left out.
    """
    text = page.read_text()
    blocks = [example["code"] for example in make_figures.EXAMPLE.finditer(text)]
    assert len(blocks) == len(re.findall(r"```python(?! no-run\n)", text)), "a block is not run"
    if re.search(r"from okforest\.datasets import .*\b(fetch|load)_", "".join(blocks)):
        request.getfixturevalue("data_folder")  # skips without the data sets
    if "priors=" in "".join(blocks):
        pytest.importorskip("clarabel", reason="Clarabel is not installed")
    if "okforest.dask" in "".join(blocks):
        pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.chdir(tmp_path)
    before = np.random.get_state()  # noqa: NPY002 - random_state=None uses it
    with matplotlib.rc_context():
        assert make_figures.run(text, tmp_path) == text
    after = np.random.get_state()  # noqa: NPY002
    assert all(map(np.array_equal, before, after)), "an example is not seeded"
    assert all(figure.stat().st_size < 100_000 for figure in tmp_path.glob("images/*"))


def test_images_and_links_exist():
    """Every image and page that a page links to exists; every image is shown by a page."""
    targets = set()
    for page in PAGES:
        text = page.read_text().replace(RAW, "")  # PyPI shows no images with relative addresses
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
            targets.add((page.parent / target).resolve())
    assert targets >= {image.resolve() for image in (DOCS / "images").iterdir()}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_tables_are_those_of_the_results(page):
    """Tables that are marked as copies of results equal them."""
    text = page.read_text(encoding="utf-8")
    assert len(re.findall("<!-- table", text)) == len(make_tables.MARKED.findall(text))
    assert make_tables.fill(text) == text, "run make figures, or docs/make_tables.py"


# In the text of a guide, but not in its tables: published, computed from a formula, or rounded.
OTHER_FIGURES = {
    "hierarchies.md": {"0.255", "0.195"},
    "results_large_outputs.md": {"0.025"},
    "uncertainty.md": {"0.024", "0.027"},
}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_figures_in_the_text_are_those_of_the_tables(page):
    """A figure with three decimals is in a table of the page, or in what its code prints."""
    text = page.read_text(encoding="utf-8")
    if not make_tables.MARKED.search(text) or page.name == "reproduction.md":
        return
    shown = re.findall(r"^\|[^\n]*|```.*?```", text, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^\|[^\n]*|```.*?```|`[^`]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    figures = set(re.findall(r"(?<![\d.])\d\.\d{3,}", prose)) - OTHER_FIGURES.get(page.name, set())
    assert {figure for figure in figures if figure not in "\n".join(shown)} == set()


def test_emphasis():
    """The best number of a column is bold, by the word for the column; a missing table fails."""
    table = "| a | b | c |\n|---|---|---|\n| x | 1 | 5 |\n| y | 2 | 3 |\n"
    page = f"## Title, and more\n\nText.\n\n{table}\nMore text.\n"
    lines = make_tables.find(page, "Title")
    assert lines == table.splitlines()
    assert make_tables.emphasize(lines, ["max", "-"])[2:] == ["| x | 1 | 5 |", "| y | **2** | 3 |"]
    assert make_tables.emphasize(lines, ["-", "min"])[3] == "| y | 2 | **3** |"
    by_row = make_tables.emphasize(lines, ["rows", "max"])
    assert by_row[2:] == ["| x | 1 | **5** |", "| y | 2 | **3** |"]
    with pytest.raises(ValueError, match="the results have no heading 'Other'"):
        make_tables.find(page, "Other")


def test_compared_figures():
    """Figures on the page about scikit-learn and in README.md agree with the linked guides."""
    text = (DOCS / "okforest_or_scikit_learn.md").read_text(encoding="utf-8")
    found = 0
    for line in text.splitlines():
        guide = re.search(r"\]\((results_\w+\.md|\w+\.md(?=#results))", line)
        for figure in re.findall(r"0\.\d{3,4}", line) if guide else ():
            assert figure in (DOCS / guide[1]).read_text(encoding="utf-8"), (figure, guide[1])
            found += 1
    assert found > 10
    readme = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    linked = re.findall(r"\[([^][]*0\.\d{3}[^][]*)\]\(docs/(\w+\.md)#results\)", readme)
    assert linked
    for text, guide in linked:
        for figure in re.findall(r"0\.\d{3}", text):
            assert f" {figure} " in (DOCS / guide).read_text(encoding="utf-8").replace("*", "")


def test_web_service(tmp_path, monkeypatch):
    """The web service of the guide, which does not run there, predicts rows and refuses others."""
    fastapi = pytest.importorskip("fastapi", reason="FastAPI is not installed")
    text = (DOCS / "deployment.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python no-run\n(.*?)```", text, re.DOTALL)
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    okforest.save(okforest.OKTree().fit(rng.random((9, 3)), rng.random((9, 2))), "digits.okforest")
    service = {}
    exec(compile(code, "service.py", "exec"), service)
    assert len(service["predict"]([0.1, 0.2, 0.3])) == 2
    with pytest.raises(fastapi.HTTPException, match="1 features") as refused:
        service["predict"]([0.1])
    assert refused.value.status_code == 422


def test_figures_of_the_readme():
    """The results in README.md agree with the committed reports."""
    text = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    results = text.partition("## Results")[2]
    report = (DOCS / "reproduction" / "report.md").read_text(encoding="utf-8")
    losses = re.findall(r"\b\d\.\d{4}\b", results)
    assert len(losses) == 12
    assert all(loss in report for loss in losses)

    benchmarks = (DOCS.parent / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    rows = {}
    for line in benchmarks.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows.setdefault(tuple(cells[:2]) if cells[0] in ("RBF", "linear") else cells[0], cells)
    fit = rows["fit, 20 trees, N=5000, Nyström 256"]
    smaller = rows["fit, 20 trees, N=5000, Nyström 64"]
    predict = rows["predict 500 rows, 20 trees, N=5000, Nyström 256"]
    (ours, theirs), (r2, same) = fit[5].split(" / "), fit[6].split(" / ")
    assert float(same) - float(r2) < 0.01
    ratio = {
        name: float(rows[f"extra-trees, K=√p, 20 trees, {name}"][3].rstrip("×"))
        for name in ("N=800, 128 outputs", "N=5000, 1 output")
    }
    forest = float(rows["random forest, K=√p, 20 trees, N=5000, 1 output"][3].rstrip("×"))
    latency = float(rows["RBF", "2,000"][2].removesuffix(" ms"))
    expected = [
        f"fitted in {fit[1]}, without a Gram matrix.",
        f"takes {float(fit[3].rstrip('×')):.0f} times as long with the 256 components that give "
        f"the same R² of {float(r2):.2f}, and {theirs} on disk instead of {ours};",
        f"takes {float(smaller[3].rstrip('×')):.1f} times as long, for an R² of "
        f"{float(smaller[6].split(' / ')[1]):.2f}.",
        f"500 rows take {predict[2]} with 256 components, and {predict[1]} with okforest.",
        f"on the outputs takes {ratio['N=800, 128 outputs']:.0f} times as long; with a single "
        f"output {ratio['N=5000, 1 output']:.1f} times for extra-trees and {forest:.1f} times for "
        "random forests.",
        f"decoded in {latency:.1f} ms.",
    ]
    assert [sentence for sentence in expected if sentence not in results] == []
    page = " ".join((DOCS / "okforest_or_scikit_learn.md").read_text(encoding="utf-8").split())
    single = f"{ratio['N=5000, 1 output']:.1f} times as fast and random forests {forest:.1f} times"
    assert f"with one output extra-trees fit {single}" in page


def test_number_of_scripts():
    """README.md counts the scripts of the gallery."""
    scripts = list((DOCS.parent / "examples" / "gallery").glob("*/plot_*.py"))
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert f"{len(scripts)} scripts" in text


def test_figures_of_the_gpu(monkeypatch):
    """The page of results is written from its numbers, and README.md has one of them."""
    monkeypatch.syspath_prepend(DOCS.parent)
    from benchmarks import cuda_report

    text = (DOCS.parent / "benchmarks" / "CUDA.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert cuda_report.report(found) == (DOCS.parent / "benchmarks" / "CUDA.md").read_text()
    (tree,) = (
        r["ms"]
        for r in found["growth"]
        if (r["n"], r["rank"], r["K"]) == (1_000_000, 256, cuda_report.SQRT)
    )
    readme = " ".join((DOCS.parent / "README.md").read_text(encoding="utf-8").split())
    assert f"grows a full extra-tree on a million rows in {tree:.0f} ms" in readme
