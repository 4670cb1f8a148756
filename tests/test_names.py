"""Names of okforest in texts and scripts exist: modules, functions, files and commands."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
import sklearn.compose
import sklearn.datasets

import okforest
from public import MODULES

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").exists(), reason="docs/ is only in the source tree"
)

TEXTS = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("docs/**/*.rst")]
TEXTS = sorted(path for path in TEXTS if not {"generated", "gallery"} & set(path.parts))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FOLDERS = ("benchmarks", "docs", "examples", "papers", "tools")
SCRIPTS = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "generated" not in path.parts and path.parts[-3:-1] != ("docs", "gallery")
)
DOTTED = re.compile(r"(?<![\w./'-])okforest(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(r"(?<![\w./-])(?:src|okforest|papers|tools|docs|benchmarks|native)/[\w/]+\.\w+")
CODE = re.compile(r"^```[a-z]*\n(.*?)^```|`([^`\n]+)`", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:python -m )?okforest ([a-z]+)(?: ([a-z]+))?", re.MULTILINE)
OPTIONAL = {"cupy", "distributed", "fastapi", "PIL", "clarabel", "uvicorn", "httpx"}
# Names of okforest among the words of a text: models, and verbs with an object.
WORD = re.compile(
    r"(?<![\w./-])(?:OK[A-Z][a-z]\w+|(?:compare|cross_validate|export|fetch|load|make|plot|predict|"
    r"read|select|tune)_[a-z]\w+)(?![\w/]*\.(?:md|py|sh))"
)
SPAN = re.compile(r"``([^`]+)``|`([^`\n]+)`")


@pytest.fixture(scope="module")
def known():
    """Return the public names, their methods, parameters and documented attributes."""
    names = {*dir(sklearn.compose), *dir(sklearn.datasets)}
    for module in (*MODULES, okforest.persistence):
        for name in module.__all__:
            thing = getattr(module, name)
            names.add(name)
            if inspect.isclass(thing):
                names |= {*dir(thing), *re.findall(r"\w+", thing.__doc__ or "")}
            elif inspect.isfunction(thing):
                names |= set(inspect.signature(thing).parameters)
    return names


def exists(name):
    """Return whether a dotted name is a module or something in one.

    Attributes that only instances have count if the docstring of their class names them.
    """
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError as error:
            if error.name in OPTIONAL:
                return True
            continue
        for part in parts[n:]:
            if not hasattr(thing, part):
                documented = isinstance(thing, type) and re.search(rf"\b{part}\b", thing.__doc__)
                return bool(documented) and part == parts[-1]
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("path", [*TEXTS, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_dotted_names(path):
    """Names such as okforest.kernels.RBF in guides, docstrings and comments exist."""
    text = path.read_text(encoding="utf-8")
    missing = {name for name in set(DOTTED.findall(text)) if not exists(name)}
    assert not missing


@pytest.mark.parametrize("path", [*TEXTS, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_words(path, known):
    """Models and functions that a text names alone, such as OKTree or load_cora, exist."""
    text = re.sub("```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    spans = "\n".join(double or single for double, single in SPAN.findall(text))
    assert not set(WORD.findall(spans)) - known


def test_wrong_names():
    """A name that is gone is found, whatever part of it is wrong."""
    for name in ("okforest.papers", "okforest.kernels.Kernel", "okforest.OKTree.leaves_of"):
        assert not exists(name)
    for name in ("okforest.network", "okforest.models.OKTree", "okforest.OKTree.trees_"):
        assert exists(name)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_commands(path):
    """Files of the repository that a text names exist, and so do commands."""
    text = path.read_text(encoding="utf-8")
    files = {name.removesuffix(".") for name in FILE.findall(text)}
    places = (ROOT, ROOT / "src", path.parent)
    assert not {name for name in files if not any((place / name).exists() for place in places)}
    typer = pytest.importorskip("typer", reason="Typer is not installed")
    app = importlib.import_module("okforest.cli.app").app
    commands = typer.main.get_command(app).commands
    code = "\n".join(block or span for block, span in CODE.findall(text))
    for name, sub in COMMAND.findall(code):
        assert name in commands, f"okforest {name} is not a command"
        if name == "index" and sub:
            assert sub in commands["index"].commands, f"okforest index {sub} is not a command"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_of_scripts(path):
    """What scripts import from okforest exists, also where no test runs them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "okforest"
        for alias in node.names
        if alias.name != "*"
    }
    assert not {name for name in names if not exists(name)}
