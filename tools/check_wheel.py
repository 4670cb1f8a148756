"""Check an installed okforest from outside the repository: it runs the ten lines of README.md.

Prints the version, where it is installed, the score of the example and the time of the import. With
a folder of wheels and a file, adds a row with the sizes of the wheel that is installed to the file:

    python tools/check_wheel.py [WHEELS REPORT]
"""

import re
import statistics
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLOCK = (
    "from time import process_time as now; import sklearn.base; start = now(); import okforest;"
    "print(now() - start)"
)
HEADER = """\
Written by `make wheel`.

### Wheels

| wheel | MB | MB unpacked | Python | import |
| --- | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    """Run the first Python block of README.md against the installed package."""
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    if block is None:
        raise SystemExit("README.md has no Python block")
    import okforest

    place = Path(okforest.__file__).parent
    if ROOT / "src" in place.parents:
        raise SystemExit(f"okforest was imported from the repository, {place}: install a wheel")
    print(
        f"okforest {okforest.__version__} on Python {sys.version.split()[0]}: {place}", flush=True
    )
    exec(compile(block[1], "README.md", "exec"), {"__name__": "__main__"})
    seconds = statistics.median(
        float(subprocess.run([sys.executable, "-c", CLOCK], check=True, stdout=-1).stdout)
        for _ in range(7)
    )
    print(f"import okforest after scikit-learn: {seconds:.2f} s of CPU time (median of seven)")
    if len(sys.argv) > 1:
        add_row(Path(sys.argv[1]), Path(sys.argv[2]), seconds)


def add_row(wheels: Path, report: Path, seconds: float) -> None:
    """Add the sizes of the installed wheel and the time of its import to a table."""
    tag = re.search(r"^Tag: (\S+)", distribution("okforest").read_text("WHEEL"), re.MULTILINE)[1]
    (wheel,) = wheels.glob(f"*-{tag.rpartition('-')[0]}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if not report.exists():
        report.write_text(HEADER, encoding="utf-8")
    python = "{}.{}".format(*sys.version_info)
    row = [tag, f"{wheel.stat().st_size / 1e6:.1f}", f"{unpacked / 1e6:.1f}", python]
    with report.open("a", encoding="utf-8") as file:
        file.write(f"| {' | '.join([*row, f'{seconds:.2f} s'])} |\n")


if __name__ == "__main__":
    main()
