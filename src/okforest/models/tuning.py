"""Decoders tuned by cross-validation, for models without out-of-bag predictions."""

from typing import Any

from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline

from okforest._compat import rows_of
from okforest._sparse import check_sparse
from okforest.decode import Decoder, as_decoder
from okforest.decode._base import HeldOut
from okforest.kernels import as_kernel
from okforest.metrics.losses import unwrap
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
    own = _last_step(model)
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
        _last_step(fold).set_params(decoder="training_set")
        fold.fit(rows_of(X, train), rows_of(y, train))
        fitted, inputs = unwrap(fold, rows_of(X, test))
        held_out.append(HeldOut(fitted.weight_matrix(inputs), fitted.span_, outputs[test]))
    return decoder.tune(held_out, span)


def _last_step(model: Any) -> Any:
    while isinstance(model, Pipeline):
        model = model[-1]
    return model
