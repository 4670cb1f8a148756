"""What the experiments on segments share: CPU times, figures over seeds, tables."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from benchmarks import machine

from okforest._utils.report import Table

SEEDS = (0, 1, 2)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a function returns, and its CPU time in seconds."""
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return the mean and half of the range of some figures."""
    half = (max(values) - min(values)) / 2
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {half:.{digits}f}"


def report(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, and where it was measured."""
    about = machine.describe()
    print(f"### {title}\n")
    print(Table(header, rows).markdown())
    print(f"\n{about['CPU']}, one thread, {about['date']}.\n", flush=True)
