"""What the command says of itself."""

from typer.testing import CliRunner

import okforest
from okforest.cli._app import app


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"okforest {okforest.__version__}\n"
