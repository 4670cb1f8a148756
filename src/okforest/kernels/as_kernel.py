"""Converting what users pass as ``kernel=`` to a kernel."""

from importlib import import_module
from typing import Any

from okforest.kernels.base import OutputKernel

# Modules are imported when a name is used: they import as_kernel for their inner kernels, and
# survival analysis is a room above this one.
NAMES = {
    "dirac": ("okforest.kernels.classes", "Dirac"),
    "laplacian": ("okforest.kernels.rbf", "Laplacian"),
    "linear": ("okforest.kernels.vectors", "Linear"),
    "mahalanobis": ("okforest.kernels.vectors", "Mahalanobis"),
    "polynomial": ("okforest.kernels.vectors", "Polynomial"),
    "rbf": ("okforest.kernels.rbf", "RBF"),
    "survival": ("okforest.survival", "Survival"),
    "dice": ("okforest.kernels.label_sets", "Dice"),
    "hamming": ("okforest.kernels.label_sets", "Hamming"),
    "jaccard": ("okforest.kernels.label_sets", "Jaccard"),
    "kendall": ("okforest.kernels.rankings", "Kendall"),
    "mallows": ("okforest.kernels.rankings", "Mallows"),
    "spearman": ("okforest.kernels.rankings", "Spearman"),
}


def _class_name(name: str) -> str | None:
    """Return the class whose name this is, in other letters or with underscores."""
    from okforest import kernels

    plain = name.replace("_", "").lower()
    classes = [*kernels.__all__, *(cls for _, cls in NAMES.values())]
    return next((cls for cls in classes if cls[0].isupper() and cls.lower() == plain), None)


def as_kernel(kernel: Any) -> OutputKernel:
    """Convert a kernel, the name of one, or a function of two arrays of outputs to a kernel.

    Parameters
    ----------
    kernel : OutputKernel, str or callable
        A kernel, which is returned unchanged; a name ("dirac", "laplacian", "linear",
        "mahalanobis", "polynomial", "rbf", "survival", "dice", "hamming", "jaccard", "kendall",
        "mallows", "spearman"), which gives that kernel with default parameters; or a function that
        returns a Gram matrix, see :class:`FromCallable`.

    Returns
    -------
    kernel : OutputKernel
        The kernel.

    Examples
    --------
    >>> from okforest.kernels import as_kernel
    >>> as_kernel("rbf")
    RBF()
    """
    if isinstance(kernel, OutputKernel):
        return kernel
    if isinstance(kernel, str):
        if kernel in NAMES:
            module, cls = NAMES[kernel]
            named: OutputKernel = getattr(import_module(module), cls)()
            return named
        written = _class_name(kernel)
        name = next((known for known, (_, cls) in NAMES.items() if cls == written), None)
        if name is not None:
            raise ValueError(f"kernel={kernel!r} is not known; did you mean {name!r}?")
        if written is not None:
            raise ValueError(
                f"kernel={kernel!r} cannot be passed by name; pass an object of okforest.kernels, "
                f"kernel={written}(...)."
            )
        raise ValueError(
            f"kernel={kernel!r} is not known; use one of {', '.join(map(repr, NAMES))}, "
            "an object of okforest.kernels, or a function."
        )
    if isinstance(kernel, type) and issubclass(kernel, OutputKernel):
        raise ValueError(
            f"kernel={kernel.__name__} is a class; pass an object, such as {kernel.__name__}(...)."
        )
    if callable(kernel):
        from okforest.kernels.precomputed import FromCallable

        return FromCallable(kernel)
    raise ValueError(
        f"kernel is of type {type(kernel).__name__}; pass an object of okforest.kernels, "
        "the name of one, or a function that returns a Gram matrix. For a Gram matrix K, pass "
        "kernel=Precomputed(K) and y=np.arange(len(K))."
    )
