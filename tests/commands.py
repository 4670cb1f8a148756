"""The command ``okforest index``, run in this process."""

from typer.testing import CliRunner

from okforest.cli.app import app

SMALL = ["--trees", "3", "--subwindows", "20", "--size", "8", "--jobs", "1"]


def run(*arguments, code=0):
    """Run the command; return what it prints, on both streams."""
    result = CliRunner().invoke(app, ["index", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result
