"""Published tables and figures as experiments that can be run; ``okforest reproduce`` runs them.

An experiment is a module with a function that returns its jobs, and one that makes tables and
figures of what they have found. Jobs are independent, and finished ones are kept in a folder.
"""

from okforest.papers import boosting, friedman, image, network
from okforest.papers._cache import Cache
from okforest.papers._jobs import Finished, Job, Results
from okforest.papers._report import (
    Block,
    Figure,
    Heading,
    Paragraph,
    Table,
    as_markdown,
    save_figures,
)
from okforest.papers._runs import run

# By name: modules that have FULL and QUICK sizes, load(), jobs(size) and blocks(results, size).
EXPERIMENTS = {"image": image, "boosting": boosting, "friedman": friedman, "network": network}

__all__ = [
    "EXPERIMENTS",
    "Block",
    "Cache",
    "Figure",
    "Finished",
    "Heading",
    "Job",
    "Paragraph",
    "Results",
    "Table",
    "as_markdown",
    "run",
    "save_figures",
]
