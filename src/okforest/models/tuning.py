"""Choosing by cross-validation: the parameters of a decoder, and how much to prune a tree."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import rows_of
from okforest.decode import Decoder, as_decoder
from okforest.decode.base import HeldOut
from okforest.engine import prune
from okforest.kernels import as_kernel
from okforest.metrics import kernel_loss
from okforest.metrics.losses import unwrap
from okforest.models.tree import OKTree
from okforest.models.wrapping import final_model
from okforest.weights import Span


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
        The decoder to tune, such as ``Threshold("macro_f1")``; by default that of the model.
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


MAX_ALPHAS = 100  # candidates, evenly spread along the path


@dataclass(frozen=True)
class PruningChoice:
    """The result of :func:`select_ccp_alpha`.

    Parameters
    ----------
    ccp_alpha : float
        The chosen alpha.
    ccp_alphas : ndarray
        The candidates, ascending.
    losses : ndarray
        Their mean losses in feature space over the folds.
    standard_errors : ndarray
        The standard errors of these means.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree, select_ccp_alpha
    >>> choice = select_ccp_alpha(OKTree(random_state=0), *load_diabetes(return_X_y=True))
    >>> bool(choice.ccp_alpha == choice.ccp_alphas[choice.losses.argmin()])
    True
    """

    ccp_alpha: float
    ccp_alphas: Floats
    losses: Floats
    standard_errors: Floats


def select_ccp_alpha(
    tree: OKTree,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    cv: Any = 5,
    one_standard_error: bool = False,
) -> PruningChoice:
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
    choice : PruningChoice
        The chosen alpha, and the losses of all candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKTree, select_ccp_alpha
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = OKTree(random_state=0)
    >>> choice = select_ccp_alpha(tree, X, y)
    >>> pruned = tree.set_params(ccp_alpha=choice.ccp_alpha).fit(X, y)
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
    folds = []
    for train, test in check_cv(cv).split(X, y):
        whole = clone(tree).set_params(ccp_alpha=0.0)
        whole.fit(rows_of(X, train), rows_of(y, train), None if weight is None else weight[train])
        X_test, y_test = rows_of(X, test), rows_of(y, test)
        losses = []
        for alpha in alphas:
            pruned = copy(whole)
            pruned.trees_ = prune(whole.trees_, alpha)
            losses.append(
                kernel_loss(pruned, X_test, y_test, None if weight is None else weight[test])
            )
        folds.append(losses)
    mean = np.mean(folds, axis=0)
    error = np.std(folds, axis=0, ddof=min(1, len(folds) - 1)) / np.sqrt(len(folds))
    best = int(mean.argmin())
    limit = mean[best] + error[best] if one_standard_error else mean[best]
    return PruningChoice(float(alphas[mean <= limit].max()), alphas, mean, error)
