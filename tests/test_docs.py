"""The Python code of README.md, CONTRIBUTING.md and the guides runs and prints what they show."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest

make_figures = pytest.importorskip("make_figures", reason="docs/ is only in the source tree")
make_tables = pytest.importorskip("make_tables", reason="docs/ is only in the source tree")

DOCS = Path(make_figures.__file__).parent
PAGES = [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs(page, tmp_path, monkeypatch, request):
    """Running the code of a page changes none of its text, at any time: everything is seeded.

    Blocks marked `no-run` are left out.
    """
    text = page.read_text()
    blocks = [example["code"] for example in make_figures.EXAMPLE.finditer(text)]
    assert len(blocks) == len(re.findall(r"```python(?! no-run\n)", text)), "a block is not run"
    if "fetch_" in "".join(blocks):
        request.getfixturevalue("data_folder")  # skips without the data sets
    if "priors=" in "".join(blocks):
        pytest.importorskip("clarabel", reason="Clarabel is not installed")
    if "okforest.dask" in "".join(blocks):
        pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.chdir(tmp_path)
    before = np.random.get_state()  # noqa: NPY002 - that of random_state=None
    with matplotlib.rc_context():
        assert make_figures.run(text, tmp_path) == text
    after = np.random.get_state()  # noqa: NPY002
    assert all(map(np.array_equal, before, after)), "an example is not seeded"
    assert all(figure.stat().st_size < 100_000 for figure in tmp_path.glob("images/*"))


def test_images_and_links_exist():
    """Every image and page that a page links to exists; every image is shown by a page."""
    targets = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
            targets.add((page.parent / target).resolve())
    assert targets >= {image.resolve() for image in (DOCS / "images").iterdir()}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_tables_are_those_of_the_results(page):
    """Tables that are marked as copies of results equal them."""
    text = page.read_text(encoding="utf-8")
    assert len(re.findall("<!-- table", text)) == len(make_tables.MARKED.findall(text))
    assert make_tables.fill(text) == text, "run make figures, or docs/make_tables.py"


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
    """The figures on the page about scikit-learn are those of the guides that it links to."""
    text = (DOCS / "okforest_or_scikit_learn.md").read_text(encoding="utf-8")
    found = 0
    for line in text.splitlines():
        guide = re.search(r"\]\((\w+\.md)#results\)", line)
        for figure in re.findall(r"0\.\d{3,4}", line) if guide else ():
            assert figure in (DOCS / guide[1]).read_text(encoding="utf-8"), (figure, guide[1])
            found += 1
    assert found > 10
