"""Converting what users pass as ``kernel=`` to a kernel."""

from typing import Any

from okforest.kernels.base import OutputKernel


def _named_kernels() -> dict[str, type[OutputKernel]]:
    # These modules import as_kernel for their inner kernels.
    from okforest.kernels import classes, label_sets, rankings, rbf, vectors
    from okforest.survival import kernel as survival

    return {
        "dirac": classes.Dirac,
        "laplacian": rbf.Laplacian,
        "linear": vectors.Linear,
        "mahalanobis": vectors.Mahalanobis,
        "polynomial": vectors.Polynomial,
        "rbf": rbf.RBF,
        "survival": survival.Survival,
        "dice": label_sets.Dice,
        "hamming": label_sets.Hamming,
        "jaccard": label_sets.Jaccard,
        "kendall": rankings.Kendall,
        "mallows": rankings.Mallows,
        "spearman": rankings.Spearman,
    }


def _class_name(name: str) -> str | None:
    """Return the class whose name this is, in other letters or with underscores."""
    from okforest import kernels

    plain = name.replace("_", "").lower()
    return next((own for own in kernels.__all__ if own[0].isupper() and own.lower() == plain), None)


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
        named = _named_kernels()
        if kernel in named:
            return named[kernel]()
        written = _class_name(kernel)
        name = next((own for own, cls in named.items() if cls.__name__ == written), None)
        if name is not None:
            raise ValueError(f"kernel={kernel!r} is not known; did you mean {name!r}?")
        if written is not None:
            raise ValueError(
                f"kernel={kernel!r} cannot be passed by name; pass an object of okforest.kernels, "
                f"kernel={written}(...)."
            )
        raise ValueError(
            f"kernel={kernel!r} is not known; use one of {', '.join(map(repr, named))}, "
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
