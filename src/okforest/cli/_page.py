"""A page of results in one file, with its figures inside."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 72rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; }
h3 { font-size: 1.05rem; margin-top: 1.5rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; display: block; overflow-x: auto; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right;
         vertical-align: bottom; }
td { white-space: nowrap; } .text td { white-space: normal; }
th:first-child, td:first-child, .text td, .text th { text-align: left; }
figure { display: inline-block; margin: 0 1% 1rem 0; max-width: 48%; vertical-align: top; }
figure.wide { max-width: 100%; } img { max-width: 100%; }
figcaption { color: #444; font-size: .9rem; }
p.note { color: #666; }
"""


class Page:
    """HTML, put together part by part.

    Parameters
    ----------
    title : str
        Title of the page.
    """

    def __init__(self, title: str):
        self.title = title
        self.parts = [f"<h1>{escape(title)}</h1>"]

    def heading(self, text: str, level: int = 2) -> None:
        """Add a heading."""
        self.parts.append(f"<h{level}>{escape(text)}</h{level}>")

    def paragraph(self, text: str, note: bool = False) -> None:
        """Add a paragraph, or a note in grey."""
        self.parts.append(f"<p{' class=note' if note else ''}>{escape(text)}</p>")

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[Any]], text: bool = False
    ) -> None:
        """Add a table; with ``text`` all of its columns are on the left."""
        head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        style = " class=text" if text else ""
        self.parts.append(
            f"<table{style}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def figure(self, path: Path, words: str, wide: bool = False) -> None:
        """Add a PNG with its caption; two of them fit side by side, unless they are wide."""
        data = b64encode(path.read_bytes()).decode()
        style = " class=wide" if wide else ""
        self.parts.append(
            f'<figure{style}><img alt="{escape(words)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(words)}</figcaption></figure>"
        )

    def write(self, path: Path) -> None:
        """Write the file."""
        body = "\n".join(self.parts)
        path.write_text(
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head>\n"
            f"<body>\n{body}\n</body></html>\n",
            encoding="utf-8",
        )
