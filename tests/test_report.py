"""Reports: blocks as Markdown and as HTML, and figures in files."""

import re
import shutil
import subprocess

import pytest

from okforest._utils.report import (
    Figure,
    Heading,
    Paragraph,
    Row,
    Table,
    save_figures,
    to_html,
    to_markdown,
)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)


def draw():
    """Return a small figure."""
    drawing = pytest.importorskip("matplotlib.figure").Figure(figsize=(2.0, 1.0))
    drawing.subplots().plot([0, 1])
    return drawing


BLOCKS = [
    Heading("Part"),
    Heading("Table", 3),
    Paragraph("a < b, by `make x`."),
    Paragraph("Less.", note=True),
    Table(["row", "paper"], [["a|b", 1.0], ["c", ""]]),
    Table(["row", "words"], [["<b>", "b\nc"]], text=True),
    Figure("curve", 'A "line".', draw),
]


def test_markdown():
    """Every block is rendered; numbers are aligned on the right."""
    assert to_markdown("Title", BLOCKS, "figures").split("\n\n") == [
        "# Title",
        "## Part",
        "### Table",
        "a < b, by `make x`.",
        "*Less.*",
        "| row | paper |\n| --- | ---: |\n| a\\|b | 1.0 |\n| c |  |",
        "| row | words |\n| --- | --- |\n| \\<b\\> | b c |",
        '![A "line".](figures/curve.png)',
        '*A "line".*\n',
    ]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("*a*", r"\*a\*"),
        ("_a_", r"\_a\_"),
        ("n_min = 5", "n_min = 5"),
        ("[a](b)", r"\[a\](b)"),
        ("a\\|b", r"a\\\|b"),
        ("<script>", r"\<script\>"),
    ],
)
def test_markup_in_cells_is_escaped(cell, expected):
    assert Table(["a"], [[cell]]).markdown().splitlines()[-1] == f"| {expected} |"


def test_html(tmp_path):
    """Every block is on the page, with its figures inside, and markup in the text is escaped."""
    save_figures(BLOCKS, tmp_path, ["png"])
    page = to_html("a & b", BLOCKS, tmp_path)
    for part in (
        "<title>a &amp; b</title>",
        "<h1>a &amp; b</h1>",
        "<h3>Table</h3>",
        "<p>a &lt; b, by <code>make x</code>.</p>",
        "<p class=note>Less.</p>",
        "<table><thead><tr><th>row</th><th>paper</th></tr></thead>",
        "<tr><td>a|b</td><td>1.0</td></tr>",
        "<table class=text>",
        "<td>&lt;b&gt;</td>",
        '<img alt="A &quot;line&quot;." src="data:image/png;base64,',
        "<figcaption>A &quot;line&quot;.</figcaption>",
    ):
        assert part in page


def test_figures(tmp_path):
    """Figures are saved as PNG and SVG, and the files are the same in every run."""
    for folder in ("one", "two"):
        save_figures(BLOCKS, tmp_path / folder)
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"curve.png", "curve.svg"}
    first, second = (tmp_path / folder / "curve.png" for folder in ("one", "two"))
    assert first.read_bytes().startswith(b"\x89PNG")
    assert first.read_bytes() == second.read_bytes()
    assert "<svg" in (tmp_path / "one/curve.svg").read_text()


def test_rows(tmp_path):
    """Parts of a row are side by side in HTML, and one after another in Markdown."""
    rows = [Row([BLOCKS[:2], [Row([BLOCKS[2:]])]])]
    assert to_markdown("Title", rows) == to_markdown("Title", BLOCKS)
    save_figures(rows, tmp_path, ["png"])
    page = to_html("Title", rows, tmp_path)
    assert "<div class=row><div><h2>Part</h2>\n<h3>Table</h3></div><div><div class=row>" in page
    assert page.count("data:image/png;base64,") == 1
    assert '<meta name="viewport" content="width=device-width' in page


def test_ragged_tables_are_refused():
    with pytest.raises(ValueError, match=r"row \['a'\] has 1 cells; the table has 2 columns"):
        Table(["row", "paper"], [["a"]])


SORTED = Table(["name", "score"], [["b", "0.9"], ["C", "0.10"], ["a", "10"]], sortable=True)


def test_sortable_tables(tmp_path):
    """Only a page with a sortable table has the script; nothing is loaded from elsewhere."""
    page = to_html("Title", [Row([[SORTED]])], tmp_path)
    assert "<table data-sortable><thead>" in page
    assert page.count("<script>") == 1
    assert not re.search(r"https?://|src=|href=", page)
    assert "<script>" not in to_html("Title", [Table(["a"], [["b"]])], tmp_path)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize(
    ("clicks", "names", "order"),
    [
        ([], "bCa", None),
        ([1], "abC", "descending"),
        ([1, 1], "Cba", "ascending"),
        ([1, 0], "abC", "ascending"),
        ([0, 0], "Cba", "descending"),
    ],
)
def test_sorting(tmp_path, clicks, names, order):
    """A click sorts numbers from the largest and text from A; a second one reverses the order."""
    page = to_html("Title", [SORTED], tmp_path)
    clicked = "".join(f"document.querySelectorAll('th button')[{i}].click();" for i in clicks)
    (tmp_path / "page.html").write_text(f"{page}<script>{clicked}</script>", encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/user")
    dom = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", f"file://{tmp_path}/page.html"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "".join(re.findall("<tr><td>(.)</td>", dom)) == names
    assert re.findall('<th aria-sort="([a-z]*)">', dom) == ([order] if order else [])
    assert len(re.findall("<th[^>]*><button", dom)) == 2
