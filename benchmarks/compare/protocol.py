"""The protocol of comparisons: same data, alternating runs, one thread, the best of several times.

Both sides of a row are timed alternately in one process, so that a busy machine slows both equally.
Tables show CPU time: with one thread it equals the wall-clock time of an idle machine, while on a
busy machine wall-clock time penalises the slower side, which is interrupted more often. Peak memory
and the size of the saved model come from one additional run of each side in a fresh process.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.compare.memory import peak, read_answer, reset_peak, saved_size, start_process

import okforest
from okforest._utils.report import Table

Run = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """A task for both sides.

    Parameters
    ----------
    name : str
        Name of the task.
    prepare : callable
        Loads the data and prepares what is not timed. Returns two functions, okforest's side and
        the peer's (None if the peer cannot run). Each performs the task and returns the fitted
        model, if any, for its size to be measured.
    score : callable, optional
        Returns the score of a fitted model on test data, where the two sides fit different models.
    skipped : str
        Reason why the peer's side is not run.
    """

    name: str
    prepare: Callable[[], tuple[Run, Run | None]]
    score: Callable[[Any], float] | None = None
    skipped: str = ""


@dataclass(frozen=True)
class Comparison:
    """A peer, the package that provides it (empty if several do), the data and the rows."""

    peer: str
    package: str
    data: str
    rows: list[Row]


def make_parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every comparison."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--trees", type=positive_int, default=20, help="trees in a forest")
    parser.add_argument("--samples", type=positive_int, help="maximum number of training rows")
    parser.add_argument(
        "--repeats", type=positive_int, default=10, help="maximum number of timings"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=5.0,
        help="seconds after which a side of a row is not timed a third time",
    )
    parser.add_argument("--full", action="store_true", help="all trees and samples in every row")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    # A comparison calls itself with this option to measure one side in a fresh process.
    parser.add_argument("--memory-of", nargs=2, metavar=("ROW", "SIDE"), help=argparse.SUPPRESS)
    return parser


def positive_int(text: str) -> int:
    """Return a number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too small; use 1 or more")
    return number


def few_trees(options: argparse.Namespace) -> int:
    """Return the number of trees for slow rows."""
    return options.trees if options.full else max(1, options.trees // 4)


def compare(comparison: Comparison, options: argparse.Namespace) -> None:
    """Print a table of the rows, and write the measurements as JSON if requested."""
    if options.memory_of:
        row = next(row for row in comparison.rows if row.name == options.memory_of[0])
        print(json.dumps(_measure_memory(row, int(options.memory_of[1]))))
        return
    packages = {comparison.peer: comparison.package} if comparison.package else {}
    versions = find_versions(packages)
    rows = [row for row in comparison.rows if options.only in row.name]
    results = []
    for row in rows:
        print_progress(row.name)
        results.append(_measure(row, options))
    scored = any(row.score for row in rows)
    header = ["task", "okforest", comparison.peer, "ratio", "peak memory", "saved model"]
    header += ["R² on test data"] if scored else []
    print(f"## okforest and {comparison.peer}\n")
    print("Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".")
    print(f"Data: {comparison.data}.")
    print(
        f"CPU times, the best of two to {options.repeats}, as many as {options.patience:g} s allow "
        f"(one thread). The ratio is {comparison.peer}'s time divided by okforest's."
    )
    print("Peak memory does not include the loaded data; both sizes are okforest / peer.\n")
    print(Table(header, [_cells(result, scored) for result in results]).markdown())
    if not rows:
        print("\n" + no_row(options.only, [row.name for row in comparison.rows]))
    for reason in dict.fromkeys(row.skipped for row in rows if row.skipped):
        print(f"\nSkipped: {reason}")
    write_json(options.json, peer=comparison.peer, versions=versions, rows=results)


def no_row(only: str, names: Sequence[str]) -> str:
    """Return what to print if no row contains the text of ``--only``."""
    return f"No row contains {only!r}; the rows are\n\n- " + "\n- ".join(names)


def find_versions(packages: dict[str, str]) -> dict[str, str]:
    """Return the versions of okforest, NumPy, SciPy and the given packages, by title."""
    packages = packages | {"numpy": "numpy", "scipy": "scipy"}
    found = {title: machine.version_of(name) or "not installed" for title, name in packages.items()}
    return {"okforest": okforest.__version__} | found


def print_progress(text: str) -> None:
    """Print a line to stderr, apart from the table."""
    print(f"measuring: {text}", file=sys.stderr, flush=True)


def write_json(path: Path | None, **report: Any) -> None:
    """Write a description of the machine and a report to a file, if there is one."""
    if path is not None:
        path.write_text(json.dumps({"machine": machine.describe()} | report, indent=1) + "\n")


def _measure(row: Row, options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"task": row.name, "skipped": row.skipped}
    sides = [side for side in row.prepare() if side is not None]
    times = time_alternately(sides, options.repeats, options.patience)
    for name, timings in zip(("okforest", "peer"), times, strict=False):
        clock, cpu = zip(*timings, strict=True)
        result[name] = {"seconds": min(cpu), "clock_seconds": min(clock), "repeats": len(timings)}
    if "peer" in result:
        result["ratio"] = result["peer"]["seconds"] / result["okforest"]["seconds"]
    del sides
    # Nothing is timed here, so both sides may run at once.
    processes = [start_process("--memory-of", row.name, str(side)) for side in range(len(times))]
    for name, process in zip(("okforest", "peer"), processes, strict=False):
        result[name] |= read_answer(process)
    return result


def time_alternately(
    sides: list[Run], repeats: int, patience: float
) -> list[list[tuple[float, float]]]:
    """Return wall-clock and CPU times of each side, until its repeats or patience are exhausted.

    Every side is timed at least twice. The quick side continues after the slow one has stopped.
    """
    times: list[list[tuple[float, float]]] = [[] for _ in sides]

    def goes_on(timings: list[tuple[float, float]]) -> bool:
        spent = sum(clock for clock, _ in timings)
        return len(timings) < min(2, repeats) or (len(timings) < repeats and spent < patience)

    while any(map(goes_on, times)):
        for side, timings in zip(sides, times, strict=True):
            if goes_on(timings):
                start = time.perf_counter(), time.process_time()
                side()
                timings.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return times


def _measure_memory(row: Row, side: int) -> dict[str, Any]:
    """Return the peak memory of one side beyond the loaded data, its size and score."""
    run = row.prepare()[side]
    assert run is not None
    level = reset_peak()
    model = run()
    measured: dict[str, Any] = {"peak_bytes": max(0, peak() - level)}
    if model is not None:
        measured["model_bytes"] = saved_size(model)
        if row.score:
            measured["score"] = float(row.score(model))
    return measured


def _cells(result: dict[str, Any], scored: bool) -> list[str]:
    ours, theirs = result["okforest"], result.get("peer", {})

    def pair(key: str, form: Callable[[Any], str]) -> str:
        return " / ".join(form(side[key]) if key in side else "–" for side in (ours, theirs))

    cells = [
        result["task"],
        format_seconds(ours["seconds"]),
        format_seconds(theirs["seconds"]) if theirs else "skipped",
        f"{result['ratio']:.2f}×" if theirs else "–",
        pair("peak_bytes", format_bytes),
        pair("model_bytes", format_bytes),
    ]
    return [*cells, pair("score", "{:.3f}".format)] if scored else cells


def format_seconds(value: float) -> str:
    """Return a time with three significant digits."""
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def format_bytes(value: float) -> str:
    """Return a size in megabytes."""
    value /= 1e6
    return f"{value:.1f} MB" if value < 10 else f"{value:,.0f} MB"
