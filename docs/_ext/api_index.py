"""The index of the API reference: every public name with one line, from the modules' pages."""

import re

PAGE = re.compile(r"^   (\w+)$", re.MULTILINE)


def setup(app):
    """Append the tables when Sphinx reads the index."""
    app.connect("source-read", append)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def names_in(text):
    """Return the title of a page of the reference, and the full names that it lists."""
    module, names = "", []
    for line in text.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif module and PAGE.fullmatch(line):
            names.append(f"{module}.{line.strip()}")
    return text.partition("\n")[0], names


def append(app, page, source):
    """Append a table for each page of the table of contents."""
    if page != "api/index":
        return
    for name in PAGE.findall(source[0]):
        title, names = names_in((app.srcdir / "api" / f"{name}.rst").read_text(encoding="utf-8"))
        rows = "".join(f"   ~{full}\n" for full in names)
        heading = f"{title}\n{'-' * len(title)}"
        source[0] += f"\n{heading}\n\n:doc:`{name}`, grouped by use, with the guides.\n\n"
        source[0] += f".. autosummary::\n   :nosignatures:\n\n{rows}"
