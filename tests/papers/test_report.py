"""Reports: blocks as Markdown, and figures in files."""

import numpy as np

from okforest.papers import Figure, Finished, Heading, Job, Paragraph, Results, Table
from okforest.papers._report import (
    as_markdown,
    counted,
    new_drawing,
    published,
    save_figures,
    spread,
)


def draw():
    drawing = new_drawing(2.0, 1.0)
    drawing.subplots().plot([0, 1])
    return drawing


BLOCKS = [
    Heading("Part"),
    Heading("Table", 3),
    Paragraph("Text."),
    Paragraph("Less.", note=True),
    Table(["row", "paper"], [["a|b", "1.0"], ["c", ""]]),
    Table(["row", "words"], [["a", "b"]], text=True),
    Figure("curve", "A line.", draw),
]


def test_markdown():
    """Every block has its form; numbers are on the right."""
    assert as_markdown("Title", BLOCKS, "figures").split("\n\n") == [
        "# Title",
        "## Part",
        "### Table",
        "Text.",
        "*Less.*",
        "| row | paper |\n| --- | ---: |\n| a\\|b | 1.0 |\n| c |  |",
        "| row | words |\n| --- | --- |\n| a | b |",
        "![A line.](figures/curve.png)",
        "*A line.*\n",
    ]


def test_figures(tmp_path):
    """As pixels and as lines, and the same every time."""
    save_figures(BLOCKS, tmp_path / "figures")
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"curve.png", "curve.svg"}
    assert (tmp_path / "figures/curve.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "figures/curve.svg").read_text()


def test_counts():
    assert [counted(n, "seed") for n in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]


def test_cells():
    assert spread(np.array([1.0, 2.0, 3.0]), 2) == "2.00 ± 1.00"
    assert spread(np.array([1.0]), 2) == "1.00"
    assert published((0.5, 0.25), 2) == "0.50 ± 0.25"
    assert published(0.5, 3) == "0.500"
    assert published(None) == ""


def test_results():
    """They are found by row and arguments, in the order of jobs, or by seeds and folds."""
    finished = [
        Finished(Job(row, draw, {"seed": s, "fold": f}), {"loss": 10 * s + f}, 1.0, False)
        for row in ("a", "b")
        for f in range(3)
        for s in range(2)
    ]
    results = Results(finished)
    assert len(results.of("a")) == 6
    assert results.values("loss", "a", fold=1).tolist() == [1.0, 11.0]
    assert results.by_seed("loss", "b").tolist() == [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]
