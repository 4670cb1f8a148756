"""Kernels on classes in a hierarchy: a tree, or a directed acyclic graph."""

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.compat import Interval
from okforest._utils.parameters import check_parameters
from okforest.kernels.label_sets import LabelSetKernel, indicators_of, read_label_sets
from okforest.kernels.outputs import (
    FRAMES,
    Form,
    array_of_objects,
    check_collection,
    in_order,
    refuse_missing,
)

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
    return array_of_objects([frozenset(parents_from_paths(listed)) for listed in paths])


def parents_from_paths(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the parents of all classes on some class paths."""
    parents: dict[str, list[str]] = {}
    for path in paths:
        names = with_ancestors(path)
        for i, name in enumerate(names):
            parents[name] = names[i - 1 : i] if i else []
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


class Hierarchy(LabelSetKernel):
    """The total weight of the classes and ancestors that two sets of classes share.

    An output is a set of classes of a hierarchy: as a class path or several, "01/02@05", as a set
    of classes, or as a row of a matrix of 0 and 1. The ancestors of a class belong to its set, and
    are added where they are missing. A class of depth d has weight ``decay``ᵈ (0 is the depth of
    the most general classes); a class with several parents has ``decay`` times their mean weight.

    Parameters
    ----------
    parents : dict or array-like of shape (n_classes,), optional
        The parent of each class, several parents as a list, None or -1 without one. It is needed
        for sets and matrices; class paths contain it.
    decay : float, default=0.75
        The factor of the weight from a class to its subclasses.
    labels : list, optional
        The classes, ancestors first; filled in when a model is fitted.
    form : {"array", "sparse", "frame", "polars", "paths"}, optional
        The form of y, in which predictions are returned; filled in when a model is fitted.

    References
    ----------
    C. Vens, J. Struyf, L. Schietgat, S. Džeroski, H. Blockeel, "Decision trees for hierarchical
    multi-label classification", Machine Learning 73 (2008).

    Examples
    --------
    >>> from okforest.kernels import Hierarchy
    >>> kernel = Hierarchy(decay=0.5)
    >>> kernel = kernel.resolve(kernel.check(["1/1", "1/2", "2"]))
    >>> kernel(kernel.check(["1/1", "1/2", "1/1@2"]))
    array([[1.5, 1. , 1.5],
           [1. , 1.5, 1. ],
           [1.5, 1. , 2.5]])
    """

    default_decoder = "hierarchical"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "decay": [Interval(Real, 0, 1, closed="right")]
    }

    def __init__(
        self,
        parents: Any = None,
        decay: float = 0.75,
        labels: list[Any] | None = None,
        form: Form | None = None,
    ):
        super().__init__(None, labels, form)
        self.parents = parents
        self.decay = decay

    def check(self, y: Any) -> Outputs:
        """Return class paths and sets as frozensets of classes, and matrices as they are."""
        if holds_text(y):
            return self._closed(read_paths(y))
        return self._closed(read_label_sets(in_order(y, self.labels, self.form)))

    def learn_form(self, y: Any) -> Self:
        """Remember the form of y, and the hierarchy that its class paths contain."""
        if not holds_text(y):
            return super().learn_form(y)
        parents = self.parents
        if parents is None:
            parents = parents_from_paths(path for text in y for path in str(text).split(BETWEEN))
        return self._changed(form="paths", parents=parents)

    def in_form(self, outputs: Outputs) -> Any:
        """Return predicted sets as y was given; paths name the most specific classes."""
        return super().in_form(self.as_given(outputs))

    def as_given(self, outputs: Outputs) -> Outputs:
        """Return sets of classes as class paths, if y was given so."""
        if self.form != "paths":
            return outputs
        parents = self._parents(outputs)
        texts = []
        for classes in outputs:
            inner = {parent for name in classes for parent in parents[name]}
            texts.append(BETWEEN.join(sorted(name for name in classes if name not in inner)))
        return array_of_objects(texts)

    def resolve(self, y: Outputs) -> Self:
        """Fill in the classes and the hierarchy."""
        check_parameters(self)
        parents = self._parents(y)
        return self._changed(parents=parents, labels=self._order(y, parents))

    def hierarchy(self) -> dict[Any, list[Any]]:
        """Return the parents of every class, in the order of ``labels``."""
        assert self.labels is not None, "resolve first"
        return {name: self.parents[name] for name in self.labels}

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        first = self.features(y)
        return first @ (first if z is None else self.features(z)).T

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        return np.einsum("ij,ij->i", self.features(y), self.features(z))

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of classes."""
        return len(self._parents(y))

    def features(self, y: Outputs) -> Floats:
        """Return which classes each output has, weighted by the square roots of their weights."""
        present = indicators_of(y, self._order(y, self._parents(y)))[0]
        return present * np.sqrt(self.weight_of_classes(y))

    def marginals(self, sums: Floats) -> Floats:
        """Return Σ w_i [class in y_i] from the sums Σ w_i φ(y_i) of features."""
        return sums / np.sqrt(self.weight_of_classes())

    def weight_of_classes(self, a: Outputs | None = None) -> Floats:
        """Return the weight of every class, in the order of columns."""
        if a is None:
            assert self.labels is not None, "resolve first"
            a = array_of_objects([frozenset(self.labels)])
        parents = self._parents(a)
        weights = dict(zip(parents, class_weights(parents, self.decay), strict=True))
        return np.array([weights[name] for name in self._order(a, parents)])

    def _parents(self, y: Outputs) -> dict[Any, list[Any]]:
        """Return the parents of every class, ancestors first."""
        if self.parents is not None:
            if isinstance(self.parents, dict) or self.form not in FRAMES:
                return read_parents(self.parents)
            above = np.asarray(self.parents).tolist()
            order = self.labels or []
            pairs = zip(order, above, strict=True)
            return read_parents({name: None if p < 0 else order[p] for name, p in pairs})
        names = set().union(*y) if y.dtype == object else set()
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError(
                "the hierarchy of the classes is not known; pass Hierarchy(parents=...), a dict "
                "from each class to its parent (None for none), or class paths such as '01/02' as "
                "y."
            )
        return read_parents(parents_from_paths(names))

    def _order(self, y: Outputs, parents: dict[Any, list[Any]]) -> list[Any]:
        """Return the classes in the order of a matrix's columns, else ancestors first."""
        if self.labels is not None:
            return self.labels
        if y.dtype == object:
            return list(parents)
        if len(parents) != y.shape[1]:
            raise ValueError(
                f"y has {y.shape[1]} columns; parents has {len(parents)} classes. Pass one column "
                "per class."
            )
        return sorted(parents) if set(parents) == set(range(y.shape[1])) else list(self.parents)

    def _closed(self, outputs: Outputs) -> Outputs:
        """Add the ancestors of classes."""
        if self.parents is None and outputs.dtype != object:
            self._parents(outputs)  # raises the error
        parents = self._parents(outputs)
        closed = closure(parents)
        if outputs.dtype == object:
            for classes in outputs:
                unknown = classes.difference(closed)
                if unknown:
                    raise ValueError(
                        f"{min(unknown, key=str)!r} is not a class of the hierarchy; add it to "
                        "parents, or correct it in y."
                    )
            return array_of_objects(
                [frozenset().union(*(closed[name] for name in classes)) for classes in outputs]
            )
        order = self._order(outputs, parents)
        column = {name: j for j, name in enumerate(order)}
        result = outputs.copy()
        for name in reversed(list(parents)):  # descendants first
            for parent in parents[name]:
                child = result[:, column[name]]
                np.maximum(result[:, column[parent]], child, out=result[:, column[parent]])
        return result
