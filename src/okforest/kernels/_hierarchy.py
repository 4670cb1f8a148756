"""A hierarchy of classes, a tree or a directed acyclic graph, and class paths as text."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from okforest._typing import Floats, Outputs
from okforest.kernels._outputs import array_of_objects, check_collection, refuse_missing

SEPARATOR = "/"  # between a class and its subclass
BETWEEN = "@"  # between the paths of one output


def with_ancestors(path: str) -> list[str]:
    """Return the class of a path such as "01/02" and its ancestors."""
    parts = path.strip().split(SEPARATOR)
    if "" in parts:
        raise ValueError(
            f"{path!r} is not a class path; write classes from the most general one, such as "
            "'01/02/03'."
        )
    return [SEPARATOR.join(parts[: i + 1]) for i in range(len(parts))]


def holds_text(y: Any) -> bool:
    """Return whether y holds text, such as class paths."""
    if hasattr(y, "shape") and (np.ndim(y) != 1 or not len(y)):
        return False
    return any(isinstance(value, str) for value in y)


def read_paths(y: Any) -> Outputs:
    """Return the sets of classes that class paths such as "01/02@05" name, with ancestors."""
    for value in check_collection(y):
        refuse_missing(value)
        if not isinstance(value, str):
            raise ValueError(
                f"y mixes class paths and other values, such as {value!r}; pass a class path such "
                "as '01/02', or several as '01/02@05', for every row."
            )
    paths = [text.split(BETWEEN) for text in check_collection(y)]
    return array_of_objects([frozenset(parents_from_paths(own)) for own in paths])


def parents_from_paths(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the parents of all classes that some class paths name."""
    parents: dict[str, list[str]] = {}
    for path in paths:
        own = with_ancestors(path)
        for i, name in enumerate(own):
            parents[name] = own[i - 1 : i] if i else []
    return dict(sorted(parents.items()))


def read_parents(parents: Any) -> dict[Any, list[Any]]:
    """Return the parents of every class, ancestors first, or raise an error about a cycle.

    Parents are given as a mapping from classes to a class, several classes or None, or as an array
    of positions, -1 for no parent.
    """
    if not isinstance(parents, Mapping):
        positions = np.asarray(parents)
        if positions.ndim != 1 or positions.dtype.kind not in "iu":
            raise ValueError(
                f"parents is of type {type(parents).__name__}; pass a dict from each class to its "
                "parent or parents (None for none), or an array of positions (-1 for none)."
            )
        parents = {i: None if p < 0 else int(p) for i, p in enumerate(positions.tolist())}
    known: dict[Any, list[Any]] = {}
    for name, above in parents.items():
        if above is None:
            known[name] = []
        elif isinstance(above, list | tuple | set | frozenset) and not _is_class(above, parents):
            known[name] = list(above)
        else:
            known[name] = [above]
    for name, above in list(known.items()):
        for parent in above:
            if parent not in known:
                raise ValueError(
                    f"the class {name!r} has the parent {parent!r}, which is not a class itself; "
                    "add it to parents, with None if it has no parent."
                )
    return _ancestors_first(known)


def _is_class(value: Any, parents: Mapping[Any, Any]) -> bool:
    try:
        return value in parents  # a class may be a tuple
    except TypeError:  # a list has no hash
        return False


def _ancestors_first(parents: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
    ordered: dict[Any, list[Any]] = {}
    waiting = dict(parents)
    while waiting:
        ready = [name for name, above in waiting.items() if all(p in ordered for p in above)]
        if not ready:
            raise ValueError(
                f"the hierarchy has a cycle through the class {next(iter(waiting))!r}; a class "
                "cannot be its own ancestor."
            )
        for name in ready:
            ordered[name] = waiting.pop(name)
    return ordered


def closure(parents: dict[Any, list[Any]]) -> dict[Any, frozenset[Any]]:
    """Return every class with all of its ancestors."""
    closed: dict[Any, frozenset[Any]] = {}
    for name, above in parents.items():  # ancestors first
        closed[name] = frozenset([name]).union(*(closed[parent] for parent in above))
    return closed


def class_weights(parents: dict[Any, list[Any]], decay: float) -> Floats:
    """Return decay^depth of every class; with several parents, decay times their mean weight."""
    weight: dict[Any, float] = {}
    for name, above in parents.items():
        mean = float(np.mean([weight[parent] for parent in above])) if above else 1.0
        weight[name] = decay * mean if above else 1.0
    return np.array(list(weight.values()))
