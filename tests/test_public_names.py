"""Every public name has a page in the API reference, a runnable example, and a use in the docs."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import okforest
from public import MODULES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="docs/ is only in the source tree")

# okforest.persistence is imported with okforest, which exports its functions.
FILES = ("describe", "load", "save")
NAMES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (*MODULES, okforest.persistence)
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
    and not (module is okforest.persistence and name in FILES)
}
# Interfaces between parts of the library, which are not public.
INTERNAL = (
    "okforest._utils.compat",
    "okforest.embedding",
    "okforest.engine",
    "okforest.engine.cuda",
)


def test_every_list_of_names():
    """A module with `__all__` is public, a part of a public module, or listed as internal."""
    public = {module.__name__ for module in (*MODULES, okforest.persistence)}
    names = {id(thing) for thing in NAMES.values()}
    for path in (ROOT / "src" / "okforest").rglob("*.py"):
        if not re.search(r"^__all__ ", path.read_text(encoding="utf-8"), re.MULTILINE):
            continue
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name not in public and name not in INTERNAL:
            module = importlib.import_module(name)
            hidden = [name for name in module.__all__ if id(getattr(module, name)) not in names]
            assert not hidden, f"{name} lists names that no public module has"


def listed():
    """Return the names that the pages of the API reference list, with repetitions."""
    names = []
    for page in sorted((DOCS / "api").glob("*.rst")):
        module = None
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif module and re.fullmatch(r"   \w+", line):
                names.append(f"{module}.{line.strip()}")
    return names


def used():
    """Return the words in the code of the guides and of the scripts of the gallery."""
    words = set()
    for page in DOCS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for code in re.findall(r"^```python.*?^```|`[^`\n]+`", text, re.DOTALL | re.MULTILINE):
            words |= set(re.findall(r"\w+", code))
    for script in (ROOT / "examples").rglob("*.py"):
        words |= set(re.findall(r"\w+", script.read_text(encoding="utf-8")))
    return words


def test_api_pages():
    """The pages of the API reference list every public name once, and no other."""
    assert sorted(listed()) == sorted(set(NAMES) - {"okforest.__version__"})


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"okforest.__version__"}))
def test_examples(name):
    """Every docstring has an example; test_docstrings runs them for functions and classes."""
    thing = NAMES[name]
    assert ">>>" in (thing.__doc__ or ""), f"the docstring of {name} has no example"
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        test = doctest.DocTestParser().get_doctest(thing.__doc__, {}, name, None, None)
        assert doctest.DocTestRunner().run(test).failed == 0


def test_every_name_is_used():
    """A guide or a script of the gallery uses every public name."""
    words = used()
    unused = [name for name in NAMES if name.rpartition(".")[2] not in words]
    assert not unused, "no guide and no script of the gallery uses these names"
