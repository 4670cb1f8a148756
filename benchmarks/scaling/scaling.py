"""Scaling of the fit with rows, inputs, rank of the outputs, trees and threads.

One quantity varies at a time while the others keep their central values. The outputs are smooth
functions with noise, of full rank. Times are the best of several: CPU times on one thread, and
wall-clock times where the number of threads varies. Prints the exponents b of time ≈ a·xᵇ, fitted
by least squares to the logarithms, and plots the times.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from benchmarks import data, machine
from matplotlib.ticker import FuncFormatter, NullLocator

from okforest import OKBagging, OKExtraTrees
from okforest._utils.report import Table

matplotlib.use("Agg")
from matplotlib import pyplot as plt

CENTRE = {"rows": 2000, "inputs": 64, "rank": 64, "trees": 8, "threads": 1}
STEPS = {
    "rows": [500, 1000, 2000, 4000, 8000, 16000],
    "inputs": [16, 32, 64, 128, 256, 512],
    "rank": [8, 16, 32, 64, 128, 256, 512],
    "trees": [2, 4, 8, 16, 32],
    "threads": [2**i for i in range(7) if 2**i <= (os.cpu_count() or 1)],
}
TITLES = {
    "rows": "rows N",
    "inputs": "inputs p",
    "rank": "rank r of the outputs",
    "trees": "trees T",
    "threads": "threads t (wall-clock)",
}
SYMBOLS = {"rows": "N", "inputs": "p", "rank": "r", "trees": "T", "threads": "t"}
MODELS = {
    "extra-trees, K = √p": (OKExtraTrees, "#1b6ca8", "o"),
    "best-split trees, K = p": (OKBagging, "#d1632a", "s"),
}

Times = dict[str, dict[str, list[float]]]


def main() -> None:
    """Measure, print and plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="timings of each fit")
    parser.add_argument(
        "--divide", type=int, default=1, help="divide the numbers of rows by this, for a test run"
    )
    parser.add_argument("--figure", type=Path, default=Path(__file__).with_suffix(".png"))
    parser.add_argument("--json", type=Path, help="write the times to this file")
    options = parser.parse_args()
    machine.fix_threads(okforest=max(STEPS["threads"]))

    CENTRE["rows"] //= options.divide
    STEPS["rows"] = [step // options.divide for step in STEPS["rows"]]
    start = time.perf_counter()
    times: Times = {
        name: {axis: measure(model, axis, options) for axis in STEPS}
        for name, (model, _, _) in MODELS.items()
    }
    print_exponents(times, options)
    draw(times, options)
    print(f"\nWrote {options.figure}, after {time.perf_counter() - start:.0f} s.")
    if options.json:
        report = {"machine": machine.describe(), "centre": CENTRE, "steps": STEPS, "times": times}
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def measure(model: Any, axis: str, options: argparse.Namespace) -> list[float]:
    """Return the best times along an axis; each repeat visits all steps, to spread noise."""
    tasks = []
    for step in STEPS[axis]:
        setting = CENTRE | {axis: step}
        X, Y = data.smooth(setting["rows"], setting["inputs"], setting["rank"])
        # Features explicitly: with few rows, "auto" might choose the Gram matrix.
        forest = model(
            setting["trees"], embedding="features", random_state=0, n_jobs=setting["threads"]
        )
        tasks.append((forest, X, Y))
    # On one thread, CPU time does not depend on the load of the machine.
    clock = time.perf_counter if axis == "threads" else time.process_time
    times = np.empty((options.repeats, len(tasks)))
    for repeat in times:
        for i, (forest, X, Y) in enumerate(tasks):
            start = clock()
            forest.fit(X, Y)
            repeat[i] = clock() - start
    return times.min(axis=0).tolist()


def exponent(steps: list[int], times: list[float]) -> float:
    """Return b of time ≈ a·xᵇ."""
    return float(np.polyfit(np.log(steps), np.log(times), 1)[0]) if len(steps) > 1 else float("nan")


def print_exponents(times: Times, options: argparse.Namespace) -> None:
    """Print a table of exponents, with the first and last step of each axis."""
    centre = ", ".join(f"{value} {name}" for name, value in CENTRE.items())
    print(f"Centre: {centre}; best of {options.repeats}; {machine.describe()['CPU']}.\n")
    rows = [
        [
            name,
            TITLES[axis],
            f"{STEPS[axis][0]} … {STEPS[axis][-1]}",
            f"{best[0] * 1e3:.3g} … {best[-1] * 1e3:.3g} ms",
            f"{exponent(STEPS[axis], best):+.2f}",
        ]
        for name, axes in times.items()
        for axis, best in axes.items()
    ]
    print(Table(["trees", "axis", "from … to", "time from … to", "exponent"], rows).markdown())


def draw(times: Times, options: argparse.Namespace) -> None:
    """Plot the times on logarithmic axes, with the exponents in the corner of each panel."""
    figure, axes = plt.subplots(1, len(STEPS), figsize=(14, 4.2), sharey=True, layout="constrained")
    for ax, axis in zip(axes, STEPS, strict=True):
        steps = STEPS[axis]
        for line, (name, (_, colour, marker)) in enumerate(MODELS.items()):
            best = times[name][axis]
            ax.loglog(steps, best, marker=marker, color=colour, label=name, lw=2, ms=6)
            ax.text(
                0.05,
                0.97 - 0.09 * line,
                f"∝ {SYMBOLS[axis]}$^{{{exponent(steps, best):.2f}}}$",
                transform=ax.transAxes,
                va="top",
                color=colour,
                fontsize=13,
            )
        ax.axvline(CENTRE[axis], color="0.6", lw=1, ls=":", zorder=0)
        ax.set_xlabel(TITLES[axis], fontsize=12)
        ax.set_xticks(steps, [f"{step:,}" for step in steps], rotation=45)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlim(steps[0] / 1.35, steps[-1] * 1.35)
        ax.grid(True, which="major", color="0.9")
        ax.spines[["top", "right"]].set_visible(False)
    low, high = axes[0].get_ylim()
    axes[0].set_ylim(low, 8 * high)  # room for the exponents
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} s"))
    axes[0].set_ylabel("CPU time of the fit", fontsize=12)
    centre = "{rows:,} rows, {inputs} inputs, {rank} outputs, {trees} trees, 1 thread"
    figure.suptitle(
        "Scaling of the fit, one quantity at a time; dotted lines mark the central values: "
        + centre.format(**CENTRE),
        fontsize=12,
    )
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.savefig(options.figure, dpi=110)


if __name__ == "__main__":
    main()
