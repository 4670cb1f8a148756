"""okforest on the command line (``pip install okforest[cli]``): one file for each command."""


def main() -> None:
    """Run the command line, or say what to install."""
    try:
        import pandas  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        raise SystemExit(
            f"okforest on the command line needs {error.name}, which is not installed; "
            "pip install okforest[cli]"
        ) from None
    from okforest.cli._app import app

    app()
