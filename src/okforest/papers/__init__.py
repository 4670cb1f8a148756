"""Published tables and figures as experiments, run by ``okforest reproduce``.

An experiment is a module with two sizes, ``FULL`` and ``QUICK``; a ``VERSION``, increased when its
results change; ``load()``, which reads the data and returns the files; ``jobs(size)``, which
returns independent jobs; and ``blocks(results, size)``, which returns a report of their results.
"""

from okforest.papers import boosting, friedman, image, irma, network
from okforest.papers._jobs import Finished, Job, Results
from okforest.papers._runs import Cache, run

EXPERIMENTS = {
    "image": image,
    "boosting": boosting,
    "friedman": friedman,
    "network": network,
    "irma": irma,
}

__all__ = ["EXPERIMENTS", "Cache", "Finished", "Job", "Results", "run"]
