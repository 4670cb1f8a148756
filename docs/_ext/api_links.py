"""Link names in code font to their pages of the API reference.

The guides are plain Markdown, which has no syntax for a reference to a class. Where a page has
`OKExtraTrees` or `okforest.metrics` in code font, with or without arguments, the site links it.
Short names in lower case, such as `predict`, have other meanings, too: they are linked only with
the name of their module, as in `okforest.load`, or if they contain an underscore.
"""

import re

from docutils import nodes
from sphinx.util.nodes import make_refnode

# A name, perhaps with arguments, in which parentheses may be nested once.
NAME = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?:\((?:[^()]|\([^()]*\))*\))?")
KINDS = ("module", "class", "function", "data", "exception")


def setup(app):
    """Add the links when pages are resolved."""
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def targets(objects):
    """Return the objects of the API by the names that pages may use for them."""
    found = {}
    for full, entry in objects.items():
        if entry.objtype not in KINDS:
            continue
        found[full] = entry
        short = full.rpartition(".")[2]
        if entry.objtype != "module" and (short[0].isupper() or "_" in short):
            found.setdefault(short, entry)
            found.setdefault(".".join(full.split(".")[1:]), entry)
    return found


def link_names(app, doctree, page):
    """Replace literals that name an object by links to it, once in each section."""
    objects = targets(app.env.domains["py"].objects)
    linked = set()
    for literal in list(doctree.findall(nodes.literal)):
        if isinstance(literal.parent, (nodes.reference, nodes.title)):
            continue
        match = NAME.fullmatch(literal.astext())
        entry = objects.get(match["name"]) if match else None
        if entry is None or entry.docname == page:
            continue
        section = literal
        while section is not None and not isinstance(section, nodes.section):
            section = section.parent
        if (id(section), entry.node_id) in linked:
            continue
        linked.add((id(section), entry.node_id))
        literal.replace_self(
            make_refnode(
                app.builder, page, entry.docname, entry.node_id, literal.deepcopy(), match["name"]
            )
        )
