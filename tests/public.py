"""The public modules of okforest."""

import okforest

LAZY = ("datasets", "inspection", "network", "papers", "refit", "segments")  # imported on first use
MODULES = (
    okforest,
    okforest.decode,
    okforest.kernels,
    okforest.metrics,
    okforest.weights,
    *(getattr(okforest, name) for name in LAZY),
)
