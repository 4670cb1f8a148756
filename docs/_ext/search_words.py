"""Search: the words for which a guide comes first, and a summary of every page.

Sphinx counts neither how often a page has a word nor where, so that the guide to a subject may come
after every page of the reference that mentions it. The phrases below are index entries of the
guides, which the search ranks first; a query finds the entries that contain it, so that a plural
also serves its singular. `docs/search.js` orders the other results by folder.
Excerpts of pages cannot be read from files that are opened without a server: the search then shows
the first paragraph of a page, from a script that is written here.
"""

import json

from docutils import nodes

PHRASES = {
    "install": ["install", "wheels"],
    "which_kernel": ["choose a kernel", "which kernel"],
    "image_completion": ["image completion", "multi-output regression"],
    "label_sets": ["multi-label", "multilabel", "label sets", "example F1", "F1 scores"],
    "hierarchies": ["hierarchical classification", "hierarchy of classes"],
    "rankings": ["label rankings", "rankings", "Kendall"],
    "strings": ["strings", "edit distance", "Levenshtein", "dictionary"],
    "curves": ["functional data", "curves", "distributions", "Wasserstein"],
    "graphs": ["graph kernels", "diffusion kernel", "molecules"],
    "networks": ["networks", "link prediction", "missing links", "supervised graph inference"],
    "supervised_kernel_learning": [
        "supervised kernel learning",
        "kernel completion",
        "kernel matrix completion",
        "Frobenius",
    ],
    "survival": ["survival", "censored", "concordance"],
    "refit": ["semi-supervised"],
    "incomplete_data": ["missing values", "categorical"],
    "images": ["image classification", "segmentation"],
    "series": ["time series"],
    "sequences": ["sequences", "DNA"],
    "image_search": ["image search", "retrieval"],
    "decoding": ["pre-images", "decoders", "decoding", "custom loss", "own loss"],
    "uncertainty": ["conformal", "prediction intervals", "confidence intervals", "coverage"],
    "tuning": ["tuning", "grid search", "hyperparameters"],
    "boosting": ["boosting", "gradient boosting"],
    "inspection": ["feature importances", "interpretability"],
    "large_data": ["large data", "memory"],
    "dask": ["dask", "clusters"],
    "gpu": ["GPU", "CUDA"],
    "deployment": ["deployment", "save a model", "latency", "pickle"],
    "command_line": ["command line"],
    "extending": ["own kernel", "custom kernels"],
    "glossary": [
        "OK3",
        "output kernel trees",
        "kernel dependency estimation",
        "KDE",
        "attribute selection strength",
        "smoothing strength",
        "n_min",
        "predictive clustering",
        "words of the papers",
    ],
}
MAX_LENGTH = 160


def setup(app):
    """Add the entries when Sphinx reads a page, and write the summaries at the end."""
    app.connect("source-read", add_entries)
    app.connect("build-finished", write_summaries)
    app.add_js_file("summaries.js", loading_method="defer", priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_entries(app, page, source):
    """Add the index entries of a guide, below its title."""
    if page not in PHRASES:
        return
    title, end, rest = source[0].partition("\n")
    entries = "".join(f"   ! single: {phrase}\n" for phrase in PHRASES[page])
    source[0] = f"{title}{end}\n```{{eval-rst}}\n.. index::\n{entries}```\n{rest}"


def summary_of(doctree):
    """Return the beginning of the first paragraph that says something, or nothing."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 30 and not text.startswith("Go to the end to download"):
            return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH].rpartition(" ")[0] + " …"
    return ""


def write_summaries(app, error):
    """Write the summaries of all pages as a script, which pages opened as files can load."""
    if error is not None or app.builder.format != "html":
        return
    summaries = {name: summary_of(app.env.get_doctree(name)) for name in app.env.found_docs}
    text = json.dumps(dict(sorted(summaries.items())), ensure_ascii=False)
    path = app.outdir / "_static" / "summaries.js"
    path.write_text(f"const pageSummaries = {text};\n", encoding="utf-8")
