"""The interface of an output kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from inspect import signature
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from okforest._utils.arrays import Floats, Ints, Outputs

if TYPE_CHECKING:
    from okforest.kernels.composition import Product, Scaled, Sum

BLOCK = 256  # side of the Gram blocks whose diagonals the default `pairs` takes


class NestedParametersMixin(BaseEstimator):
    """An estimator whose parameters may be kernels, with parameters of their own.

    Scores in the feature spaces of different kernels cannot be compared. A search changes
    ``kernel`` or ``kernel__sigma`` with :meth:`set_params`, which :func:`kernel_was_set` detects.
    """

    _kernel_was_set = False

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of kernels inside, as in ``kernel__sigma`` or ``base__sigma``.

        Parameters
        ----------
        **params : dict
            Values by name.

        Returns
        -------
        self : estimator
            This estimator.
        """
        _check_nested(self, params)
        super().set_params(**params)
        if any(name.partition("__")[0] == "kernel" for name in params):
            self._kernel_was_set = True
        return self


class OutputKernel(NestedParametersMixin, ABC):
    """A measure k(y, y') of how similar two outputs are.

    It must be symmetric and positive semi-definite, so that k(y, y') = ⟨φ(y), φ(y')⟩ for some
    feature map φ.

    To add a kernel, subclass this class and implement :meth:`check` and :meth:`__call__`. The
    arguments of ``__init__`` are its parameters: store them unchanged, and they can be searched as
    ``kernel__name``. The other methods have correct defaults; override them for speed.

    Kernels can be added and multiplied: ``RBF(2.0) + 0.5 * Linear()``.

    Attributes
    ----------
    known_psd : bool, default=False
        Whether the kernel is positive semi-definite by construction. Otherwise the Gram matrix of
        the training outputs is tested.
    numeric : bool, default=False
        Whether outputs are numbers or vectors of numbers, as in regression.
    on_device : bool, default=False
        Whether :meth:`__call__`, :meth:`diag` and :meth:`features` take arrays of CuPy, and return
        such arrays, so that a model with ``device="cuda"`` can predict on the GPU.
    default_decoder : str or Decoder, default="training_set"
        What ``decoder="auto"`` means for this kernel: the name of a decoder ("mean", "majority",
        "training_set", "support") or an object of :mod:`okforest.decode`. Set it where the output
        nearest to a prediction has a closed form, as the mean has for the linear kernel.
    default_min_samples_leaf : int, default=1
        What ``min_samples_leaf="auto"`` of trees and forests means for this kernel.
    methods : dict, default={}
        The methods that models with this kernel have besides their own, by name: functions of the
        model and further arguments, such as X. A ``property`` gives an attribute.
    methods_as_part : bool, default=False
        Whether models have these methods also with a kernel that is composed of this one.

    Examples
    --------
    A kernel on sets of labels, which predicts one of the sets that support the prediction:

    >>> import numpy as np
    >>> from okforest import OKTree
    >>> from okforest.kernels import OutputKernel
    >>> class Overlap(OutputKernel):
    ...     default_decoder = "support"
    ...
    ...     def check(self, y):
    ...         outputs = np.empty(len(y), dtype=object)  # one entry per output, also for tuples
    ...         outputs[:] = [frozenset(labels) for labels in y]
    ...         return outputs
    ...
    ...     def __call__(self, y, z=None):
    ...         z = y if z is None else z
    ...         return np.array([[len(u & v) for v in z] for u in y], dtype=float)
    >>> X = np.arange(4.0).reshape(-1, 1)
    >>> tree = OKTree(kernel=Overlap()).fit(X, [{"sun"}, {"sun"}, {"sea", "sand"}, {"sea", "sand"}])
    >>> sorted(tree.predict([[3.0]])[0])
    ['sand', 'sea']
    """

    known_psd: bool = False
    numeric: bool = False
    on_device: bool = False
    default_decoder: Any = "training_set"
    default_min_samples_leaf: int = 1
    methods: ClassVar[Mapping[str, Any]] = {}
    methods_as_part: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    @abstractmethod
    def check(self, y: Any) -> Outputs:
        """Return outputs in canonical form: an array with one output per entry of its first axis.

        Outputs in canonical form are returned as they are. Raise a ValueError that explains what to
        do if y holds anything else.
        """

    @abstractmethod
    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix of y and z, or of y with itself, as a new array."""

    def learn_form(self, y: Any) -> OutputKernel:
        """Return this kernel, remembering what the canonical form of y does not hold.

        A kernel that takes outputs in several forms, such as sparse and dense matrices, stores the
        form in a parameter, and returns predictions in it by :meth:`in_form`.
        """
        return self

    def in_form(self, outputs: Outputs) -> Any:
        """Return predicted outputs in the form in which y was given; by default as an array."""
        return self.as_given(outputs)

    def as_given(self, outputs: Outputs) -> Outputs:
        """Return an array of outputs, each in the form in which y was given.

        Predictions and losses of users have this form. Override it if the canonical form replaces
        single outputs, such as class paths by sets of classes, or text by numbers.
        """
        return outputs

    def resolve(self, y: Outputs) -> OutputKernel:
        """Return this kernel with parameters that depend on the training outputs filled in."""
        return self

    def restrict(self, y: Outputs) -> OutputKernel:
        """Return a kernel that stores only what it needs for these outputs.

        A model's ``compact()`` calls it with the training outputs, to drop data that prediction
        does not need. The result must agree with this kernel on y, and may raise an error for any
        other output.

        Return ``self``, the same object, if there is nothing to drop. This is the default and right
        for a kernel that stores parameters only, or that needs all its data for any output, as a
        kernel on the vertices of a graph does.
        """
        return self

    def diag(self, y: Outputs) -> Floats:
        """Return k(y_i, y_i)."""
        return self.pairs(y, y)

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        blocks = [slice(i, i + BLOCK) for i in range(0, len(y), BLOCK)]
        return np.concatenate([np.diagonal(self(y[block], z[block])) for block in blocks])

    def class_numbers(self, y: Outputs) -> Ints | None:
        """Return the class of each training output if features indicate classes, else None.

        Trees are then grown from these numbers, without explicit features.
        """
        return None

    def feature_dim(self, y: Outputs) -> int | None:
        """Return the number of explicit features, or None if the kernel has none.

        By default the features of one output are counted, if the kernel has :meth:`features`.
        """
        if type(self).features is OutputKernel.features:
            return None
        return int(self.features(y[:1]).shape[1])

    def features(self, y: Outputs) -> Floats:
        """Return explicit features Φ, of shape (n, feature_dim), with k(y, z) = Φ(y) Φ(z)ᵀ.

        Only called on a resolved kernel. At least one of y and z is a training output.
        """
        raise TypeError(f"{type(self).__name__} has no explicit features")

    def phases(self, y: Outputs, n: int, rng: np.random.Generator) -> Floats:
        """Return ⟨ω_j, y_i⟩ for n random frequencies ω_j, with k(y, z) = E cos⟨ω, y − z⟩.

        Random Fourier features use it; kernels that depend on y − z only can implement it.
        """
        raise ValueError(
            f"embedding='fourier' needs an RBF or Laplacian kernel on vectors, but the kernel is "
            f"{describe_kernel(self)}; use embedding='cholesky' or 'nystrom'."
        )

    def __add__(self, other: OutputKernel) -> Sum:
        from okforest.kernels.composition import Sum

        return Sum(self, other) if isinstance(other, OutputKernel) else NotImplemented

    def __mul__(self, other: OutputKernel | float) -> Product | Scaled:
        from okforest.kernels.composition import Product, Scaled

        if isinstance(other, OutputKernel):
            return Product(self, other)
        return Scaled(self, float(other)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


def methods_of(kernel: OutputKernel, as_part: bool = False) -> dict[str, Any]:
    """Return the methods that a kernel, and the kernels it is composed of, offer to models."""
    found: dict[str, Any] = {}
    for part in kernel.get_params(deep=False).values():
        if isinstance(part, OutputKernel):
            found = methods_of(part, as_part=True) | found
    if kernel.methods_as_part or not as_part:
        found |= kernel.methods
    return found


MAX_VALUE_LENGTH = 80


def describe_kernel(kernel: OutputKernel) -> str:
    """Return a kernel with the parameters that are not the default, such as ``RBF(sigma=2.0)``."""
    defaults = signature(type(kernel)).parameters
    parts = [
        f"{name}={_shown(value)}"
        for name, value in kernel.get_params(deep=False).items()
        if not _is_default(value, defaults[name].default)
    ]
    return f"{type(kernel).__name__}({', '.join(parts)})"


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, str | int | float) and value == default)


def _shown(value: Any) -> str:
    if isinstance(value, OutputKernel):
        return describe_kernel(value)
    if isinstance(value, list | tuple) and all(isinstance(part, OutputKernel) for part in value):
        return f"[{', '.join(map(describe_kernel, value))}]"
    shape = getattr(value, "shape", None)  # arrays, sparse matrices and frames have one
    if isinstance(shape, tuple) and shape:
        return f"<{' × '.join(map(str, shape))} matrix>" if len(shape) == 2 else f"<{shape} array>"
    text = repr(value)
    return (
        text if len(text) <= MAX_VALUE_LENGTH and "\n" not in text else f"<{type(value).__name__}>"
    )


def kernel_was_set(model: Any) -> bool:
    """Return whether a model's kernel, or a parameter of it, was changed by ``set_params``."""
    return getattr(model, "_kernel_was_set", False)


def _check_nested(estimator: BaseEstimator, params: dict[str, Any]) -> None:
    """Raise a ValueError if a parameter such as ``kernel__sigma`` has no object to be set on."""
    current = estimator.get_params(deep=False)
    for name in params:
        part, nested, _ = name.partition("__")
        value = params.get(part, current.get(part))
        has_parameters = hasattr(value, "set_params") and not isinstance(value, type)
        if nested and part in current and not has_parameters:
            raise ValueError(
                f"{name} cannot be set, because {part}={_name_of(value)} has no parameters; "
                f"pass {_as_object(part, value)}."
            )


def _name_of(value: Any) -> str:
    return getattr(value, "__name__", repr(value))


def _as_object(part: str, value: Any) -> str:
    """Describe the object to pass instead of a name, a class or a function."""
    from okforest.kernels.as_kernel import as_kernel

    if isinstance(value, type):
        return f"an object, {part}={value.__name__}(...)"
    try:
        kernel = type(as_kernel(value)).__name__
    except ValueError:
        return f"an object with this parameter as {part}"
    return f"an object, {part}={kernel}({_name_of(value) if callable(value) else ''})"
