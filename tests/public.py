"""The public modules of okforest."""

import okforest

# Imported on first use.
LAZY = (
    "dask",
    "datasets",
    "inspection",
    "network",
    "refit",
    "retrieval",
    "segments",
    "survival",
    "uncertainty",
)
MODULES = (
    okforest,
    okforest.decode,
    okforest.kernels,
    okforest.metrics,
    okforest.weights,
    *(getattr(okforest, name) for name in LAZY),
)
