"""What is in a file, without loading the model or importing its classes."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from okforest.persistence.container import FileFormatError, read

Array = npt.NDArray[Any]
BAD_CONTENT = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
MAX_LISTED_ITEMS = 6


@dataclass(frozen=True, repr=False)
class FileDescription:
    """What a file of :func:`okforest.save` holds; it prints as a table.

    Parameters
    ----------
    path : str
        The file.
    okforest : str
        The version of okforest that wrote it.
    format : int
        The number of the format.
    n_bytes : int
        The size of the file.
    model : str
        The class of the model, as ``module:name``.
    params : dict of str to str
        The parameters of the constructor, as text.
    parts : dict of str to str
        What was learnt: the name of every attribute that holds arrays or objects, with its shape or
        its size.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import okforest
    >>> from okforest.persistence import FileDescription
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     okforest.save(okforest.OKTree().fit([[0], [1]], [0.5, 1.5]), Path(folder) / "tree")
    ...     description = okforest.describe(Path(folder) / "tree")
    >>> isinstance(description, FileDescription), description.format
    (True, 2)
    """

    path: str
    okforest: str
    format: int
    n_bytes: int
    model: str
    params: dict[str, str]
    parts: dict[str, str]

    def __repr__(self) -> str:
        width = max(map(len, [*self.params, *self.parts]), default=0)
        return "\n".join(
            [
                f"{self.path}: {self.model.rpartition(':')[2]}, {_size(self.n_bytes)}, "
                f"written by okforest {self.okforest} (file format {self.format})",
                "parameters:",
                *(f"  {name:{width}}  {value}" for name, value in self.params.items()),
                "learnt:",
                *(f"  {name:{width}}  {value}" for name, value in self.parts.items()),
            ]
        )


def describe(path: str | os.PathLike[str]) -> FileDescription:
    """Describe a file of :func:`save`: its version, model, parameters and fitted attributes.

    Only the header is read. Classes are not imported, so that files with classes that are not
    installed can be described too.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    description : FileDescription
        It prints as a table.

    See Also
    --------
    load : Load the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> import okforest
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.okforest"
    ...     okforest.save(okforest.OKRandomForest(10, kernel="dirac").fit(X, y), path)
    ...     description = okforest.describe(path)
    >>> description.model, description.params["n_estimators"], description.params["kernel"]
    ('okforest.models:OKRandomForest', '10', "'dirac'")
    >>> description.parts["outputs_"]
    '(150,) int64, 1.2 kB'
    """
    name = os.fspath(path)
    number, content, arrays = read(path, mapped=True, verify=False)
    try:
        model = content["model"]
        return FileDescription(
            path=name,
            okforest=str(content["okforest"]),
            format=number,
            n_bytes=os.stat(path).st_size,
            model=str(model["type"]),
            params={key: _text(value) for key, value in model["params"].items()},
            parts=dict(_parts(model, "", arrays)),
        )
    except BAD_CONTENT as error:
        raise FileFormatError(f"{name} does not hold a model.") from error


def _parts(node: Any, name: str, arrays: Sequence[Array]) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of everything that holds arrays or objects."""
    if _is_estimator(node):
        for key, value in [*node["fitted"].items(), *node["params"].items()]:
            yield from _parts(value, f"{name}.{key}" if name else key, arrays)
    elif _holds_estimators(node):
        for i, item in enumerate(_items(node)):
            yield from _parts(item, f"{name}[{i}]", arrays)
    elif isinstance(node, dict) and node["type"] == "array":
        array = arrays[node["position"]]
        yield name, f"{array.shape} {array.dtype}, {_size(array.nbytes)}"
    elif isinstance(node, dict) and node["type"] == "objects":
        shape = node["shape"]
        yield name, f"{tuple(shape)} objects, such as {_text(node['items'][0])}" if shape[0] else ""
    elif positions := set(_positions(node)):
        yield name, _size(sum(arrays[position].nbytes for position in positions))


def _is_estimator(node: Any) -> bool:
    return isinstance(node, dict) and ":" in str(node.get("type"))


def _items(node: Any) -> list[Any]:
    """Return the values within a value of the file."""
    if isinstance(node, dict):
        return [item for key, item in node.items() if key != "type"]
    return node if isinstance(node, list) else []


def _holds_estimators(node: Any) -> bool:
    return any(_is_estimator(item) or _holds_estimators(item) for item in _items(node))


def _positions(node: Any) -> Iterator[int]:
    if isinstance(node, dict) and node.get("type") == "array":
        yield node["position"]
        return
    for item in _items(node):
        yield from _positions(item)


def _text(node: Any) -> str:
    """Return a parameter as one would write it, without the content of arrays."""
    if _is_estimator(node):
        params = ", ".join(f"{key}={_text(value)}" for key, value in node["params"].items())
        return f"{node['type'].rpartition(':')[2]}({params})"
    if isinstance(node, list):
        more = ["…"] if len(node) > MAX_LISTED_ITEMS else []
        return f"[{', '.join([*map(_text, node[:MAX_LISTED_ITEMS]), *more])}]"
    if not isinstance(node, dict):
        return repr(node)
    if node["type"] in ("tuple", "set", "frozenset"):
        begin, end = "()" if node["type"] == "tuple" else "{}"
        return begin + _text(node["items"])[1:-1] + end
    return node["value"] if node["type"] == "float" else f"<{node['type']}>"


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} bytes" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"
