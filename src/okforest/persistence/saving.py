"""Saving models to files and loading them."""

import os
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from okforest.persistence.atomic import replacing
from okforest.persistence.classes import ClassFinder, UnknownClassError
from okforest.persistence.container import FileFormatError, read, write
from okforest.persistence.encoding import Encoder, Restorer

# What decoding and checking a file can raise, apart from a lack of memory.
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

    The file stores the parameters of the constructor and what was learnt, as text and arrays, and
    never code. Models, kernels and decoders of your own are stored by the names of their classes,
    with the attributes whose names end in an underscore; other scikit-learn estimators, such as the
    steps of a pipeline, with all their attributes. Functions, objects that hold compiled state
    (such as the trees of scikit-learn), and other public attributes of your own classes raise a
    ``TypeError`` that names the attribute. A model that :func:`load` would refuse, since one of its
    parameters or fitted attributes was changed after the fit, raises a ``ValueError``.

    The file is replaced in one step when the new one is complete: if saving fails, the previous
    file stays as it was.

    Parameters
    ----------
    model : estimator
        A fitted model, of okforest or your own, or a pipeline that ends with one.
    path : str or path-like
        The file, with any name.

    See Also
    --------
    load : Load the model.
    describe : List what a file holds.

    Notes
    -----
    The format is documented in the module ``okforest.persistence.container``:
    ``help("okforest.persistence.container")``.

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
    if not _is_model(model):
        what = f"the class {model.__name__}" if isinstance(model, type) else repr(model)[:80]
        raise TypeError(
            f"okforest.save takes a fitted model or a pipeline that ends with one, and got {what}."
        )
    if hasattr(model, "best_estimator_"):
        raise TypeError(
            f"okforest.save does not store a {type(model).__name__}: save its best_estimator_."
        )
    name, encoder = type(model).__name__, Encoder()
    try:
        check_is_fitted(model, msg="this %(name)s is not fitted: call fit before okforest.save.")
        encoded = encoder.encode(model, name)
    except (NotFittedError, TypeError):
        raise
    except BAD_CONTENT as error:
        raise _refusal(name, error) from error
    try:  # what load would refuse is not written
        _restore(encoded, encoder.arrays, ClassFinder(encoder.classes))
    except (*BAD_CONTENT, UnknownClassError) as error:
        raise _refusal(name, error) from error
    content = {"okforest": version("okforest"), "model": encoded}
    with replacing(path) as file:
        write(file, content, encoder.arrays)


def _refusal(name: str, error: Exception) -> ValueError:
    return ValueError(
        f"this {name} is not saved, since load would refuse the file: {error}. If a parameter or "
        "an attribute was changed after the fit, fit again."
    )


def load(
    path: str | os.PathLike[str],
    mmap: bool = False,
    verify: bool | None = None,
    types: Iterable[type] = (),
) -> Any:
    """Load a model from a file that :func:`save` has written.

    Nothing in the file is executed, and it cannot cause an import of anything but okforest and a
    fixed list of public modules of scikit-learn, such as ``sklearn.impute``. A class of any other
    module must be imported before, or passed as one of ``types``, and be a scikit-learn estimator,
    as models, kernels and decoders are.

    A file that cannot be loaded, since it is truncated or corrupted for example, raises an
    ``okforest.persistence.FileFormatError``. Trees, sparse matrices and the state of okforest's
    models are always checked, so that even a file made on purpose cannot crash them. okforest
    cannot check the state of scikit-learn's estimators: load pipelines from sources you trust.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=False
        Whether arrays stay in the file, read-only, and are read when they are needed. Processes
        that load the same file share the memory. Do not change the file in place while the model is
        in use; saving another model to the same path is safe.
    verify : bool, optional
        Whether to compare the arrays with their checksums, which reads the whole file. By default
        True, and False with ``mmap=True``. Without it, damaged values in arrays (outputs,
        thresholds, coefficients) go unnoticed and give wrong predictions; the checksum of the
        header, the sizes and the structures named above are still checked.
    types : iterable of classes, default=()
        Classes of your own that the file may name: ``types=[MyKernel]``. They are found by module
        and qualified name, or by qualified name alone if no imported class has that module and
        name: a class may have moved since, from a notebook to a module for example.

    Returns
    -------
    model : estimator
        The fitted model.

    See Also
    --------
    save : Save a model.
    describe : List what a file holds, without loading it.

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
    classes = ClassFinder(types)
    file = read(path, mapped=mmap, verify=not mmap if verify is None else verify)
    content = file.content
    if not isinstance(content, dict) or "model" not in content:
        raise FileFormatError(f"{os.fspath(path)} does not hold a model.")
    try:
        return _restore(content["model"], file.arrays, classes)
    except UnknownClassError as error:
        raise FileFormatError(f"{os.fspath(path)} cannot be loaded: {error}.") from None
    except BAD_CONTENT as error:
        reason = f"it lacks the key {error}" if isinstance(error, KeyError) else error
        raise FileFormatError(
            f"{os.fspath(path)} cannot be loaded: {reason}. It was written by okforest "
            f"{content.get('okforest')}: load it with that version, or save the model again."
        ) from error


def _restore(content: Any, arrays: list[Any], classes: ClassFinder) -> Any:
    """Return the fitted model that a file holds."""
    model = Restorer(arrays, classes).restore(content)
    if not _is_model(model):
        raise ValueError(f"it holds a {type(model).__name__}, not a model")
    check_is_fitted(model)
    return model


def _is_model(thing: Any) -> bool:
    return isinstance(thing, BaseEstimator) and hasattr(thing, "fit")
