"""Links from the guides to the scripts of the gallery: thumbnails at the end of a guide.

The guides are plain Markdown, which is read on its own, too; the site appends the thumbnails.
"""

SCRIPTS = {
    "image_completion": ["image_completion"],
    "label_sets": ["label_sets", "expected_f1", "annotation"],
    "hierarchies": ["hierarchies"],
    "rankings": ["rankings"],
    "strings": ["strings"],
    "curves": ["curves", "distributions", "tuples", "curve_bands"],
    "graphs": ["graph_inputs", "own_kernel"],
    "networks": ["links", "bipartite"],
    "survival": ["survival", "censored_refit"],
    "refit": ["two_moons", "censored_refit", "monotone"],
    "incomplete_data": ["incomplete_data"],
    "images": ["image_classification", "annotation", "pixels"],
    "series": ["series"],
    "sequences": ["sequences", "graph_inputs"],
    "image_search": ["image_search"],
    "decoding": ["expected_f1", "image_completion", "own_kernel"],
    "uncertainty": ["conformal_sets", "quantile_intervals", "curve_bands"],
    "tuning": ["tune_kernel", "kernel_alignment"],
    "boosting": ["boosting", "ridge_and_trees"],
    "inspection": ["read_a_tree", "importances", "prototypes"],
    "glossary": ["geometry"],
    "large_data": ["large_outputs", "dask"],
    "large_outputs": ["large_outputs"],
    "dask": ["dask"],
    "deployment": ["save_and_serve"],
    "extending": ["own_kernel"],
}


def setup(app):
    """Append the thumbnails when Sphinx reads a guide."""
    app.connect("source-read", append)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def append(app, page, source):
    """Append the thumbnails of the scripts of a guide."""
    folder = app.srcdir.parent / "examples" / "gallery"
    paths = [
        next(folder.rglob(f"plot_{name}.py")).relative_to(app.srcdir.parent)
        for name in SCRIPTS.get(page, ())
    ]
    if paths:
        listed = " ".join(f"../{path}" for path in paths)
        heading = "Examples in the gallery"
        source[0] += f"\n\n## {heading}\n\n```{{eval-rst}}\n.. minigallery:: {listed}\n```\n"
