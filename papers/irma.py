"""Retrieval of X-ray images: the table on IRMA of a talk of 2009.

L. Wehenkel, "Regression tree ensembles in the perspective of kernel-based methods", Tübingen,
October 2009. The images are not available to us: the experiment runs on a copy of the user.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from okforest._utils.report import Block, Heading, Paragraph, Table
from okforest.segments import RandomSubwindows
from papers.data import load_irma
from papers.jobs import Job, Results
from papers.rows import count

VERSION = "1"

# Recognition rates of the first ranked image, in per cent.
PAPER = {"subwindows": 85.4, "naïve": 29.7, "nearest neighbour": 63.2, "KDGN07": 87.4}
SIDE = 32  # pixels of the thumbnails of the nearest neighbour


@dataclass(frozen=True)
class Size:
    """Numbers of trees and of subwindows per image."""

    trees: int = 10
    subwindows: int = 1000


FULL = Size()
QUICK = Size(trees=3, subwindows=50)


def load() -> list[Path]:
    """Read the data and return the files, or raise an error that names the missing folders."""
    return list(load_irma().files)


def jobs(size: Size) -> list[Job]:
    """Return the jobs of the table."""
    options = {"trees": size.trees, "subwindows": size.subwindows}
    return [
        Job("naïve", evaluate_naive, {}, 1.0),
        Job("nearest neighbour", evaluate_neighbour, {}, 20.0),
        Job("subwindows", evaluate_subwindows, options, 1.5 * size.trees * size.subwindows),
    ]


def evaluate_naive() -> dict[str, Any]:
    """Return the rate of the most frequent class, and the numbers of images."""
    data = load_irma()
    most, _ = Counter(data.target.tolist()).most_common(1)[0]
    return _rate(data, np.full(len(data.test), most)) | {
        "train": len(data.train),
        "test": len(data.test),
        "classes": len(set(data.target.tolist())),
    }


def evaluate_neighbour() -> dict[str, Any]:
    """Return the rate of the nearest grey thumbnail."""
    from PIL import Image

    data = load_irma()

    def thumbnails(paths: Any) -> Any:
        small = [Image.open(path).convert("L").resize((SIDE, SIDE)) for path in paths]
        return np.array([np.asarray(image, dtype=np.float64).ravel() for image in small])

    train = thumbnails(data.train)
    nearest = [np.argmin(((train - query) ** 2).sum(axis=1)) for query in thumbnails(data.test)]
    return _rate(data, data.target[nearest])


def evaluate_subwindows(trees: int, subwindows: int) -> dict[str, Any]:
    """Return the rate of the first hit of an index of subwindows."""
    from okforest.retrieval import SubwindowIndex

    data = load_irma()
    with TemporaryDirectory() as folder:
        index = SubwindowIndex.build(
            Path(folder) / "index",
            data.train,
            labels=data.target.tolist(),
            segmenter=RandomSubwindows(subwindows, color="grey"),
            n_trees=trees,
            thumbnail_side=0,
        )
        hits = [index.search(path, k=1) for path in data.test]
    return _rate(data, np.array([found[0].label if found else "" for found in hits]))


def _rate(data: Bunch, predicted: Any) -> dict[str, Any]:
    return {"rate": 100.0 * float(np.mean(predicted == data.test_target))}


def blocks(results: Results, size: Size) -> list[Block]:
    """Return the report."""
    (data,) = results.select("naïve")
    rows = []
    for row, paper in PAPER.items():
        ours = [f"{value:.1f} %" for value in results.values("rate", row)]
        rows.append([row, f"{paper} %", *(ours or [""])])
    return [
        Heading("Retrieval of X-ray images, IRMA (the talk of 2009)"),
        Paragraph(
            f"Recognition rate of the first ranked image: {data['train']:,} reference images and "
            f"{data['test']:,} test images of {data['classes']} classes; in the talk "
            "9,000, 1,000 and 57. Subwindows are indexed by totally randomised trees "
            f"({count(size.trees, 'tree')}, {size.subwindows:,} subwindows per image, fully grown: "
            "n_min = 2); the talk has 10 trees and 1,000 subwindows. The naïve method predicts the "
            f"most frequent class. The nearest neighbour compares {SIDE} × {SIDE} grey pixels; the "
            "talk does not describe its own. KDGN07 is the best published result that it cites."
        ),
        Table(["method", "talk", "ours"], rows),
    ]
