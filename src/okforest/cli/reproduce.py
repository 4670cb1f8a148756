"""``okforest reproduce``: the tables and figures of the papers, ours beside theirs."""

import os
import platform
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import typer

from okforest.cli._console import console, plain_errors
from okforest.cli._jobs import JobProgress
from okforest.cli._page import Page
from okforest.inspection._matplotlib import require
from okforest.papers import (
    EXPERIMENTS,
    Block,
    Cache,
    Figure,
    Heading,
    Paragraph,
    Results,
    Table,
    as_markdown,
    run,
    save_figures,
)

TITLE = "Figures of the papers, reproduced"
PACKAGES = ("okforest", "numpy", "scipy", "scikit-learn", "matplotlib")
STOPPED = 130  # the exit code of a program that Ctrl-C ended


class Which(StrEnum):
    """What to reproduce."""

    image = "image"
    boosting = "boosting"
    friedman = "friedman"
    network = "network"
    all = "all"


class Timing(NamedTuple):
    """What an experiment has found, and how long that took this time."""

    results: Results
    seconds: float


def reproduce(
    experiment: Annotated[
        Which,
        typer.Argument(
            help="image: completion of digits (ICML 2006, table 1 and figure 1). boosting: ICML "
            "2007, table 1 and figure 1. friedman: Friedman1, the same table. network: ICML 2006, "
            "figure 2, and slides 39 to 44 of 2007. all: all of these."
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Less of everything: below two minutes an experiment, to see it work."
        ),
    ] = False,
    output: Annotated[Path, typer.Option(help="Folder of the report.")] = Path(
        "okforest-reproduction"
    ),
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder of finished pieces, from which an interrupted run goes on; by default "
            "cache in the folder of the report."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Processes of one thread each; -1 for as many as cores.")
    ] = -1,
) -> None:
    """Run experiments of the papers; write report.md, report.html and figures.

    Data sets are read from the folder that OKFOREST_DATA names, or downloaded where possible. To
    interrupt, press Ctrl-C: pieces under way are finished, and the same command goes on later.
    """
    names = list(EXPERIMENTS) if experiment is Which.all else [experiment.value]
    with plain_errors():
        workers = _count(jobs)
        require("a report")
        files = {name: EXPERIMENTS[name].load() for name in names}  # before hours are spent
        folder = output / "cache" if cache is None else cache
        _make_writable(output, "--output")
        _make_writable(folder, "--cache")
        blocks: list[Block] = []
        timings: dict[str, Timing] = {}
        for name in names:
            module: Any = EXPERIMENTS[name]
            size = module.QUICK if quick else module.FULL
            timings[name] = _run(name, module.jobs(size), Cache(folder, files[name]), workers)
            blocks += module.blocks(timings[name].results, size)
        command = f"okforest reproduce {experiment.value}{' --quick' if quick else ''}"
        blocks = [*_head(command, quick), *blocks, *_tail(timings, workers)]
        save_figures(blocks, output / "figures")
        _write_page(blocks, output)
        (output / "report.md").write_text(as_markdown(TITLE, blocks, "figures"), encoding="utf-8")
    console.print(f"the report is in {output}: open [bold]{output / 'report.html'}[/bold]")


def _count(jobs: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if jobs == -1:
        return cores or 1
    if jobs < 1:
        raise ValueError(f"--jobs is {jobs}; use a positive number, or -1 for as many as cores.")
    return jobs


def _make_writable(folder: Path, option: str) -> None:
    """Make a folder, or say now that nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"nothing can be written to {folder}: {error.strerror}; choose another folder with "
            f"{option}."
        ) from error


def _run(name: str, jobs: list[Any], cache: Cache, workers: int) -> Timing:
    start = perf_counter()
    with JobProgress(name, jobs) as progress:
        try:
            results = run(
                jobs, cache, workers, finished=progress.finished, stopping=progress.stopping
            )
        except KeyboardInterrupt:
            progress.stop()
            console.print(
                f"stopped; what is done is in {cache.folder}, and the same command goes on from "
                "there",
                soft_wrap=True,
            )
            raise typer.Exit(STOPPED) from None
        except BrokenProcessPool:
            progress.stop()
            console.print(
                "[bold red]error:[/bold red] a process was ended from outside; did memory run "
                f"out? What is done is in {cache.folder}; try again, with fewer --jobs.",
                soft_wrap=True,
            )
            raise typer.Exit(1) from None
    return Timing(results, perf_counter() - start)


def _head(command: str, quick: bool) -> list[Block]:
    blocks: list[Block] = [
        Paragraph(
            f"Made by `{command}` (okforest {version('okforest')}) on "
            f"{datetime.now(UTC):%Y-%m-%d}. Published figures are in columns named paper; ours are "
            "beside them."
        )
    ]
    if quick:
        blocks.append(
            Paragraph(
                "A quick run: fewer trees, rounds, folds, seeds and values to choose from, as each "
                "part says. Its figures show that things work; without --quick they are those to "
                "compare with the papers'."
            )
        )
    return blocks


def _tail(timings: dict[str, Timing], workers: int) -> list[Block]:
    rows, parts = [], []
    for name, (results, seconds) in timings.items():
        done = list(results)
        earlier = sum(one.earlier for one in done)
        work = sum(one.seconds for one in done)
        rows.append([name, f"{len(done)}", f"{earlier}", _time(work), _time(seconds)])
        for row in dict.fromkeys(one.job.row for one in done):
            times = [one.seconds for one in done if one.job.row == row]
            mean = sum(times) / len(times)
            parts.append([f"{name}: {row}", f"{len(times)}", f"{mean:.2f}", f"{max(times):.2f}"])
    machine = f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return [
        Heading("Versions and times"),
        Paragraph(
            f"{', '.join(f'{package} {version(package)}' for package in PACKAGES)}; {machine}; "
            f"{workers} processes. Seeds are told with every experiment."
        ),
        Table(["experiment", "jobs", "done earlier", "CPU time of all", "time of this run"], rows),
        Paragraph("CPU seconds of a job, the choice of parameters included:"),
        Table(["job", "how many", "mean", "longest"], parts),
    ]


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _write_page(blocks: Sequence[Block], folder: Path) -> None:
    page = Page(TITLE)
    for block in blocks:
        if isinstance(block, Heading):
            page.heading(block.text, block.level)
        elif isinstance(block, Paragraph):
            page.paragraph(block.text.replace("`", ""), block.note)
        elif isinstance(block, Table):
            page.table(block.header, block.rows, block.text)
        elif isinstance(block, Figure):
            page.figure(folder / f"figures/{block.name}.png", block.caption, block.wide)
    page.write(folder / "report.html")
