"""The command line of okforest (``pip install 'okforest[cli]'``); each command has its own file."""


def main() -> None:
    """Run the command line, or name the extra to install."""
    try:
        import pandas  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        raise SystemExit(
            f"the command line of okforest requires {error.name}, which is not installed: "
            "pip install 'okforest[cli]'"
        ) from None
    from okforest.cli._app import app

    app()
