"""The pages of docs: their examples run, and print what the pages say."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.skipif(not DOCS.exists(), reason="docs come with the source tree")
def test_pages_are_up_to_date(tmp_path):
    """Running the examples changes no text, and makes every figure."""
    subprocess.run(
        [sys.executable, DOCS / "make_figures.py", "--output", tmp_path],
        capture_output=True,
        check=True,
    )
    pages = list(tmp_path.glob("*.md"))
    assert pages
    for page in pages:
        assert page.read_text() == (DOCS / page.name).read_text()
    made = list((tmp_path / "images").iterdir())
    kept = (DOCS / "images").glob("*_*.png")
    drawn_by_dot = set() if shutil.which("dot") else {"inspection_export_graphviz.png"}
    assert {figure.name for figure in made} | drawn_by_dot == {figure.name for figure in kept}
    assert all(figure.stat().st_size < 100_000 for figure in made)
