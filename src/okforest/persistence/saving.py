"""Saving models to files and loading them.

What knows every class that a file may name is imported when a file is written or read: a program
that does neither need not wait for it.
"""

import os
from importlib.metadata import version
from typing import Any

from sklearn.utils.validation import check_is_fitted

from okforest.persistence._errors import FileFormatError
from okforest.persistence.atomic import replacing
from okforest.persistence.container import read, write

# What decoding and checking a file can raise, beside a lack of memory.
BAD_CONTENT = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file.

    The file holds the constructor's parameters and the fitted attributes (those whose names end in
    an underscore), as text and arrays, and never code: what has code (functions, kernels and
    decoders of your own) is refused, and so is a ``random_state`` that is an object, for a fitted
    model does not need one. The file takes its place at once, when it is complete: whatever fails
    before, a file that was there is as it was.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest.
    path : str or path-like
        The file, of any name.

    See Also
    --------
    load : The way back.

    Notes
    -----
    The format is documented in ``okforest.persistence.container``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> import okforest
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = okforest.OKTree(kernel="dirac", random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     okforest.save(tree, Path(folder) / "iris.okforest")
    ...     same = okforest.load(Path(folder) / "iris.okforest")
    >>> bool((same.predict(X) == tree.predict(X)).all())
    True
    """
    from okforest.persistence.codec import Encoder
    from okforest.persistence.registry import MODELS

    if type(model) not in MODELS:
        raise TypeError(
            f"okforest.save takes a model of okforest, and this is a {type(model).__name__}. Save "
            "anything else, such as a pipeline, a search or a subclass, by pickle, joblib or skops."
        )
    check_is_fitted(model, msg="this %(name)s is not fitted: call fit before okforest.save.")
    encoder = Encoder()
    content = {
        "okforest": version("okforest"),
        "model": encoder.encode(model, type(model).__name__),
    }
    with replacing(path) as file:
        write(file, content, encoder.arrays)


def load(path: str | os.PathLike[str], mmap: bool = False) -> Any:
    """Load a model from a file that :func:`save` has written.

    No code is executed on loading. A file that is foreign, truncated, corrupted or of a newer
    format gives an ``okforest.persistence.FileFormatError``, which says what to do.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=False
        Whether arrays stay in the file, read-only, and are read when they are needed. Processes
        that load the same file share their memory. The checksums of arrays are then not verified.
        That of the header is, and what compiled code trusts is still checked, the structure of the
        trees above all: a corrupted file gives wrong predictions at worst. The file must not be
        changed in place while the model is in use; to save over it is safe.

    Returns
    -------
    model : estimator
        The model, fitted.

    See Also
    --------
    save : The way there, with an example.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_diabetes
    >>> import okforest
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "diabetes.okforest"
    ...     okforest.save(okforest.OKExtraTrees(10, random_state=0).fit(X, y), path)
    ...     forest = okforest.load(path, mmap=True)
    ...     forest.score(X, y)
    1.0
    """
    from okforest.persistence.codec import decode
    from okforest.persistence.consistency import check_model
    from okforest.persistence.registry import MODELS

    content, arrays = read(path, mapped=mmap)
    try:
        model = decode(content["model"], arrays)
        if type(model) not in MODELS:
            raise ValueError(f"it holds a {type(model).__name__}, not a model")
        check_model(model)
    except BAD_CONTENT as error:
        writer = content.get("okforest") if isinstance(content, dict) else None
        raise FileFormatError(
            f"{os.fspath(path)} holds no model that this okforest can use: {error}. It was written "
            f"by okforest {writer}: load it with that version, or save the model again."
        ) from error
    return model
