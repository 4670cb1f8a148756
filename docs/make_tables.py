"""Fill the tables of the pages in this folder from committed results.

A table between two comments is a copy of a table in a file of results, which a command has written:

    <!-- table: benchmarks/results/rankings.md: Kendall's τ -->
    <!-- end of table -->

The text after the second colon begins the heading, or the line, above the table in that file. After
a semicolon, words for all columns but the first say which value is printed in bold: ``max``,
``min``, or ``-`` for none; ``rows max`` prints the largest value of each row in bold. ``make
figures`` fills the tables; a test compares them with results.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parent
MARKED = re.compile(
    r"<!-- table: (?P<file>[^:\n]+): (?P<title>[^;\n]+?)(?:; (?P<best>[^\n]+?))? -->\n"
    r".*?<!-- end of table -->",
    re.DOTALL,
)


def main() -> None:
    """Fill the tables of every page."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        filled = fill(text)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
            print(page)


def fill(text: str) -> str:
    """Return a page with its tables replaced by those of the results."""

    def table(mark: re.Match[str]) -> str:
        first = mark[0].split("\n", 1)[0]
        lines = find((DOCS.parent / mark["file"]).read_text(encoding="utf-8"), mark["title"])
        if mark["best"]:
            lines = emphasize(lines, mark["best"].split())
        return "\n".join([first, "", *lines, "", "<!-- end of table -->"])

    return MARKED.sub(table, text)


def find(results: str, title: str) -> list[str]:
    """Return the lines of the first table below a heading."""
    below = re.split(rf"^(?:#+ )?{re.escape(title)}.*$", results, maxsplit=1, flags=re.MULTILINE)
    if len(below) != 2:
        raise ValueError(f"the results have no heading {title!r}")
    lines = below[1].splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("|"))
    end = next((i for i in range(begin, len(lines)) if not lines[i].startswith("|")), len(lines))
    return lines[begin:end]


def emphasize(lines: list[str], best: list[str]) -> list[str]:
    """Return the lines of a table with the best numbers of its columns, or rows, in bold."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if best == ["rows", "max"]:
        for row in rows[2:]:
            largest = max(map(float, row[1:]))
            row[1:] = [f"**{cell}**" if float(cell) == largest else cell for cell in row[1:]]
        best = []
    for column, word in enumerate(best, start=1):
        if word == "-":
            continue
        values = [float(row[column]) for row in rows[2:]]
        wanted = {"max": max, "min": min}[word](values)
        for row, value in zip(rows[2:], values, strict=True):
            if value == wanted:
                row[column] = f"**{row[column]}**"
    return [f"| {' | '.join(row)} |" for row in rows]


if __name__ == "__main__":
    main()
