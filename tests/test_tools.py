"""The tools of a release: versions of the documentation site, and its publication."""

import importlib.util
import json
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

make_tables = pytest.importorskip("make_tables", reason="docs/ is only in the source tree")

ROOT = Path(__file__).parent.parent
TOOL = ROOT / "tools" / "docs_versions.py"
PUBLISH = ROOT / "tools" / "publish_docs.sh"
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


@pytest.mark.skipif(not (shutil.which("sh") and shutil.which("git")), reason="needs sh and git")
def test_the_site_is_published(tmp_path):
    """The first call creates the branch; later ones replace a version, and keep the others."""

    def git(*words):
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=tmp_path / "clone",
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def publish(text, folder):
        (tmp_path / "built" / "page.html").write_text(text)
        script = ["sh", str(PUBLISH), str(tmp_path / "built"), folder, "https://example.org/x"]
        run = subprocess.run(
            script, cwd=tmp_path / "clone", capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "remote")], check=True)
    (tmp_path / "clone").mkdir()
    (tmp_path / "built" / "_static").mkdir(parents=True)
    git("init", "--quiet")
    git("remote", "add", "origin", str(tmp_path / "remote"))
    (tmp_path / "clone" / "source.txt").write_text("source")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    assert "published dev" in publish("one", "dev")
    assert "published 0.1.0" in publish("two", "0.1.0")
    assert "published dev" in publish("three", "dev")
    assert "nothing has changed" in publish("three", "dev")
    git("fetch", "--quiet", "origin", "gh-pages")
    files = git("ls-tree", "-r", "--name-only", "FETCH_HEAD").split()
    expected = {"0.1.0/page.html", "dev/page.html", "index.html", "switcher.json", ".nojekyll"}
    assert set(files) == expected
    assert git("show", "FETCH_HEAD:dev/page.html") == "three"
    assert git("show", "FETCH_HEAD:0.1.0/page.html") == "two"
    assert git("status", "--porcelain") == ""
    assert len(git("worktree", "list").splitlines()) == 1


def test_the_workflow_names_the_version():
    """The workflow sets the variables that the configuration of the site reads."""
    workflow = (ROOT / ".github" / "workflows" / "docs.yml").read_text()
    read = set(re.findall(r"OKFOREST_DOCS_\w+", (ROOT / "docs" / "conf.py").read_text()))
    assert set(re.findall(r"OKFOREST_DOCS_\w+", workflow)) == read - {"OKFOREST_DOCS_OFFLINE"}


def test_versioned_site(monkeypatch):
    """A site that is built for publication has a switcher, and knows which version it is."""
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setenv("OKFOREST_DOCS_OFFLINE", "1")
    monkeypatch.setenv("OKFOREST_DOCS_URL", "https://example.org/okforest/")
    monkeypatch.setenv("OKFOREST_DOCS_VERSION", "0.1.0")
    found = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    assert found["html_baseurl"] == "https://example.org/okforest/0.1.0/"
    assert found["html_theme_options"]["switcher"] == {
        "json_url": "https://example.org/okforest/switcher.json",
        "version_match": "0.1.0",
    }


def test_source_distribution(tmp_path):
    """It has sources, and neither compiled files, stubs of this machine nor the documentation."""
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    kept = ["src/okforest/__init__.py", "native/CMakeLists.txt", "tests/test_imports.py"]
    other = ["src/okforest/_core.abi3.so", "src/okforest/_core.pyi", "docs/conf.py", "build/x.py"]
    for name in kept + other:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    code = "from scikit_build_core.build import build_sdist; build_sdist('dist')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
    (built,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= set(kept)
    assert not names & set(other)


def test_table_of_wheels(monkeypatch, tmp_path):
    """A row for each installed wheel, below a header that the guides can find."""
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "check_wheel.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for tag, size in (("cp311-cp311-linux", 2_000_000), ("cp312-abi3-linux", 3_000_000)):
        with zipfile.ZipFile(
            tmp_path / f"okforest-0.1.0-{tag}.whl", "w", zipfile.ZIP_DEFLATED
        ) as archive:
            archive.writestr("okforest/_core.so", bytes(size))
    texts = SimpleNamespace(read_text=lambda _: "Generator: x\nTag: cp312-abi3-linux\n")
    monkeypatch.setattr(tool, "distribution", lambda _: texts)
    for seconds in (0.204, 0.3):
        tool.add_row(tmp_path, tmp_path / "wheels.md", seconds)
    python = "{}.{}".format(*sys.version_info)
    lines = make_tables.find((tmp_path / "wheels.md").read_text(encoding="utf-8"), "Wheels")
    assert lines[2:] == [
        f"| cp312-abi3-linux | 0.0 | 3.0 | {python} | {seconds} s |" for seconds in ("0.20", "0.30")
    ]


def test_lowest_versions():
    """Each package is held at its lowest minor version, whatever its extras; others are errors."""
    constraints = runpy.run_path(str(ROOT / "tools" / "oldest.py"))["constraints"]
    project = {
        "project": {
            "dependencies": ["numpy>=2.0"],
            "optional-dependencies": {"images": ["pillow>=10"], "cuda": ["cupy-cuda13x>=14"]},
        },
        "dependency-groups": {"test": ["dask[array,distributed]>=2025.7", "pillow>=10"]},
    }
    assert constraints(project) == ["dask==2025.7.*", "numpy==2.0.*", "pillow==10.0.*"]
    project["project"]["dependencies"] = ["numpy"]
    with pytest.raises(ValueError, match="'numpy' is not of the form name>=version"):
        constraints(project)
