"""The application: its version, shared options, and its error without its requirements."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import okforest
from okforest.cli.app import app, index
from okforest.cli.console import check_jobs, make_writable, print_message


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"okforest {okforest.__version__}\n"


def test_info(tmp_path):
    """A description on the standard output; files that are not models exit with code 2."""
    path = tmp_path / "tree.okforest"
    okforest.save(okforest.OKTree(kernel="dirac").fit([[0], [1]], ["a", "b"]), path)
    result = CliRunner().invoke(app, ["info", str(path)])
    assert result.exit_code == 0
    assert result.output == f"{okforest.describe(path)}\n"
    path.write_text("no model")
    result = CliRunner().invoke(app, ["info", str(path)])
    assert result.exit_code == 2
    assert "was not written by okforest.save" in result.output


def test_without_the_extra():
    """The error names the extra to install."""
    code = "import sys; sys.modules['typer'] = None; from okforest.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "pip install 'okforest[cli]'" in result.stderr


COMMANDS = [
    *([], ["network"], ["info"], ["index"]),
    *(["index", one.name] for one in index.registered_commands),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_flags_have_no_type(command):
    """The help shows no type for flags, which take no value."""
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "--help" in result.output
    assert "bool" not in result.output.lower()


@pytest.mark.parametrize("value", ["true", "False"])
def test_flags_take_no_value(tmp_path, value):
    """What follows a flag is not taken for a file, unless its name cannot be mistaken."""
    command = ["network", "f.csv", "links.csv", "--clean", value]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert f"Option '--clean' takes no value: remove '{value}'" in result.output
    command = ["network", "f.csv", "--clean", f"./{value}"]
    assert "the file f.csv does not exist" in CliRunner().invoke(app, command).output
    for after in (["--clean", "--", value], ["--", "--clean", value]):
        command = ["network", "f.csv", "--out", str(tmp_path), *after]
        assert "the file f.csv does not exist" in CliRunner().invoke(app, command).output


def test_help_imports_little():
    """No help imports the packages that take long to import."""
    code = """
import sys
from typer.testing import CliRunner
from okforest.cli.app import app, index
for command in eval(sys.argv[1]):
    assert CliRunner().invoke(app, [*command, "--help"]).exit_code == 0
assert CliRunner().invoke(app, ["--version"]).exit_code == 0
slow = {"joblib", "matplotlib", "numpy", "pandas", "scipy", "sklearn"}
print(sorted(slow & set(sys.modules)))
"""
    run = subprocess.run(
        [sys.executable, "-c", code, repr(COMMANDS)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"


def test_options():
    """The words of the options that several commands share."""
    result = CliRunner().invoke(app, ["network", "--help"], env={"COLUMNS": "200"})
    for words in (
        "--out",
        "Folder for the results; created if it does not exist.",
        "--jobs",
        "Number of cores to use; -1 for all cores.",
    ):
        assert words in result.output


def test_messages_are_not_markup(capsys):
    print_message("[red]a[/red] is in [b]")
    assert capsys.readouterr().err == "[red]a[/red] is in [b]\n"


def test_jobs():
    assert [check_jobs(jobs) for jobs in (-1, 3)] == [-1, 3]
    with pytest.raises(ValueError, match="--jobs is 0; use a positive number, or -1 for all cores"):
        check_jobs(0)


def test_folders(tmp_path):
    make_writable(tmp_path / "a/b", "--out")
    assert (tmp_path / "a/b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"cannot write to .*: Not a .*; choose .* with --out"):
        make_writable(tmp_path / "file/folder", "--out")
