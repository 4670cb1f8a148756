"""Check an installed okforest from outside the repository: it runs the ten lines of README.md.

Prints the version, where it is installed, the score of the example and the time of the import.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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
    clock = (
        "from time import perf_counter as now; import sklearn.base; start = now(); import okforest;"
        "print(f'import okforest after scikit-learn: {now() - start:.2f} s')"
    )
    subprocess.run([sys.executable, "-c", clock], check=True)


if __name__ == "__main__":
    main()
