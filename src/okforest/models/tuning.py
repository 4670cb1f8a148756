"""Choosing a parameter by held-out loss: how much to prune, a decoder's parameters, a power."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import rows_of
from okforest._utils.plotting import LINE, new_axes
from okforest.decode import Decoder, Sharpened, as_decoder
from okforest.decode.base import HeldOut
from okforest.engine import prune
from okforest.kernels import as_kernel
from okforest.metrics import kernel_loss
from okforest.metrics.losses import unwrap
from okforest.models.tree import OKTree
from okforest.models.wrapping import final_model
from okforest.weights import Span, SparseWeights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ALPHAS = 100  # candidates, evenly spread along the path


@dataclass(frozen=True, eq=False, repr=False)
class ParameterChoice:
    """A value of a parameter, chosen by the loss on rows that the model was not fitted to.

    Parameters
    ----------
    parameter : str
        The name of the parameter.
    best : float
        The chosen value.
    values : ndarray of shape (m,)
        The values that were tried, ascending.
    held_out_losses : ndarray of shape (n, m)
        The loss of every value in each of n folds, or for each of n out-of-bag rows.

    See Also
    --------
    select_ccp_alpha, select_power, okforest.refit.select_leaf_penalty : Functions that return it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree, select_ccp_alpha
    >>> choice = select_ccp_alpha(OKTree(random_state=0), *load_diabetes(return_X_y=True))
    >>> choice
    <ParameterChoice: ccp_alpha=148, the best of 100 values>
    >>> bool(choice.best == choice.values[choice.losses.argmin()])
    True
    """

    parameter: str
    best: float
    values: Floats
    held_out_losses: Floats

    def __repr__(self) -> str:
        n = len(self.values)
        return f"<ParameterChoice: {self.parameter}={self.best:.4g}, the best of {n} values>"

    @property
    def losses(self) -> Floats:
        """The mean loss of every value."""
        return np.asarray(self.held_out_losses.mean(axis=0))

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of these means; 0 with a single fold."""
        n = len(self.held_out_losses)
        return np.asarray(self.held_out_losses.std(axis=0, ddof=min(1, n - 1)) / np.sqrt(n))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the mean losses and their standard errors, with a line at the chosen value.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default new axes.

        Returns
        -------
        ax : matplotlib Axes
            The axes.
        """
        ax = new_axes(ax, (5.0, 3.4))
        ax.errorbar(self.values, self.losses, yerr=self.standard_errors, marker=".", capsize=2)
        ax.axvline(self.best, color=LINE, ls=":")
        if self.values[0] > 0:
            ax.set_xscale("log")
        ax.set(xlabel=self.parameter, ylabel="held-out loss")
        return ax


def choose(
    parameter: str,
    values: Floats,
    held_out_losses: Any,
    preference: Floats,
    *,
    one_standard_error: bool = False,
) -> ParameterChoice:
    """Choose the value of least mean loss, of equal ones the preferred one.

    With ``one_standard_error``, losses within a standard error of the least one are equal to it.
    """
    choice = ParameterChoice(parameter, np.nan, values, np.asarray(held_out_losses))
    losses = choice.losses
    best = int(losses.argmin())
    limit = losses[best] + choice.standard_errors[best] * one_standard_error
    allowed = np.flatnonzero(losses <= limit)
    return replace(choice, best=float(values[allowed[preference[allowed].argmax()]]))


def losses_of_folds(
    losses: Callable[[Any, Any], Sequence[float]], X: Any, y: Any, cv: Any
) -> Floats:
    """Return the losses of all values in each fold; ``losses`` takes training and test rows."""
    return np.array([losses(train, test) for train, test in check_cv(cv).split(X, y)])


def select_ccp_alpha(
    tree: OKTree,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    cv: Any = 5,
    one_standard_error: bool = False,
) -> ParameterChoice:
    """Choose ``ccp_alpha`` of a tree by cross-validation of the loss in feature space.

    Parameters
    ----------
    tree : OKTree
        The tree to prune; it is not modified.
    X, y : array-like
        Inputs and outputs.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    cv : int or splitter, default=5
        The folds, as in :func:`sklearn.model_selection.cross_val_score`.
    one_standard_error : bool, default=False
        Whether to choose the smallest tree whose loss is within one standard error of the smallest
        loss, instead of the tree with the smallest loss.

    Returns
    -------
    choice : ParameterChoice
        The chosen alpha, and the losses of all candidates. Of equal losses, the largest alpha is
        chosen.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree, select_ccp_alpha
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = OKTree(random_state=0)
    >>> choice = select_ccp_alpha(tree, X, y)
    >>> pruned = tree.set_params(ccp_alpha=choice.best).fit(X, y)
    >>> len(pruned.trees_.feature) < 50
    True
    """
    if isinstance(tree, type):
        raise TypeError(
            f"select_ccp_alpha requires an OKTree, got the class {tree.__name__}; pass an instance "
            "such as OKTree()."
        )
    if not isinstance(tree, OKTree):
        raise TypeError(
            f"select_ccp_alpha requires an OKTree, got {type(tree).__name__}. For a forest, search "
            "ccp_alpha with sklearn.model_selection.GridSearchCV."
        )
    check_sparse(X, "X")
    path = tree.cost_complexity_pruning_path(X, y, sample_weight).ccp_alphas
    # Between two alphas of the path the pruned tree is the same: try their geometric mean.
    alphas = np.append(np.sqrt(path[:-1] * path[1:]), path[-1])
    if len(alphas) > MAX_ALPHAS:
        alphas = alphas[np.linspace(0, len(alphas) - 1, MAX_ALPHAS).astype(int)]
    weight = None if sample_weight is None else np.asarray(sample_weight)

    def losses(train: Any, test: Any) -> list[float]:
        train_weight, test_weight = (None if weight is None else weight[r] for r in (train, test))
        whole = clone(tree).set_params(ccp_alpha=0.0)
        whole.fit(rows_of(X, train), rows_of(y, train), train_weight)
        X_test, y_test = rows_of(X, test), rows_of(y, test)
        found = []
        for alpha in alphas:
            pruned = copy(whole)
            pruned.trees_ = prune(whole.trees_, alpha)
            found.append(kernel_loss(pruned, X_test, y_test, test_weight))
        return found

    found = losses_of_folds(losses, X, y, cv)
    return choose("ccp_alpha", alphas, found, alphas, one_standard_error=one_standard_error)


def select_power(
    model: Any,
    loss: Callable[[Any, Any], float],
    powers: Sequence[float] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
) -> ParameterChoice:
    """Choose the power of :class:`okforest.decode.Sharpened` by the loss of out-of-bag predictions.

    The forest is not refitted: only its out-of-bag weights are decoded again. They average about a
    third of the trees, so the power is the best one for a smaller forest.

    Parameters
    ----------
    model : estimator
        A fitted forest, with ``bootstrap=True`` and ``oob_score=True``.
    loss : callable
        ``loss(true, predicted)`` returns a number for two outputs, in the form in which y was
        given.
    powers : sequence of float, optional
        The powers to try.

    Returns
    -------
    choice : ParameterChoice
        The power of least loss, the one closest to 1 of equals, and the losses of every row.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKRandomForest, select_power
    >>> from okforest.decode import Sharpened
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = OKRandomForest(oob_score=True, random_state=0).fit(X, y)
    >>> choice = select_power(forest, lambda true, predicted: abs(true - predicted))
    >>> choice.best
    0.5
    >>> forest = forest.set_params(decoder=Sharpened(power=choice.best))
    """
    weights = getattr(model, "oob_weights_", None)
    if weights is None:
        raise ValueError(
            f"this {type(model).__name__} has no out-of-bag weights; fit a forest with "
            "bootstrap=True and oob_score=True, or search decoder__power with GridSearchCV and "
            "scoring=make_output_scorer(loss)."
        )
    if not callable(loss):
        raise ValueError(f"loss={loss!r} is not a function of a true and a predicted output.")
    tried = np.unique(np.asarray(powers, dtype=np.float64))
    if not len(tried) or not (tried >= 0).all() or not np.isfinite(tried).all():
        raise ValueError(f"powers={powers!r}; pass one or more numbers of at least 0.")
    span: Span = model.span_
    decoder = as_decoder(model.decoder, span.kernel)
    if isinstance(decoder, Sharpened):
        decoder = as_decoder(decoder.decoder, span.kernel)
    known = np.diff(weights.indptr) > 0
    W, outputs = SparseWeights(weights[known]), span.outputs[known]
    true = span.kernel.as_given(outputs)
    losses = []
    for power in tried:
        sharpened: Decoder = Sharpened(decoder, float(power))
        if not sharpened.is_tuned:  # for each power anew
            sharpened = sharpened.tune([HeldOut(W, span, outputs)], span)
        predicted = span.kernel.as_given(sharpened.decode(W, span))
        losses.append([loss(y, c) for y, c in zip(true, predicted, strict=True)])
    distance = np.abs(np.log(np.maximum(tried, 1e-9)))
    return choose("power", tried, np.array(losses, dtype=np.float64).T, -distance)


def tune_decoder(model: Any, X: Any, y: Any, decoder: Any = None, cv: Any = 3) -> Decoder:
    """Choose the parameters of a decoder by cross-validation.

    Parameters
    ----------
    model : estimator
        A model of okforest, or a pipeline that ends with one. It need not be fitted, and does not
        change.
    X : array-like of shape (n, p)
        Inputs.
    y : array-like of n outputs
        Their outputs.
    decoder : Decoder, optional
        The decoder to tune, such as ``Threshold("macro_f1")``; by default the model's decoder.
    cv : int, cross-validation generator or iterable, default=3
        The folds: the model is fitted once for each.

    Returns
    -------
    decoder : Decoder
        The decoder with its parameters filled in, to pass as ``decoder=`` to a model that is fitted
        to all of X and y. A fitted model takes it without another fit:
        ``model.set_params(decoder=...)``.

    See Also
    --------
    okforest.decode.Threshold : Thresholds on the probabilities of labels.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from okforest import OKBoost, tune_decoder
    >>> from okforest.decode import Threshold
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> model = OKBoost(50, kernel="hamming", random_state=0)
    >>> decoder = tune_decoder(model, X, Y, Threshold("macro_f1"))
    >>> model.set_params(decoder=decoder).fit(X, Y).predict(X[:1])
    array([[0, 0, 1, 1, 1]])
    """
    check_sparse(X, "X")
    own = final_model(model)
    kernel = clone(as_kernel(own.kernel)).learn_form(y)
    outputs = kernel.check(y)
    span = Span(kernel.resolve(outputs), outputs)
    decoder = as_decoder(own.decoder if decoder is None else decoder, span.kernel)
    decoder.check(span)
    if decoder.is_tuned:
        raise ValueError(
            f"{decoder!r} has nothing to tune; pass a decoder such as Threshold('macro_f1')."
        )
    held_out = []
    for train, test in check_cv(cv).split(X, outputs):
        fold = clone(model)
        final_model(fold).set_params(decoder="training_set")
        fold.fit(rows_of(X, train), rows_of(y, train))
        fitted, inputs = unwrap(fold, rows_of(X, test))
        held_out.append(HeldOut(fitted.weight_matrix(inputs), fitted.span_, outputs[test]))
    return decoder.tune(held_out, span)
