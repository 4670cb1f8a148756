"""Metadata of the package: one version, declared dependencies, Python versions, images."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import okforest

ROOT = Path(__file__).parents[1]
if not (ROOT / "docs").exists():
    pytest.skip("docs/ is only in the source tree", allow_module_level=True)
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]

# Packages whose modules have other names, or that come with another one by its definition.
PACKAGES = {
    "PIL": "pillow",
    "cupy": "cupy-cuda13x",
    "distributed": "dask",
    "pydantic_core": "pydantic",
    "sklearn": "scikit-learn",
}
# Users pass graphs and frames of these packages; okforest does not need them.
OF_USERS = {"networkx", "polars"}


def requirements(entries):
    """Return the names of the packages in a list of requirements."""
    return {re.match(r"[\w-]+", entry)[0] for entry in entries}


def imported(folder):
    """Return the packages that the modules of a folder import, by any statement or by name."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                names = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            else:
                continue
            found |= {name.partition(".")[0] for name in names}
    return {PACKAGES.get(name, name) for name in found - sys.stdlib_module_names}


def test_one_version():
    """The version of pyproject.toml is the installed one, and the one to cite; no other is kept."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [PROJECT["version"]]
    assert okforest.__version__ == PROJECT["version"]
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(
            r"^__version__ = [\"']", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == PROJECT["version"]


def test_imports_are_declared():
    """Every package that okforest imports is a dependency or in an extra."""
    extras = PROJECT["optional-dependencies"].values()
    declared = requirements([*PROJECT["dependencies"], *(one for extra in extras for one in extra)])
    assert imported("src") - declared - OF_USERS == {"okforest"}
    tested = requirements(SETTINGS["dependency-groups"]["test"])
    assert imported("papers") - declared - tested == {"okforest", "papers"}


def test_versions_of_python():
    """Wheels are built for the versions of the classifiers."""
    listed = re.findall(r"Python :: 3\.(\d+)", " ".join(PROJECT["classifiers"]))
    assert [f"cp3{minor}-*" for minor in listed] == SETTINGS["tool"]["cibuildwheel"]["build"]
    assert PROJECT["requires-python"] == f">=3.{listed[0]}"


def test_types_are_shipped():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src" / "okforest" / "py.typed").exists()


def test_images_have_addresses():
    """PyPI shows the images of README.md, whose addresses are in the repository."""
    text = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    images = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    raw = PROJECT["urls"]["Repository"].replace("github.com", "raw.githubusercontent.com")
    assert images
    for image in images:
        assert image.startswith(f"{raw}/main/")
        assert (ROOT / image.removeprefix(f"{raw}/main/")).exists()
