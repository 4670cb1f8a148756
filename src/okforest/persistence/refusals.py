"""What to do about a value that cannot be saved."""

from typing import Any

import numpy as np


def refusal(value: Any, path: str) -> str:
    """Return the message that the value at this path cannot be saved."""
    what = _with_article(type(value))
    if isinstance(value, np.ndarray):
        what = f"an array of type {value.dtype} ({what})"
    return (
        f"{path} is {what}; okforest.save stores numbers, text, arrays, containers of them, and "
        f"estimators with such parameters and attributes, never code. {_advice(value, path)}"
    )


def _with_article(cls: type) -> str:
    name = f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def _advice(value: Any, path: str) -> str:
    name = path.rpartition(".")[2]
    if isinstance(value, np.random.RandomState | np.random.Generator) or name == "callback":
        return f"Predictions do not need it: set {name} to None by set_params before saving."
    if name == "graph":
        return "Save model.compact() instead, whose kernel stores the graph as arrays."
    if callable(value) and "kernel" in path:
        return (
            "Write the kernel as a subclass of okforest.kernels.OutputKernel, or fit with "
            "kernel=Precomputed(K), where K is its Gram matrix."
        )
    if name == "score_func":
        return "Selected features stay selected without it: set score_func to None before saving."
    if ".transformers[" in path:
        return (
            "Pass the names of the columns instead, such as make_column_selector(...)(X), and fit "
            "again."
        )
    if name in ("func", "inverse_func"):
        return (
            "Replace the function by a transformer class of your own, which is stored "
            "by its name, or use pickle or joblib, with a function that is defined in a module."
        )
    if callable(value):
        return "Use pickle or joblib, with a function that is defined in a module."
    return "Use pickle, joblib or skops instead."
