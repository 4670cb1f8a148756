"""How okforest and a peer are compared: same data, in turn, one thread, the best time of several.

Both sides of a row are timed alternately in one process, so that whatever slows the machine down
slows both. Tables have CPU time: on one thread it is the time on the clock of an idle machine,
while on a busy one the clock would be unfair to the slower side, which is interrupted more. Peak
memory and the size of the saved model come from one more run of each side, in a fresh process of
its own.
"""

import argparse
import ctypes
import gc
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from benchmarks import machine

import okforest

Run = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One piece of work that both sides do.

    Parameters
    ----------
    name : str
        What is done.
    prepare : callable
        Loads the data and does what is not timed; returns two functions, okforest's side and the
        peer's (None if there is no peer to run). Each does the work and returns the fitted model,
        if there is one to weigh.
    score : callable, optional
        From a fitted model to its score on other data, where the two sides do not grow the same
        kind of trees.
    skipped : str
        Why the peer's side is not run, or (where ``prepare`` is None) the whole row.
    """

    name: str
    prepare: Callable[[], tuple[Run, Run | None]] | None = None
    score: Callable[[Any], float] | None = None
    skipped: str = ""


@dataclass(frozen=True)
class Comparison:
    """A peer, and the rows of work; both depend on the options."""

    peer: str
    package: str
    data: str
    rows: list[Row]


def parser_of(doc: str) -> argparse.ArgumentParser:
    """Return the options that every comparison has."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--trees", type=positive, default=20, help="trees in a forest")
    parser.add_argument(
        "--samples", type=positive, help="at most so many training rows, to try it out"
    )
    parser.add_argument(
        "--repeats", type=positive, default=3, help="at most so many timings of a side"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=5.0,
        help="seconds after which a row's timings are not repeated",
    )
    parser.add_argument("--full", action="store_true", help="no row of fewer trees or samples")
    parser.add_argument("--only", default="", help="only rows that have this in their names")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    # How a comparison calls itself to weigh one side of one row in a fresh process.
    parser.add_argument("--weigh", nargs=2, metavar=("ROW", "SIDE"), help=argparse.SUPPRESS)
    return parser


def positive(text: str) -> int:
    """Return a number of something, of which there is at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too few; use 1 or more")
    return number


def few_trees(options: argparse.Namespace) -> int:
    """Return the number of trees of rows that take long."""
    return options.trees if options.full else max(1, options.trees // 4)


def compare(comparison: Comparison, options: argparse.Namespace) -> None:
    """Print a table of the rows, and write it as JSON if asked to."""
    if options.weigh:
        row = next(row for row in comparison.rows if row.name == options.weigh[0])
        print(json.dumps(_weigh(row, int(options.weigh[1]))))
        return
    peer_version = machine.version_of(comparison.package)
    versions = {"okforest": okforest.__version__, comparison.peer: peer_version or "not installed"}
    for package in ("numpy", "scipy"):
        versions[package] = machine.version_of(package) or ""
    print(f"### okforest and {comparison.peer}\n")
    print("Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".")
    print(f"Data: {comparison.data}.")
    print(
        f"CPU times, the best of up to {options.repeats} (one thread; no further repeat after "
        f"{options.patience:g} s); the ratio is {comparison.peer}'s time over okforest's.\n"
    )
    scored = any(row.score for row in comparison.rows)
    heads = ["work", "okforest", comparison.peer, "ratio", "peak memory", "saved model"]
    heads += ["R² on test data"] if scored else []
    print(f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
    results, reasons = [], []
    chosen = [row for row in comparison.rows if options.only in row.name]
    for row in chosen:
        result = _measure(row, options)
        results.append(result)
        if row.skipped:
            reasons.append(f"{row.name}: {row.skipped}")
        print(f"| {' | '.join(_cells(result, scored))} |", flush=True)
    if not chosen:
        names = "\n- ".join(row.name for row in comparison.rows)
        print(f"\nNo row has {options.only!r} in its name; there are\n\n- {names}")
    print("\nPeak memory is above what the data take; both columns: okforest / peer.")
    for reason in reasons:
        print(f"\nSkipped: {reason}")
    if options.json:
        report = {
            "peer": comparison.peer,
            "versions": versions,
            "machine": machine.describe(),
            "data": comparison.data,
            "rows": results,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def _measure(row: Row, options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"work": row.name, "skipped": row.skipped}
    if row.prepare is None:
        return result
    sides = [side for side in row.prepare() if side is not None]
    times = alternate(sides, options.repeats, options.patience)
    for name, kept in zip(("okforest", "peer"), times, strict=False):
        clock, cpu = zip(*kept, strict=True)
        result[name] = {"seconds": min(cpu), "clock_seconds": min(clock), "repeats": len(kept)}
    if "peer" in result:
        result["ratio"] = result["peer"]["seconds"] / result["okforest"]["seconds"]
    del sides
    # Nothing is timed here, so that both sides may be weighed at once.
    weighed = [start_afresh("--weigh", row.name, str(number)) for number in range(len(times))]
    for name, process in zip(("okforest", "peer"), weighed, strict=False):
        result[name] |= answer_of(process)
    return result


def start_afresh(*arguments: str) -> subprocess.Popen[str]:
    """Start this program in a fresh process, with further arguments."""
    return subprocess.Popen([*sys.orig_argv, *arguments], stdout=subprocess.PIPE, text=True)


def answer_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the JSON that a process prints as its last line."""
    printed, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, process.args))} has failed")
    return json.loads(printed.splitlines()[-1])


