"""Run the comparisons and write benchmarks/RESULTS.md: the machine, and one table for each peer."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import machine

from okforest._utils.report import Block, Paragraph, Table, to_markdown

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "RESULTS.md"
PEERS = sorted(path.stem for path in FOLDER.glob("versus_*.py"))
FULL = ["--full", "--trees", "100", "--repeats", "5", "--patience", "60"]


def main() -> None:
    """Run all comparisons; exit with the names of those that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="100 trees, and the large forest")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file to write")
    parser.add_argument("more", nargs="*", help="options of the comparisons, after --")
    options = parser.parse_args()

    tasks = [[peer, *(FULL if options.full else [])] for peer in PEERS]
    tasks += [["simd_levels"], ["one_row_latency"]]
    if options.full:
        tasks.append(["versus_scikit_learn", *FULL, "--large"])
    start = time.perf_counter()
    sections: list[Block] = [Table(["machine", ""], list(machine.describe().items()), text=True)]
    failed = []
    for name, *arguments in tasks:
        module = f"benchmarks.compare.{name}"
        command = [sys.executable, "-m", module, *arguments, *options.more]
        print(f"\n$ python -m {' '.join(command[2:])}", flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, flush=True)
        if done.returncode == 0:
            sections.append(Paragraph(done.stdout.strip()))
        else:
            failed.append(name)
            sections.append(Paragraph(f"## {name}\n\nThis comparison failed and has no table."))
    minutes = (time.perf_counter() - start) / 60
    introduction = Paragraph(
        f"Written by `make bench{'-full' if options.full else ''}` in {minutes:.1f} minutes. "
        "[README.md](README.md) describes what is compared, and how. Times depend on the machine: "
        "run the benchmarks on yours."
    )
    options.out.write_text(to_markdown("Results", [introduction, *sections]))
    print(f"okforest: wrote {options.out}")
    if failed:
        sys.exit(f"okforest: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
