"""The public modules of okforest."""

import okforest

# imported on first use
LAZY = ("datasets", "inspection", "network", "papers", "refit", "segments", "uncertainty")
MODULES = (
    okforest,
    okforest.decode,
    okforest.kernels,
    okforest.metrics,
    okforest.weights,
    *(getattr(okforest, name) for name in LAZY),
)
