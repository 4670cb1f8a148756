"""The Python code of README.md, CONTRIBUTING.md and the guides runs and prints what they show."""

import re
from pathlib import Path

import matplotlib
import pytest

make_figures = pytest.importorskip("make_figures", reason="docs/ is only in the source tree")

DOCS = Path(make_figures.__file__).parent
PAGES = [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs(page, tmp_path, monkeypatch, request):
    """Running the code of a page changes none of its text. Blocks marked `no-run` are left out."""
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
    with matplotlib.rc_context():
        assert make_figures.run(text, tmp_path) == text
    assert all(figure.stat().st_size < 100_000 for figure in tmp_path.glob("images/*"))


def test_images_and_links_exist():
    """Every image and page that a page links to exists; every image is shown by a page."""
    targets = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
            targets.add((page.parent / target).resolve())
    assert targets >= {image.resolve() for image in (DOCS / "images").iterdir()}
