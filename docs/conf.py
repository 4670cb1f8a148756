"""Configuration of the documentation site: `make docs` builds it in build/docs."""

import os
import sys
import urllib.error
import urllib.request
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "okforest"
author = "The okforest developers"
copyright = "The okforest developers"
release = version = installed_version("okforest")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api_index",
    "api_links",
    "outside_pages",
    "guide_galleries",
    "search_words",
]
templates_path = ["_templates"]
exclude_patterns = ["_*", "**/README.md", "gallery/**/*.ipynb", "gallery/**/*.py"]
root_doc = "index"
nitpicky = False
suppress_warnings = ["config.cache"]  # the configuration of the gallery holds a class

# Markdown: the pages are also read on their own, so that links are plain Markdown links.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# The API: one page for each public name, from its docstring.
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_use_plots = False

HIDDEN = ("get_metadata_routing", "set_output")


def skip_member(app, what, name, thing, skip, options):
    """Leave out scikit-learn's methods of metadata routing and output containers."""
    return True if name in HIDDEN or name.endswith("_request") else None


def setup(app):
    """Connect the functions of this file."""
    app.connect("autodoc-skip-member", skip_member)


def reachable(url):
    """Return whether an inventory of another project can be read now, within two seconds."""
    try:
        with urllib.request.urlopen(f"{url}objects.inv", timeout=2) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


# Links to other projects are made where their inventories can be reached; the site does not need
# them, so that it builds without a network. OKFOREST_DOCS_OFFLINE=1 does not try.
PROJECTS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
}
intersphinx_mapping = {
    name: (url, None)
    for name, url in PROJECTS.items()
    if not os.environ.get("OKFOREST_DOCS_OFFLINE") and reachable(url)
}
intersphinx_timeout = 5

# The gallery: scripts of examples/gallery, run while the site is built.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("okforest",),
    "reference_url": {"okforest": None},
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # pages that load scripts from elsewhere
    "plot_gallery": "True",
    "matplotlib_animations": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"okforest {release}"
html_static_path = ["_static"]
html_css_files = ["okforest.css"]
html_search_scorer = str(HERE / "search.js")
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "okforest"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "which_kernel": []},
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# A published site has a folder for each version, and switcher.json, which lists them
# (tools/docs_versions.py). OKFOREST_DOCS_URL is its address, OKFOREST_DOCS_VERSION the folder.
if "OKFOREST_DOCS_URL" in os.environ:
    address = os.environ["OKFOREST_DOCS_URL"].rstrip("/")
    folder = os.environ["OKFOREST_DOCS_VERSION"]
    html_baseurl = f"{address}/{folder}/"
    html_theme_options |= {
        "switcher": {"json_url": f"{address}/switcher.json", "version_match": folder},
        "check_switcher": False,  # the site is built before it is published
        "navbar_start": ["navbar-logo", "version-switcher"],
    }
copybutton_exclude = ".linenos, .gp, .go"
