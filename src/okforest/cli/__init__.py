"""The command line of okforest (the extra ``cli``); each command has its own file."""

from okforest._available import install_extra


def main() -> None:
    """Run the command line, or name the extra to install."""
    try:
        import pandas  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        raise SystemExit(
            f"the command line of okforest requires {error.name}, which is not installed: "
            f"{install_extra('cli')}"
        ) from None
    from okforest.cli._app import app

    app()
