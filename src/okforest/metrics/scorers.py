"""Scorers to pass as ``scoring=`` to scikit-learn's searches and cross-validation.

A higher score is better. ``kernel_r2_scorer``, ``kernel_loss_scorer`` and ``output_loss_scorer``
measure in the feature space of each model's own kernel, so they compare models with the same kernel
only. The scorers that ``make_kernel_scorer`` and ``make_output_scorer`` return can compare kernels.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from okforest._utils.compat import StrOptions
from okforest._utils.errors import warn
from okforest._utils.parameters import check_arguments
from okforest.kernels import OutputKernel, as_kernel
from okforest.kernels.base import kernel_was_set
from okforest.metrics.losses import (
    check_score_weight,
    check_truth,
    kernel_loss,
    kernel_r2,
    output_loss,
    span_in,
    unwrap,
)

KernelMetric = Literal["r2", "loss", "output_loss"]


def kernel_r2_scorer(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Score a model by the kernel R² in its own feature space, as its ``score`` method does.

    The ``score`` of a classifier, a model with the Dirac kernel, is its accuracy instead.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their true outputs.
    sample_weight : array-like, optional
        Weights.

    Returns
    -------
    score : float
        The kernel R².

    See Also
    --------
    make_kernel_scorer : To compare models with different kernels.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.metrics import kernel_r2_scorer
    >>> tree = OKTree(max_depth=1).fit([[0], [0], [1]], [1.0, 3.0, 5.0])
    >>> float(kernel_r2_scorer(tree, [[0], [1]], [3.0, 5.0]))
    0.5
    """
    model, X = unwrap(model, X)
    _warn_if_kernel_was_set(model)
    return kernel_r2(model, X, y, sample_weight)


