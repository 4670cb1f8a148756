"""The tools of a release: versions of the documentation site."""

import json
import runpy
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "docs_versions.py"
if not TOOL.exists():
    pytest.skip("tools/ is only in the source tree", allow_module_level=True)


@pytest.fixture
def list_versions(monkeypatch, tmp_path):
    """Return a function of folder names that runs the tool, and returns the site."""

    def run(*names):
        for name in names:
            (tmp_path / name).mkdir()
        monkeypatch.setattr("sys.argv", [TOOL.name, str(tmp_path), "https://example.org/okforest"])
        runpy.run_path(str(TOOL), run_name="__main__")
        return tmp_path

    return run


def test_versions_are_sorted_by_number(list_versions):
    """0.10.0 is newer than 0.9.0, and is where the site leads; other folders are no versions."""
    site = list_versions("0.9.0", "0.10.0", "dev", "images", "1.0.0rc1")
    found = json.loads((site / "switcher.json").read_text())
    assert [entry["version"] for entry in found] == ["dev", "0.10.0", "0.9.0"]
    assert [entry["version"] for entry in found if entry.get("preferred")] == ["0.10.0"]
    assert found[1]["url"] == "https://example.org/okforest/0.10.0/"
    assert 'url=0.10.0/"' in (site / "index.html").read_text()


def test_before_the_first_release(list_versions):
    """The site leads to dev."""
    assert 'url=dev/"' in (list_versions("dev") / "index.html").read_text()


def test_no_versions(list_versions):
    """A folder without versions is an error."""
    with pytest.raises(SystemExit, match="no folder named dev"):
        list_versions("other")
