"""``python -m papers``: the published tables and figures, with our values beside them."""

import os
import platform
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import joblib
import typer

from okforest._utils.plotting import require_matplotlib
from okforest._utils.report import (
    Block,
    Heading,
    Paragraph,
    Table,
    save_figures,
    to_html,
    to_markdown,
)
from okforest.cli.app import Command
from okforest.cli.console import (
    Jobs,
    Out,
    check_jobs,
    console,
    make_writable,
    plain_errors,
    print_message,
    progress,
)
from papers import EXPERIMENTS
from papers.jobs import Cache, Finished, Job, Results, run

TITLE = "Published tables and figures, reproduced"
PACKAGES = ("okforest", "numpy", "scipy", "scikit-learn", "matplotlib")
INTERRUPTED = 130  # the exit code of a program stopped by Ctrl-C


class Which(StrEnum):
    """The experiment to reproduce."""

    image = "image"
    boosting = "boosting"
    friedman = "friedman"
    network = "network"
    irma = "irma"
    all = "all"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Timing(NamedTuple):
    """Results of an experiment and the time of this run in seconds."""

    results: Results
    seconds: float


@app.command(cls=Command)
def reproduce(
    experiment: Annotated[
        Which,
        typer.Argument(
            help="image: completion of digits (ICML 2006, table 1 and figure 1). boosting: ICML "
            "2007, table 1 and figure 1. friedman: Friedman1, the same table. network: ICML 2006, "
            "figure 2, and slides 39 to 44 of the 2007 talk. all: all of these. irma: retrieval of "
            "X-ray images, from the talk of 2009; it needs your own copy of the images."
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A small version: under two minutes for each experiment."),
    ] = False,
    out: Out = Path("okforest-reproduction"),
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder of finished jobs, from which an interrupted run continues; by default "
            "the folder cache in the folder of results."
        ),
    ] = None,
    jobs: Jobs = -1,
) -> None:
    """Run the experiments of the papers; write report.md, report.html and figures.

    Data sets are read from the folder named by OKFOREST_DATA, or downloaded where possible. Press
    Ctrl-C to interrupt: finished jobs are kept, and the same command continues from there.
    """
    with plain_errors():
        # The images of "irma" are not available to us.
        every = [name for name in EXPERIMENTS if name != "irma"]
        names = every if experiment is Which.all else [experiment.value]
        workers = int(joblib.effective_n_jobs(check_jobs(jobs)))
        require_matplotlib()
        files = {name: EXPERIMENTS[name].load() for name in names}  # fail before hours of work
        folder = out / "cache" if cache is None else cache
        make_writable(out, "--out")
        make_writable(folder, "--cache")
        blocks: list[Block] = []
        timings: dict[str, Timing] = {}
        for name in names:
            module: Any = EXPERIMENTS[name]
            size = module.QUICK if quick else module.FULL
            store = Cache(folder, name, module.VERSION, files[name])
            timings[name] = _run(name, module.jobs(size), store, workers)
            blocks += module.blocks(timings[name].results, size)
        command = f"python -m papers {experiment.value}{' --quick' if quick else ''}"
        blocks = [*_introduction(command, quick), *blocks, *_timing_blocks(timings, workers)]
        save_figures(blocks, out / "figures")
        page = to_html(TITLE, blocks, out / "figures")
        (out / "report.html").write_text(page, encoding="utf-8")
        (out / "report.md").write_text(to_markdown(TITLE, blocks), encoding="utf-8")
    print_message(f"the report is in {out}: open {out / 'report.html'}")


def _run(name: str, jobs: list[Job], cache: Cache, workers: int) -> Timing:
    start = perf_counter()
    try:
        with progress(name, len(jobs)) as update:
            results = run(jobs, cache, workers, _JobCounter(jobs, update))
    except KeyboardInterrupt:
        console.print(
            f"interrupted; finished jobs are in {cache.folder}: run the same command to continue",
            soft_wrap=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    except BrokenProcessPool:
        console.print(
            "[bold red]error:[/bold red] a worker process was killed, possibly because memory ran "
            f"out. Finished jobs are in {cache.folder}: run the same command with fewer --jobs.",
            soft_wrap=True,
        )
        raise typer.Exit(1) from None
    cached = sum(one.cached for one in results)
    note = f" ({cached} cached)" if cached else ""
    print_message(f"{name}: {len(jobs)}/{len(jobs)}{note}, {perf_counter() - start:.0f} s")
    return Timing(results, perf_counter() - start)


class _JobCounter:
    """Counts finished jobs; progress is their share of the total cost, without cached jobs."""

    def __init__(self, jobs: list[Job], update: Callable[..., None]):
        self.update = update
        self.cost, self.cost_done = sum(job.cost for job in jobs), 0.0
        self.n_done = self.n_cached = 0

    def __call__(self, done: Finished) -> None:
        self.n_done += 1
        if done.cached:
            self.n_cached += 1
            self.cost -= done.job.cost
        else:
            self.cost_done += done.job.cost
        note = f" ({self.n_cached} cached)" if self.n_cached else ""
        share = self.cost_done / self.cost if self.cost > 0 else 1.0
        self.update(self.n_done, share, note)


def _introduction(command: str, quick: bool) -> list[Block]:
    blocks: list[Block] = [
        Paragraph(
            f"Written by `{command}` (okforest {version('okforest')}) on "
            f"{datetime.now(UTC):%Y-%m-%d}. Columns named paper have the published values; ours "
            "are beside them."
        )
    ]
    if quick:
        blocks.append(
            Paragraph(
                "This is a quick run, with fewer trees, rounds, folds, seeds and parameter values, "
                "as stated in each part. It shows that the experiments work; run without --quick "
                "to compare with the papers."
            )
        )
    return blocks


def _timing_blocks(timings: dict[str, Timing], workers: int) -> list[Block]:
    rows, parts = [], []
    for name, (results, seconds) in timings.items():
        done = list(results)
        cached = sum(one.cached for one in done)
        work = sum(one.seconds for one in done)
        rows.append([name, len(done), cached, _time(work), _time(seconds)])
        for row in dict.fromkeys(one.job.row for one in done):
            times = [one.seconds for one in done if one.job.row == row]
            mean = sum(times) / len(times)
            parts.append([f"{name}: {row}", len(times), f"{mean:.2f}", f"{max(times):.2f}"])
    machine = f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return [
        Heading("Versions and times"),
        Paragraph(
            f"{', '.join(f'{package} {version(package)}' for package in PACKAGES)}; {machine}; "
            f"processes: {workers}."
        ),
        Table(["experiment", "jobs", "cached", "CPU time of all jobs", "time of this run"], rows),
        Paragraph("CPU seconds of each job, including the choice of its parameters:"),
        Table(["job", "number", "mean", "longest"], parts),
    ]


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


if __name__ == "__main__":
    app(prog_name="python -m papers")