def kernel_loss_scorer(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Score a model by minus the mean loss in its own feature space, without decoding outputs.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their true outputs.
    sample_weight : array-like, optional
        Weights.

    Returns
    -------
    score : float
        Minus the loss.

    See Also
    --------
    make_kernel_scorer : To compare models with different kernels.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.metrics import kernel_loss_scorer
    >>> tree = OKTree(max_depth=1).fit([[0], [0], [1]], [1.0, 3.0, 5.0])
    >>> float(kernel_loss_scorer(tree, [[0], [1]], [3.0, 5.0]))
    -0.5
    """
    model, X = unwrap(model, X)
    _warn_if_kernel_was_set(model)
    return -kernel_loss(model, X, y, sample_weight)


def output_loss_scorer(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Score a model by minus the mean loss of the outputs it predicts, in its own feature space.

    Parameters
    ----------
    model : estimator
        A fitted model of okforest, or a pipeline that ends with one.
    X, y : array-like
        Inputs and their true outputs.
    sample_weight : array-like, optional
        Weights.

    Returns
    -------
    score : float
        Minus the loss.

    See Also
    --------
    make_output_scorer : To compare models with different kernels.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.metrics import output_loss_scorer
    >>> tree = OKTree(kernel="dirac").fit([[0], [1]], ["a", "b"])
    >>> float(output_loss_scorer(tree, [[0], [1]], ["a", "a"]))
    -1.0
    """
    model, X = unwrap(model, X)
    _warn_if_kernel_was_set(model)
    return -output_loss(model.kernel_, y, model.predict(X), sample_weight)


def make_kernel_scorer(kernel: Any, metric: KernelMetric = "r2") -> Callable[..., float]:
    """Return a scorer that measures predictions in the feature space of one given kernel.

    Models with different kernels, as in a search over ``kernel__sigma``, are then compared in the
    same space. (Their ``score`` is measured in a space of their own, and prefers wide kernels.)

    Parameters
    ----------
    kernel : OutputKernel, str or callable
        The kernel to measure with, on the same kind of outputs as the models' kernels. Parameters
        that are learnt, such as ``sigma="median"``, are computed from the training outputs, which
        are the same for all candidates of a search.
    metric : {"r2", "loss", "output_loss"}, default="r2"
        "r2" is :func:`kernel_r2` and "loss" minus :func:`kernel_loss`, both without decoding;
        "output_loss" is minus the :func:`output_loss` of the predicted outputs.

    Returns
    -------
    scorer : callable
        A function of a model, X, y and optional sample weights, to pass as ``scoring=``.

    See Also
    --------
    make_output_scorer : Scores predicted outputs by a loss function.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from okforest import OKTree
    >>> from okforest.kernels import RBF
    >>> from okforest.metrics import make_kernel_scorer
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> Y = np.c_[X[:, 0] > 0, X[:, 1]]
    >>> search = GridSearchCV(
    ...     OKTree(kernel=RBF(), random_state=0),
    ...     {"kernel__sigma": [0.01, 1.0]},
    ...     scoring=make_kernel_scorer(RBF(sigma="median")),
    ... )
    >>> search.fit(X, Y).best_params_
    {'kernel__sigma': 1.0}
    """
    options = StrOptions(set(get_args(KernelMetric)))
    check_arguments("make_kernel_scorer", {"metric": [options]}, metric=metric)
    return _KernelScorer(as_kernel(kernel), metric)


def make_output_scorer(
    loss: Callable[[Any, Any], float], greater_is_better: bool = False
) -> Callable[..., float]:
    """Return a scorer that averages a function of each true output and the predicted one.

    It measures what ``predict`` returns, and so depends on the kernel and the decoder only through
    the outputs they lead to. (For a function of all outputs at once, such as
    :func:`sklearn.metrics.mean_squared_error`, use :func:`sklearn.metrics.make_scorer`.)

    Parameters
    ----------
    loss : callable
        ``loss(true, predicted)`` returns a number for two outputs, in the form of ``predict``; rows
        of a sparse matrix or a frame are arrays.
    greater_is_better : bool, default=False
        Whether the function is a similarity instead of a loss. The score is minus the mean of a
        loss.

    Returns
    -------
    scorer : callable
        A function of a model, X, y and optional sample weights, to pass as ``scoring=``.

    See Also
    --------
    make_kernel_scorer : Scores predictions without decoding.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from okforest import OKTree
    >>> from okforest.kernels import FromCallable
    >>> from okforest.metrics import make_output_scorer
    >>> def common_letters(a, b):
    ...     return len(set(a) & set(b))
    >>> def difference_in_length(true, predicted):
    ...     return abs(len(true) - len(predicted))
    >>> X, words = np.arange(6.0).reshape(-1, 1), ["a", "ab", "abc", "abcd", "abcde", "abcdef"]
    >>> tree = OKTree(kernel=FromCallable(common_letters, elementwise=True))
    >>> cross_val_score(tree, X, words, scoring=make_output_scorer(difference_in_length), cv=6)
    array([-1., -1., -1., -1., -1., -1.])
    """
    if not callable(loss):
        raise ValueError(
            f"loss={loss!r} is not a function; pass a function of a true and a predicted output "
            "that returns a number."
        )
    return _OutputScorer(loss, greater_is_better)


class _Scorer(ABC):
    """The interface that scikit-learn expects of a scorer."""

    _request: bool | str | None = None

    @abstractmethod
    def __call__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of a fitted model."""

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Request sample weights, if scikit-learn's metadata routing is enabled."""
        self._request = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that this scorer has requested."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._request)
        return request

    def _accept_sample_weight(self) -> bool:  # searches with several scorers call it
        return True

    def __sklearn_clone__(self) -> Self:
        return copy.copy(self)  # a clone shares the kernel, which may hold a large matrix


class _KernelScorer(_Scorer):
    def __init__(self, kernel: Any, metric: KernelMetric):
        self.kernel = kernel
        self.metric = metric

    def __call__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        if self.metric == "r2":
            return kernel_r2(model, X, y, sample_weight, kernel=self.kernel)
        if self.metric == "loss":
            return -kernel_loss(model, X, y, sample_weight, kernel=self.kernel)
        model, X = unwrap(model, X)
        kernel = span_in(self.kernel, model).kernel
        return -output_loss(kernel, y, model.predict(X), sample_weight)

    def __repr__(self) -> str:
        return f"make_kernel_scorer({self.kernel!r}, metric={self.metric!r})"


class _OutputScorer(_Scorer):
    def __init__(self, loss: Callable[[Any, Any], float], greater_is_better: bool):
        self.loss = loss
        self.greater_is_better = greater_is_better

    def __call__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        model, X = unwrap(model, X)
        true = check_truth(model.span_, X, y)
        weight = check_score_weight(sample_weight, true)
        kernel, predicted = model.kernel_, model.predict(X)
        converts = type(kernel).in_form is not OutputKernel.in_form  # a sparse matrix, or paths
        if converts or not isinstance(predicted, np.ndarray):  # rows of a frame are arrays
            predicted = kernel.as_given(kernel.check(predicted))
        pairs = zip(kernel.as_given(true), predicted, strict=True)
        losses = [self._number(self.loss(*pair)) for pair in pairs]
        mean = float(np.average(losses, weights=weight))
        return mean if self.greater_is_better else -mean

    def _number(self, value: Any) -> float:
        if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf":
            return float(value)
        raise ValueError(
            f"the loss function returned {value!r} for two outputs; it must return a number."
        )

    def __repr__(self) -> str:
        better = ", greater_is_better=True" if self.greater_is_better else ""
        return f"make_output_scorer({getattr(self.loss, '__name__', self.loss)}{better})"


def _warn_if_kernel_was_set(model: Any) -> None:
    """Warn that a score in a model's own space is not comparable, if a search set its kernel."""
    if kernel_was_set(model):
        warn(
            f"the kernel of this {type(model).__name__} was changed by set_params, as in a search "
            "over kernel parameters, but the score is measured in the feature space of that "
            "kernel and cannot be compared with scores of other kernels (a wider RBF kernel "
            "scores higher). To choose a kernel, pass scoring=make_kernel_scorer(kernel) or "
            "scoring=make_output_scorer(loss), both in okforest.metrics.",
            UserWarning,
        )
