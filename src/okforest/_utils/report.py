"""Reports made of blocks (headings, paragraphs, tables, figures), as Markdown or as an HTML page.

The commands, the experiments and the benchmarks all write their reports with this module.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

# Characters with a meaning in a cell of a Markdown table. An underscore has none inside a word.
MARKUP = re.compile(r"[\\|*`\[\]<>]|(?<!\w)_|_(?!\w)")

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 2rem 3vw; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
       column-gap: 3rem; }
.row > div { min-width: 0; } .row figure { max-width: 100%; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; }
h3 { font-size: 1.05rem; margin-top: 1.5rem; }
p { max-width: 90ch; } p.note, figcaption { color: #555; }
table { border-collapse: collapse; margin: .5rem 0 1rem; display: block; overflow-x: auto; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right;
         vertical-align: bottom; }
td { white-space: nowrap; } .text td { white-space: normal; vertical-align: top; }
.text td:first-child { min-width: 7rem; }
th:first-child, td:first-child, .text td, .text th { text-align: left; }
figure { display: inline-block; margin: 0 1% 1rem 0; max-width: 48%; vertical-align: top; }
figure.wide { max-width: 100%; } img { max-width: 100%; }
figcaption { font-size: .9rem; }
[data-sortable] th button { all: unset; cursor: pointer; font: inherit; }
[data-sortable] th button:focus-visible { outline: 2px solid #06c; outline-offset: 2px; }
[data-sortable] th button::after { content: " ↕"; color: #888; }
[data-sortable] th[aria-sort=ascending] button::after { content: " ↑"; color: inherit; }
[data-sortable] th[aria-sort=descending] button::after { content: " ↓"; color: inherit; }
@media (max-width: 50rem) { body { margin: 1rem; } figure { max-width: 100%; } }
"""

# Numbers are sorted from the largest, text from A; a second click turns the order round.
SORTING = """
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const text = row => row.cells[column].textContent, rows = [...body.rows];
      const numbers = rows.every(row => text(row).trim() ? !isNaN(text(row)) : false);
      const before = head.getAttribute("aria-sort");
      const first = numbers ? "descending" : "ascending";
      const other = numbers ? "ascending" : "descending";
      const order = before === first ? other : first;
      const sign = order === "ascending" ? 1 : -1;
      rows.sort((a, b) => sign * (numbers ? text(a) - text(b) : text(a).localeCompare(text(b))));
      body.append(...rows);
      heads.forEach(one => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
    });
  });
}
"""


@dataclass(frozen=True)
class Heading:
    """A heading; the title of the report has level 1."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Text, with code between backticks; a note is less prominent."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Table:
    """A table; cells may be of any type and are converted to text.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Cells, as many in each row as there are columns. The first one names the row.
    text : bool, default=False
        Whether the cells are words. Words are aligned on the left, numbers on the right.
    sortable : bool, default=False
        Whether a click on the name of a column of the HTML table sorts the rows.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    text: bool = False
    sortable: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"the row {list(row)} has {len(row)} cells; the table has "
                    f"{len(self.header)} columns."
                )

    def markdown(self) -> str:
        """Return the table in Markdown."""
        rule = ["---", *["---" if self.text else "---:"] * (len(self.header) - 1)]
        cells = [[_escape_markdown(cell) for cell in row] for row in (self.header, *self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))

    def html(self) -> str:
        """Return the table in HTML."""
        head = _html_row("th", self.header)
        body = "".join(_html_row("td", row) for row in self.rows)
        style = (" class=text" if self.text else "") + (" data-sortable" if self.sortable else "")
        return f"<table{style}><thead>{head}</thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class Figure:
    """A figure: the stem of its file names, its caption, and the function that draws it."""

    name: str
    caption: str
    draw: Callable[[], "Drawing"]
    wide: bool = False


@dataclass(frozen=True)
class Row:
    """Parts of a report that are side by side if the page is wide enough."""

    parts: Sequence[Sequence["Block"]]


Block = Heading | Paragraph | Table | Figure | Row


def save_figures(
    blocks: Iterable[Block], folder: Path, formats: Sequence[str] = ("png", "svg")
) -> None:
    """Draw the figures and save them in a folder, without dates or versions in the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for block in _without_rows(blocks):
        if isinstance(block, Figure):
            drawing = block.draw()
            for name in formats:
                metadata = {"Software": None} if name == "png" else {"Date": None}
                drawing.savefig(folder / f"{block.name}.{name}", dpi=110, metadata=metadata)


def to_markdown(title: str, blocks: Iterable[Block], figures: str = "figures") -> str:
    """Return a report in Markdown; ``figures`` is the path from the report to its figures."""
    parts = [f"# {title}"]
    for block in _without_rows(blocks):
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, Paragraph):
            parts.append(f"*{block.text}*" if block.note else block.text)
        elif isinstance(block, Table):
            parts.append(block.markdown())
        else:
            parts.append(f"![{block.caption}]({figures}/{block.name}.png)\n\n*{block.caption}*")
    return "\n\n".join(parts) + "\n"


def to_html(title: str, blocks: Iterable[Block], folder: Path) -> str:
    """Return a report as an HTML page, which contains the PNG figures of a folder."""
    blocks = list(blocks)
    body = "\n".join(_html_block(block, folder) for block in (Heading(title, 1), *blocks))
    if any(isinstance(block, Table) and block.sortable for block in _without_rows(blocks)):
        body += f"\n<script>{SORTING}</script>"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _without_rows(blocks: Iterable[Block]) -> Iterator[Heading | Paragraph | Table | Figure]:
    """Yield the blocks one after another, those in rows included."""
    for block in blocks:
        if isinstance(block, Row):
            for part in block.parts:
                yield from _without_rows(part)
        else:
            yield block


def _html_block(block: Block, folder: Path) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        text = re.sub("`([^`]*)`", r"<code>\1</code>", escape(block.text))
        return f"<p{' class=note' if block.note else ''}>{text}</p>"
    if isinstance(block, Table):
        return block.html()
    if isinstance(block, Row):
        parts = ("\n".join(_html_block(inner, folder) for inner in part) for part in block.parts)
        return "<div class=row>" + "".join(f"<div>{part}</div>" for part in parts) + "</div>"
    image = b64encode((folder / f"{block.name}.png").read_bytes()).decode()
    caption = escape(block.caption)
    return (
        f"<figure{' class=wide' if block.wide else ''}>"
        f'<img alt="{caption}" src="data:image/png;base64,{image}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _html_row(tag: str, cells: Iterable[object]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"


def _escape_markdown(cell: object) -> str:
    return MARKUP.sub(r"\\\g<0>", " ".join(str(cell).split()))
