"""List the versions of a published documentation site.

    python tools/docs_versions.py SITE URL

SITE holds one folder for each version, such as 0.1.0, 0.2.0 and dev. This writes ``switcher.json``,
which the version switcher of the pydata theme reads, and an ``index.html`` that leads to the newest
release, or to dev if there is none.
"""

import argparse
import json
import re
from pathlib import Path

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>okforest</title>
<meta http-equiv="refresh" content="0; url={name}/">
<link rel="canonical" href="{url}">
<a href="{name}/">okforest {name}</a>
"""


def entries(site: Path, url: str) -> list[dict[str, object]]:
    """Return the entries of the switcher, the newest release first and dev before it."""
    releases = sorted(
        (folder.name for folder in site.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", folder.name)),
        key=lambda name: [int(part) for part in name.split(".")],
        reverse=True,
    )
    root = url.rstrip("/")
    found: list[dict[str, object]] = []
    if (site / "dev").is_dir():
        found.append({"name": "dev", "version": "dev", "url": f"{root}/dev/"})
    for position, name in enumerate(releases):
        entry: dict[str, object] = {"name": name, "version": name, "url": f"{root}/{name}/"}
        if position == 0:
            entry |= {"name": f"{name} (stable)", "preferred": True}
        found.append(entry)
    if not found:
        raise SystemExit(f"{site} has no folder named dev or like 0.1.0; copy a built site there.")
    return found


def main() -> None:
    """Write switcher.json and index.html."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder with one folder for each version")
    parser.add_argument("url", help="address at which the folder is published")
    options = parser.parse_args()
    found = entries(options.site, options.url)
    (options.site / "switcher.json").write_text(json.dumps(found, indent=2) + "\n")
    first = next((entry for entry in found if entry.get("preferred")), found[0])
    page = PAGE.format(name=first["version"], url=first["url"])
    (options.site / "index.html").write_text(page)
    (options.site / ".nojekyll").touch()


if __name__ == "__main__":
    main()
