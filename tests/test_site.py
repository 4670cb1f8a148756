"""Our own parts of the documentation site: links between pages, and the check of the site."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="docs/ is only in the source tree")


@pytest.fixture
def extension(monkeypatch):
    """Return a function that imports a module of docs/_ext."""
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), str(DOCS), *sys.path])
    return importlib.import_module


def test_pages_outside(extension):
    """A stub has the text of the file, with links as the site has them; code is kept."""
    outside = extension("outside_pages")
    for page in outside.OUTSIDE:
        assert (DOCS / f"{page}.md").exists()
        source = [""]
        outside.read(None, page, source)
        assert source[0].startswith("# ")
        assert "](docs/" not in source[0]
        assert "](../docs/" not in source[0]


@pytest.mark.parametrize(
    ("folder", "text", "expected"),
    [
        (DOCS, "[c](../CONTRIBUTING.md#to-add)", "[c](contributing.md#to-add)"),
        (DOCS.parent, "[guide](docs/tuning.md)", "[guide](tuning.md)"),
        (DOCS.parent, "[source](pyproject.toml)", "source"),
        (DOCS.parent / "benchmarks", "[results](RESULTS.md)", "[results](benchmark_results.md)"),
        (DOCS, "![f](images/digits.png)", "![f](images/digits.png)"),
        (DOCS, "[nothing](nothing.md)", "[nothing](nothing.md)"),
    ],
    ids=["to a stub", "to a guide", "to a source file", "between stubs", "image", "broken"],
)
def test_links(extension, folder, text, expected):
    """Links lead to pages of the site; those to other files become text."""
    outside = extension("outside_pages")
    assert outside.rewritten(outside.LINK.fullmatch(text), folder) == expected


def test_names_of_the_reference(extension):
    """Names are linked with their module; short names only if they cannot mean something else."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    links = extension("api_links")
    entry = SimpleNamespace(objtype="function")
    kernel = SimpleNamespace(objtype="class")
    method = SimpleNamespace(objtype="method")
    found = links.targets(
        {
            "okforest.load": entry,
            "okforest.tune_decoder": entry,
            "okforest.kernels.RBF": kernel,
            "okforest.OKTree.fit_all": method,
        }
    )
    assert set(found) == {
        *("okforest.load", "okforest.tune_decoder", "tune_decoder"),
        *("okforest.kernels.RBF", "kernels.RBF", "RBF"),
    }
    matches = {"RBF(sigma=f(1))": "RBF", "okforest.load": "okforest.load", "RBF() + RBF()": None}
    for text, name in matches.items():
        match = links.NAME.fullmatch(text)
        assert (match and match["name"]) == name


def test_check_of_the_site(extension, tmp_path):
    """Broken links and missing anchors are found; links to other sites are not followed."""
    check = extension("check_site")
    (tmp_path / "index.html").write_text(
        '<a href="page.html#here"></a><a href="https://elsewhere/x"></a><img src="none.png">'
        '<a href="page.html#there"></a><a href="#top"></a>'
    )
    (tmp_path / "page.html").write_text('<h1 id="here"></h1><a href="./">home</a>')
    assert check.broken_links(tmp_path) == [
        "index.html links to #top, which has no such anchor",
        "index.html links to none.png",
        "index.html links to page.html#there, which has no such anchor",
    ]


@pytest.mark.parametrize("fault", [None, "link", "search"])
def test_command(extension, tmp_path, monkeypatch, capsys, fault):
    """The command fails if a link is broken, or if the search does not find a phrase."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    check = extension("check_site")
    (tmp_path / "index.html").write_text(f'<a href="{"none" if fault == "link" else "#"}"></a>')
    words = ["label", "rank", "conform", *([] if fault == "search" else ["surviv"])]
    index = {"titles": ["Guide"], "terms": dict.fromkeys(words, 0), "titleterms": {}}
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    monkeypatch.setattr("sys.argv", ["check_site.py", str(tmp_path)])
    if fault is None:
        check.main()
        assert capsys.readouterr().out.endswith("no broken links\n")
        return
    message = {"link": "index.html links to none", "search": "does not find 'survival'"}[fault]
    with pytest.raises(SystemExit, match=message):
        check.main()


def test_search(extension, tmp_path):
    """A phrase is found on the pages that have all its words, in any form."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    check = extension("check_site")
    index = {
        "titles": ["Rankings", "Labels"],
        "terms": {"label": [0, 1], "rank": 0},
        "titleterms": {"rank": 0},
    }
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    assert check.found(tmp_path, "label ranking") == ["Rankings"]
    assert check.found(tmp_path, "labels") == ["Labels", "Rankings"]
    assert check.found(tmp_path, "survival") == []


def test_guides_with_scripts(extension):
    """A guide shows scripts that exist, and every script is shown by a guide."""
    galleries = extension("guide_galleries")
    assert all((DOCS / f"{page}.md").exists() for page in galleries.SCRIPTS)
    scripts = (DOCS.parent / "examples" / "gallery").rglob("plot_*.py")
    shown = {name for names in galleries.SCRIPTS.values() for name in names}
    assert shown == {script.stem.removeprefix("plot_") for script in scripts}
    source = ["# Extending\n"]
    galleries.append(SimpleNamespace(srcdir=DOCS), "extending", source)
    assert ".. minigallery:: ../examples/gallery/9_extending/plot_own_kernel.py" in source[0]


def test_index_of_the_reference(extension, tmp_path):
    """The index lists the names of every page of its table of contents."""
    index = extension("api_index")
    source = [(DOCS / "api" / "index.rst").read_text(encoding="utf-8")]
    index.append(SimpleNamespace(srcdir=DOCS), "api/index", source)
    for page in sorted((DOCS / "api").glob("*.rst")):
        _, names = index.names_in(page.read_text(encoding="utf-8"))
        assert all(f"   ~{name}\n" in source[0] for name in names)
    assert source[0].count("   ~okforest.") > 200
    source = ["other"]
    index.append(SimpleNamespace(srcdir=DOCS), "tuning", source)
    assert source == ["other"]


def test_words_of_the_search(extension):
    """Every phrase belongs to a page that exists and to one only, and is below the title."""
    pytest.importorskip("docutils", reason="docutils is not installed")
    words = extension("search_words")
    phrases = [phrase.lower() for listed in words.PHRASES.values() for phrase in listed]
    assert len(set(phrases)) == len(phrases)
    assert all((DOCS / f"{page}.md").exists() for page in words.PHRASES)
    source = ["# Rankings\n\nText.\n"]
    words.add_entries(None, "rankings", source)
    assert source[0].startswith(
        "# Rankings\n\n```{eval-rst}\n.. index::\n   ! single: label rankings"
    )
    assert source[0].endswith("```\n\nText.\n")


def test_summaries_of_pages(extension):
    """The first paragraph that says something, cut between words."""
    nodes = pytest.importorskip("docutils.nodes", reason="docutils is not installed")
    words = extension("search_words")
    page = nodes.section("", nodes.paragraph("", "Short."), nodes.paragraph("", "word " * 60))
    found = words.summary_of(page)
    assert found.endswith("word …")
    assert len(found) <= words.MAX_LENGTH + 2
    assert words.summary_of(nodes.section()) == ""
