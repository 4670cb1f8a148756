"""The public modules of okforest."""

from importlib import import_module
from importlib.util import find_spec

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
if find_spec("fastapi") and find_spec("httpx") and find_spec("uvicorn"):
    MODULES += (import_module("okforest.retrieval.web"),)
