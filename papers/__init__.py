"""Published tables and figures as experiments, run by ``python -m papers`` in the repository.

An experiment is a module with two sizes, ``FULL`` and ``QUICK``; a ``VERSION``, increased when its
results change; ``load()``, which reads the data and returns the files; ``jobs(size)``, which
returns independent jobs; and ``blocks(results, size)``, which returns a report of their results.
"""

from papers import boosting, friedman, image, irma, network

EXPERIMENTS = {
    "image": image,
    "boosting": boosting,
    "friedman": friedman,
    "network": network,
    "irma": irma,
}