def alternate(sides: list[Run], repeats: int, patience: float) -> list[list[tuple[float, float]]]:
    """Time each side in turn, by the clock and in CPU time, until often or long enough."""
    times: list[list[tuple[float, float]]] = [[] for _ in sides]
    begun = time.perf_counter()
    while len(times[0]) < repeats and (not times[0] or time.perf_counter() - begun < patience):
        for side, kept in zip(sides, times, strict=True):
            start = time.perf_counter(), time.process_time()
            side()
            kept.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return times


def _weigh(row: Row, side: int) -> dict[str, Any]:
    """Return the peak memory of one side, above the level with the data loaded, and its sizes."""
    assert row.prepare is not None
    run = row.prepare()[side]
    assert run is not None
    level = forget_peak()
    model = run()
    weights: dict[str, Any] = {"peak_bytes": max(0, peak() - level)}
    if model is not None:
        weights["model_bytes"] = saved_size(model)
        if row.score:
            weights["score"] = float(row.score(model))
    return weights


def saved_size(model: Any) -> int:
    """Return the size of a model's file: of okforest.save for ours, of joblib.dump for others."""
    if type(model).__module__.startswith("okforest"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            okforest.save(model, path)
            return path.stat().st_size
    sink = _Sink()
    joblib.dump(model, sink)
    return sink.size


class _Sink(io.RawIOBase):
    """A file that keeps nothing but its size: some models take gigabytes."""

    size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        n_bytes = memoryview(data).nbytes
        self.size += n_bytes
        return n_bytes

    def tell(self) -> int:
        return self.size


def forget_peak() -> int:
    """Forget the largest memory so far, and return the present one, in bytes.

    Memory that loading the data has freed goes back to the system first, or fitting would take it
    unseen. Where the system cannot do this, what is less than the peak of loading is not seen.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Return the largest resident memory of this process, in bytes.

    On Linux from its status file, since ru_maxrss may start at the level of the parent process.
    """
    status = machine.field_of("/proc/self/status", "VmHWM")
    if status is not None:
        return int(status.split()[0]) * 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def _cells(result: dict[str, Any], scored: bool) -> list[str]:
    ours, theirs = result.get("okforest", {}), result.get("peer", {})
    missing = "skipped" if result["skipped"] else "–"

    def pair(key: str, form: Callable[[Any], str]) -> str:
        return " / ".join(form(side[key]) if key in side else "–" for side in (ours, theirs))

    cells = [
        result["work"],
        seconds(ours["seconds"]) if ours else missing,
        seconds(theirs["seconds"]) if theirs else missing,
        f"{result['ratio']:.2f}×" if "ratio" in result else "–",
        pair("peak_bytes", megabytes),
        pair("model_bytes", megabytes),
    ]
    return [*cells, pair("score", "{:.3f}".format)] if scored else cells


def seconds(value: float) -> str:
    """Return a time with three digits."""
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def megabytes(value: float) -> str:
    """Return a size with at least two digits."""
    value /= 1e6
    return f"{value:.1f} MB" if value < 10 else f"{value:,.0f} MB"
