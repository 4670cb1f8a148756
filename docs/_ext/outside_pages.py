"""Pages of the site whose text is elsewhere in the repository, such as CHANGELOG.md.

The page on the site is a stub with a title; its text is read from the file. Relative links are
rewritten: to the page of the site if there is one, else, for example for a source file, to plain
text. Links of the guides to these files are rewritten in the same way.
"""

import os
import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
OUTSIDE = {
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "benchmarks": "benchmarks/README.md",
    "benchmark_results": "benchmarks/RESULTS.md",
    "benchmark_gpu": "benchmarks/CUDA.md",
}
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)]*)?\)")
# Code is left alone: fenced blocks, and spans of code.
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`(?!\]))", re.DOTALL | re.MULTILINE)


def setup(app):
    """Read the files when Sphinx reads the pages."""
    app.connect("source-read", read)
    app.connect("env-before-read-docs", outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def outdated(app, env, names):
    """Read the pages again: Sphinx does not know when a file outside has changed."""
    names.extend(name for name in OUTSIDE if name not in names)


def read(app, page, source):
    """Replace the source of a page."""
    file = ROOT / OUTSIDE[page] if page in OUTSIDE else DOCS / f"{page}.md"
    if not file.exists() or page.startswith(("api/", "gallery/")):
        return
    text = file.read_text(encoding="utf-8") if page in OUTSIDE else source[0]
    parts = CODE.split(text)
    parts[::2] = [LINK.sub(lambda link: rewritten(link, file.parent), part) for part in parts[::2]]
    source[0] = "".join(parts)


def rewritten(link, folder):
    """Return a link of a file in the folder as a link of the site."""
    target = (folder / link["target"]).resolve()
    pages = {(ROOT / file).resolve(): DOCS / f"{page}.md" for page, file in OUTSIDE.items()}
    if not target.exists():
        return link[0]  # Sphinx reports it
    target = pages.get(target, target)
    if not (link["image"] or target.is_relative_to(DOCS)):
        return link["text"]
    # stubs of pages outside are in DOCS; other pages stay where they are
    base = folder if folder.is_relative_to(DOCS) else DOCS
    path = os.path.relpath(target, base)
    return f"{link['image']}[{link['text']}]({path}{link['anchor'] or ''})"
