"""The command line of okforest (the extra ``cli``); each command has its own file.

Modules that take long to import are imported by the functions that use them, so that ``--help`` is
fast.
"""

from importlib.util import find_spec

from okforest._utils.errors import install_extra


def main() -> None:
    """Run the command line, or name the extra to install."""
    for package in ("pandas", "rich", "typer"):
        if find_spec(package) is None:
            raise SystemExit(
                f"the command line of okforest requires {package}, which is not installed: "
                f"{install_extra('cli')}"
            )
    from okforest.cli.app import app

    app()
