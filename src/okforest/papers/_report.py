"""A report as a list of blocks, from which Markdown and pages are made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from okforest._typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Heading:
    """The title of an experiment (level 2), or of a part of it (level 3)."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Text; a note is less important."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Table:
    """Cells, all of them text; the first column names the rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: bool = False  # whether all columns are words, not numbers


@dataclass(frozen=True)
class Figure:
    """A drawing, its caption, and the name of its files."""

    name: str
    caption: str
    draw: Callable[[], "Drawing"]
    wide: bool = False


Block = Heading | Paragraph | Table | Figure


def counted(n: int, noun: str) -> str:
    """Return a number and a noun in its singular or plural."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def spread(values: Floats, digits: int = 4) -> str:
    """Return mean ± standard deviation; the mean alone, of a single value."""
    if len(values) < 2:
        return f"{np.mean(values):.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def published(value: float | tuple[float, float] | None, digits: int = 4) -> str:
    """Return what a paper says: a mean, with or without its standard deviation, or nothing."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f"{value[0]:.{digits}f} ± {value[1]:.{digits}f}"
    return f"{value:.{digits}f}"


def new_drawing(width: float, height: float) -> "Drawing":
    """Return an empty figure, sizes in inches, which no window shows."""
    from matplotlib.figure import Figure as Drawing

    return Drawing(figsize=(width, height), layout="constrained")


def on_axes(width: float, height: float, draw: Callable[["Axes"], object]) -> "Drawing":
    """Return a figure that is drawn on one pair of axes."""
    drawing = new_drawing(width, height)
    draw(drawing.subplots())
    return drawing


def save_figures(blocks: Sequence[Block], folder: Path) -> None:
    """Draw the figures, as PNG and as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for block in blocks:
        if isinstance(block, Figure):
            drawing = block.draw()
            drawing.savefig(folder / f"{block.name}.png", dpi=110, metadata={"Software": None})
            drawing.savefig(folder / f"{block.name}.svg", metadata={"Date": None})


def as_markdown(title: str, blocks: Sequence[Block], figures: str) -> str:
    """Return the report as Markdown; ``figures`` is the folder of figures, seen from it."""
    parts = [f"# {title}"]
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, Paragraph):
            parts.append(f"*{block.text}*" if block.note else block.text)
        elif isinstance(block, Table):
            parts.append(_table(block))
        else:
            parts.append(f"![{block.caption}]({figures}/{block.name}.png)\n\n*{block.caption}*")
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    side = "---" if table.text else "---:"
    lines = [table.header, ["---", *[side] * (len(table.header) - 1)], *table.rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
