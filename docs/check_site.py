"""Check the built site: links within it lead somewhere, and its search finds what it should.

    python docs/check_site.py build/docs

No network is used; links to other sites are not followed.
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SEARCHES = ("label ranking", "conformal", "survival")


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the attributes that link or are linked to."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.add(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return the links to files or anchors that do not exist."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if "_static" not in path.parts  # templates of the theme
    }
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            name = f"{path.relative_to(site)} links to {link}"
            anchor = unquote(parts.fragment)
            if not target.exists():
                broken.append(name)
            elif anchor and target in pages and anchor not in pages[target].anchors:
                broken.append(f"{name}, which has no such anchor")
    return broken


def found(site: Path, phrase: str) -> list[str]:
    """Return the titles of the pages that the search finds: those with all words of a phrase."""
    from sphinx.search.en import SearchEnglish

    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)", text, re.DOTALL)[1])
    stemmer = SearchEnglish({})
    pages = None
    for word in phrase.split():
        stem = stemmer.stem(word.lower())
        with_word: set[int] = set()
        for terms in (index["terms"], index["titleterms"]):
            entry = terms.get(stem, [])
            with_word |= set(entry if isinstance(entry, list) else [entry])
        pages = with_word if pages is None else pages & with_word
    return sorted(index["titles"][page] for page in pages or ())


def main() -> None:
    """Check the site in the folder that the command line names."""
    site = Path(sys.argv[1]).resolve()
    problems = broken_links(site)
    for phrase in SEARCHES:
        titles = found(site, phrase)
        print(f"search for {phrase!r}: {len(titles)} pages")
        if not titles:
            problems.append(f"the search does not find {phrase!r}")
    if problems:
        sys.exit("\n".join(problems))
    print("no broken links")


if __name__ == "__main__":
    main()
