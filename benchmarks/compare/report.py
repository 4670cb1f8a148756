"""Run the comparisons and write benchmarks/RESULTS.md: the machine, and a table for each peer."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import machine

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "RESULTS.md"
PEERS = sorted(path.stem for path in FOLDER.glob("versus_*.py"))
FULL = ["--full", "--trees", "100", "--repeats", "5", "--patience", "60"]


def main() -> None:
    """Run all, or name what has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="100 trees, and the large forest")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the file to write")
    parser.add_argument("more", nargs="*", help="options of the comparisons, after --")
    options = parser.parse_args()

    works = [[peer] for peer in PEERS]
    if options.full:
        works = [[*work, *FULL] for work in works]
        works.append(["versus_scikit_learn", *FULL, "--large"])
    start = time.perf_counter()
    lines = [f"| {key} | {value} |" for key, value in machine.describe().items()]
    sections = ["| machine | |\n|---|---|\n" + "\n".join(lines)]
    failed = []
    for name, *arguments in works:
        module = f"benchmarks.compare.{name}"
        command = [sys.executable, "-m", module, *arguments, *options.more]
        print(f"\n$ python -m {' '.join(command[2:])}", flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, flush=True)
        if done.returncode == 0:
            sections.append(done.stdout.strip())
        else:
            failed.append(name)
            sections.append(f"### {name}\n\nThis comparison has failed; it is not in the tables.")
    took = time.perf_counter() - start
    how = "make bench-full" if options.full else "make bench"
    head = (
        "# Results\n\n"
        f"As produced by `{how}` in {took / 60:.1f} minutes; what is compared, and how, is in "
        "[README.md](README.md). Times are of this machine and this day: run it on yours."
    )
    options.output.write_text("\n\n".join([head, *sections]) + "\n")
    print(f"okforest: wrote {options.output}")
    if failed:
        sys.exit(f"okforest: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
