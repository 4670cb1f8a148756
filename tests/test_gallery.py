"""The scripts of the gallery run without warnings, and end in figures with labels."""

import re
import runpy
from pathlib import Path

import matplotlib
import pytest

GALLERY = Path(__file__).parent.parent / "examples" / "gallery"
if not GALLERY.exists():
    pytest.skip("examples/ is only in the source tree", allow_module_level=True)
plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")

SCRIPTS = sorted(GALLERY.glob("*/plot_*.py"))
FAST = {"plot_image_completion.py", "plot_label_sets.py", "plot_own_kernel.py"}


def cases():
    """Return the scripts as cases; all but a few are slow."""
    return [
        pytest.param(path, id=path.stem, marks=() if path.name in FAST else pytest.mark.slow)
        for path in SCRIPTS
    ]


@pytest.mark.parametrize("path", cases())
def test_script_runs(path, monkeypatch, tmp_path):
    """A script runs anywhere, on its own data, and leaves a figure that can be drawn."""
    text = path.read_text()
    for name, used in {
        "networkx": "networkx" in text,
        "pandas": "pandas" in text,
        "clarabel": "priors" in text,
        "distributed": "dask" in text,
    }.items():
        if used:
            pytest.importorskip(name, reason=f"{name} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OKFOREST_DATA", raising=False)
    with matplotlib.rc_context():
        matplotlib.use("Agg")
        plt.close("all")
        try:
            runpy.run_path(str(path), run_name="__main__")
            assert plt.get_fignums()
            for number in plt.get_fignums():
                plt.figure(number).savefig(tmp_path / f"{number}.png")
        finally:
            plt.close("all")
    assert {path.suffix for path in tmp_path.iterdir()} == {".png"}, "a script left files behind"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_layout_of_a_script(path):
    """A script opens with a title that is underlined in full, and shows its figure at the end."""
    text = path.read_text()
    title, line, blank = re.match(r'"""\n(.+)\n(=+)\n(.*)\n', text).groups()
    assert len(line) == len(title)
    assert not blank
    assert text.endswith("plt.show()\n")
    assert "fetch_" not in text, "a script must not need data sets from elsewhere"


def test_sections():
    """There are at least 25 scripts, and every section has a header."""
    assert len(SCRIPTS) >= 25
    assert len({path.name for path in SCRIPTS}) == len(SCRIPTS), "names are also page names"
    for section in [GALLERY, *{path.parent for path in SCRIPTS}]:
        assert (section / "README.rst").exists()
