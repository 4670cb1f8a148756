"""Run the examples of the pages in this folder; write their figures and printed text.

A ``python`` block in a page may be followed by its result: a ``text`` block is replaced by what the
example printed, and an image by the figure that it made. If the example printed Graphviz source,
the image is rendered from it, provided that the ``dot`` program is installed. The blocks of a page
share their variables.
"""

import argparse
import contextlib
import io
import re
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parent
EXAMPLE = re.compile(
    r"```python\n(?P<code>.*?)```\n"
    r"(?:\n```text\n(?P<text>.*?)```\n?)?(?:\n!\[[^\]]*\]\((?P<image>[^)]+)\))?",
    re.DOTALL,
)


def main() -> None:
    """Run the examples of every page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=DOCS, help="output folder (default: docs)")
    output = parser.parse_args().output
    plt.rcParams.update({"savefig.dpi": 110, "axes.edgecolor": "gray", "axes.linewidth": 0.6})
    warnings.simplefilter("error")
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if EXAMPLE.search(text):
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                text = run(text, output.resolve())  # examples may write files
            (output / page.name).write_text(text, encoding="utf-8")
            print(output / page.name)


def run(page: str, folder: Path) -> str:
    """Run a page's examples, save their figures, and return the page with their printed text."""
    variables: dict[str, object] = {"__name__": "__main__"}

    def result(example: re.Match[str]) -> str:
        plt.close("all")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(example["code"], variables)
        if example["image"]:
            path = folder / example["image"]
            path.parent.mkdir(parents=True, exist_ok=True)
            if not printed.getvalue().startswith("digraph"):
                plt.gcf().savefig(path, bbox_inches="tight", metadata={"Software": None})
            elif shutil.which("dot"):
                source = printed.getvalue().encode()
                subprocess.run(["dot", "-Tpng", "-o", path], input=source, check=True)
        if example["text"] is None:
            return example[0]
        begin, end = (place - example.start() for place in example.span("text"))
        return example[0][:begin] + printed.getvalue() + example[0][end:]

    return EXAMPLE.sub(result, page)


if __name__ == "__main__":
    main()
