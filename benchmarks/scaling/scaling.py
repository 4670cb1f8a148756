"""How the cost of growing grows with rows, inputs, rank of the outputs, trees and threads.

One quantity varies at a time, the others stay at a centre; times are the best of a few, one thread
but for the axis of threads. Prints the exponents b of time ≈ a·xᵇ, by least squares on logarithms,
and draws the times.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullLocator

from benchmarks import data, machine
from okforest import OKExtraTrees, OKTree

CENTRE = {"rows": 2000, "inputs": 64, "rank": 64, "trees": 10, "threads": 1}
STEPS = {
    "rows": [500, 1000, 2000, 4000, 8000, 16000],
    "inputs": [16, 32, 64, 128, 256, 512],
    "rank": [8, 16, 32, 64, 128, 256],
    "trees": [5, 10, 20, 40, 80],
    "threads": [1, 2, 4, 8, 16],
}
TITLES = {
    "rows": "rows N",
    "inputs": "inputs p",
    "rank": "rank r of the outputs",
    "trees": "trees",
    "threads": "threads",
}
MODELS = {
    "extra-trees, K = √p": ("#1b6ca8", "o"),
    "best-split trees": ("#d1632a", "s"),
}


def model_of(name: str, trees: int, threads: int) -> Any:
    """Return an unfitted model; best-split trees are grown one by one, as many as asked for."""
    if name == "best-split trees":
        return OKTree(random_state=0) if trees == 1 else None
    return OKExtraTrees(trees, random_state=0, n_jobs=threads)


def fit_time(name: str, setting: dict[str, int], repeats: int) -> float:
    """Return the best time of a fit."""
    X, Y = data.smooth(setting["rows"], setting["inputs"], setting["rank"])
    best = math.inf
    for _ in range(repeats):
        model = model_of(name, setting["trees"], setting["threads"])
        start = time.perf_counter()
        model.fit(X, Y)
        best = min(best, time.perf_counter() - start)
    return best
