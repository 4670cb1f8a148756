"""Print pip constraints that hold each package at the lowest version in pyproject.toml.

``numpy>=2.0`` becomes ``numpy==2.0.*``: the lowest minor version, with its corrections.
Versions of CuPy are left open: it needs a GPU.
"""

import re
import tomllib
from pathlib import Path
from typing import Any


def constraints(project: dict[str, Any]) -> list[str]:
    """Return a constraint for each package that okforest or its tests need, in order."""
    needed = [*project["project"]["dependencies"], *project["dependency-groups"]["test"]]
    for extra, requirements in project["project"]["optional-dependencies"].items():
        if not extra.startswith("cuda"):
            needed += requirements
    return sorted({_lowest(requirement) for requirement in needed})


def _lowest(requirement: str) -> str:
    found = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement)
    if found is None:
        raise ValueError(
            f"{requirement!r} is not of the form name>=version; write a lowest version."
        )
    name, floor = found.groups()
    major, minor = (*floor.split("."), "0")[:2]
    return f"{name}=={major}.{minor}.*"


if __name__ == "__main__":
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    print(*constraints(tomllib.loads(pyproject.read_text())), sep="\n")
