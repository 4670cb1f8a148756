"""The contract of every model: x → w(x), weights over the training outputs."""

from abc import ABC, abstractmethod
from contextlib import suppress
from copy import copy
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Outputs, like
from okforest._utils.frames import library_of, with_index_of
from okforest._utils.resources import check_memory, csr_bytes
from okforest._utils.state import FittedState, Maybe
from okforest.decode import Decoder, TrainingSet, as_decoder
from okforest.kernels import OutputKernel, as_kernel
from okforest.kernels.base import NestedParametersMixin, methods_of
from okforest.metrics import kernel_r2_scorer
from okforest.metrics.losses import check_score_weight, check_truth
from okforest.models.outputs import (
    accuracy,
    check_decoded,
    check_kernel,
    check_outputs,
    has_classes,
    has_numbers,
    output_names,
    tune_later,
    with_names,
)
from okforest.weights import Span, WeightMatrix, as_weights

# Where methods come from that not every kernel offers.
HINTS = {
    "predict_proba": "it predicts probabilities of classes, with kernel='dirac', and of labels, "
    "with a kernel on label sets such as 'hamming'",
    **dict.fromkeys(
        ("predict_survival_function", "predict_quantiles", "predict_risk"),
        "it predicts survival only with kernel='survival'",
    ),
}


class OKModel(NestedParametersMixin, FittedState, ABC):
    """A model that predicts F(x) = Σ_i w_i(x) φ(y_i) in the feature space of an output kernel.

    All that a model learns is in the weights w(x) over the training outputs. To add a model,
    subclass it and write ``fit`` and :meth:`weight_matrix`; prediction, scores, saving and the rest
    follow. ``__init__`` has parameters ``kernel`` and ``decoder`` besides its own, and stores them
    unchanged. ``fit`` calls :meth:`validate_outputs`, learns, and calls :meth:`store_outputs`. What
    it learns it keeps in attributes whose names end in an underscore: numbers, text, arrays, or
    objects of okforest. Annotations of the class, such as ``centres_: np.ndarray``, declare their
    types, which :func:`okforest.save` and :func:`okforest.load` check. ``fit`` runs on a copy,
    whose attributes replace the attributes of an earlier fit when it is complete. Predictions set
    no attribute, so that threads can share a model.

    Three methods are for developers, who write such a class, and not for users of models:
    :meth:`validate_outputs`, :meth:`store_outputs` and :meth:`check_state`, in which a model whose
    arrays must fit each other checks them.

    Attributes
    ----------
    kernel_ : OutputKernel
        The kernel, with parameters that depend on the outputs filled in.
    outputs_ : ndarray
        The training outputs.
    output_names_ : list or None
        The columns of y, if it is a frame of vectors or curves and they are text, numbers or tuples
        of these.
    output_form_ : {"frame", "polars"}
        The library of that frame: pandas or polars.

    Examples
    --------
    A model that predicts the mean of all training outputs:

    >>> import numpy as np
    >>> from sklearn.utils.validation import validate_data
    >>> from okforest import OKModel
    >>> from okforest.weights import DenseWeights
    >>> class MeanModel(OKModel):
    ...     def __init__(self, kernel="linear", decoder="auto"):
    ...         self.kernel = kernel
    ...         self.decoder = decoder
    ...
    ...     def fit(self, X, y, sample_weight=None):
    ...         X = validate_data(self, X)
    ...         self.store_outputs(*self.validate_outputs(X, y))
    ...         return self
    ...
    ...     def weight_matrix(self, X):
    ...         X = validate_data(self, X, reset=False)
    ...         n_train = len(self.outputs_)
    ...         return DenseWeights(np.full((len(X), n_train), 1 / n_train))
    >>> model = MeanModel(kernel="dirac").fit([[1.0], [2.0], [3.0]], ["a", "b", "b"])
    >>> model.predict([[5.0]])
    array(['b'], dtype='<U1')
    """

    _derived: ClassVar[tuple[str, ...]] = ("_span",)

    kernel: Any
    decoder: Any
    device: Any = "cpu"  # where predictions are computed; some models make it a parameter
    kernel_: OutputKernel
    outputs_: Outputs
    output_names_: Maybe[list[Any] | None]
    output_form_: Maybe[Literal["frame", "polars"]]
    decoder_: Maybe[Decoder]

    @abstractmethod
    def weight_matrix(self, X: Any) -> WeightMatrix:
        """Return the weights of the training outputs, in the form that takes the least memory.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.

        Returns
        -------
        W : okforest.weights.WeightMatrix of shape (n, n_train)
            Row i holds w(x_i). ``W @ values`` are weighted sums, ``W.tocsr()`` is the matrix.
        """

    def predict_weights(self, X: Any) -> sp.csr_array:
        """Return the weights of the training outputs: the lossless prediction.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.

        Returns
        -------
        W : csr_array of shape (n, n_train)
            Row i holds w(x_i).
        """
        W = self._checked_weights(X)
        check_memory(
            csr_bytes(W),
            f"the matrix of weights of {W.shape[0]} predictions over {W.shape[1]} training outputs",
            "Predict fewer rows at a time, or call weight_matrix, which does not store the matrix.",
        )
        return W.tocsr()

    def predict(self, X: Any, candidates: Any = None) -> Outputs:
        """Predict outputs, decoded from the weights.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        candidates : array-like, optional
            Outputs to choose from, of the type that the kernel takes,
            :class:`okforest.decode.Candidates`, which prepare them for several calls, or
            :class:`okforest.decode.CandidateLists` with other outputs for each row; by default
            ``decoder`` decides.

        Returns
        -------
        y : ndarray of n outputs
            With a precomputed kernel, positions in its Gram matrix. Outputs that were given as a
            frame of pandas or polars (vectors, curves, label sets, ranks) or as a sparse matrix
            (label sets) come back as one, with the index of X if both are frames of pandas.
            (Columns of vectors and curves that have dates as names do not.)
        """
        span, W = self.span_, self._checked_weights(X)
        if candidates is None:
            decoder = self._decoder()
        else:
            decoder = as_decoder(self.decoder, span.kernel).with_candidates(candidates)
        predicted = self._decoded(decoder, W, span)
        return like(with_index_of(X, predicted), X)

    def predict_top(self, X: Any, k: int = 5, candidates: Any = None) -> tuple[Outputs, Floats]:
        """Return the k outputs nearest to each prediction, and their distances.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        k : int, default=5
            Number of outputs.
        candidates : array-like, optional
            Outputs to choose from, or :class:`okforest.decode.CandidateLists` with other outputs
            for each row; by default those that ``decoder`` searches, or the training outputs if it
            does not search.

        Returns
        -------
        y : ndarray of shape (n, k, ...)
            Outputs, nearest first.
        losses : ndarray of shape (n, k)
            Their squared distances to the prediction in feature space; with the decoder
            :class:`okforest.decode.ExpectedLoss`, their expected losses.
        """
        span, W = self.span_, self._checked_weights(X)
        decoder: Any = as_decoder(self.decoder, span.kernel)
        if candidates is not None:
            decoder = decoder.with_candidates(candidates)
        elif not hasattr(decoder, "top"):
            decoder = TrainingSet()
        outputs, losses = decoder.top(W, span, k)
        flat = span.kernel.as_given(outputs.reshape(losses.size, *outputs.shape[2:]))
        return like(flat.reshape(*losses.shape, *flat.shape[1:]), X), like(losses, X)

    def predict_kernel(
        self, X: Any, Z: Any = None, scheme: Literal["convolve"] = "convolve"
    ) -> Floats:
        """Predict the output kernel between inputs, k̂(x, z) = w(x)ᵀ K w(z).

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        Z : array-like of shape (m, p), optional
            Other inputs; by default X.
        scheme : {"convolve"}
            How predictions are combined.

        Returns
        -------
        K : ndarray of shape (n, m)
            The predicted kernel.
        """
        if scheme != "convolve":
            raise ValueError(f"scheme={scheme!r}; {type(self).__name__} supports 'convolve' only.")
        span, W = self.span_, self._checked_weights(X)
        return like(span.gram(W, None if Z is None else self._checked_weights(Z)), X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the kernel R², or the accuracy if the model is a classifier.

        With the Dirac kernel a model is a classifier of scikit-learn. Its kernel R² is given by
        :func:`okforest.metrics.kernel_r2_scorer`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        y : array-like
            Their true outputs.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Returns
        -------
        score : float
            1 − Σ‖φ(y) − F(x)‖² / Σ‖φ(y) − φ̄‖², which needs no decoding, see
            :func:`okforest.metrics.kernel_r2`; or the fraction of rows that :meth:`predict`
            classifies correctly.
        """
        if not has_classes(self):
            return kernel_r2_scorer(self, X, y, sample_weight)
        true = check_truth(self.span_, X, y)
        return accuracy(true, self.predict(X), check_score_weight(sample_weight, true))

    def compact(self) -> Self:
        """Return a smaller copy of the model; this one does not change.

        A precomputed Gram matrix, or a kernel on the vertices of a graph, is restricted to the
        training outputs, so that a saved model does not carry the rest. Predictions are the same,
        but other outputs are unknown to the copy: it cannot score them. Out-of-bag estimates are
        dropped. Other kernels hold no data, and are kept as they are.

        Returns
        -------
        model : estimator
            The smaller model.
        """
        model = copy(self)
        model._forget("oob_weights_", "oob_prediction_", "oob_score_")
        if hasattr(self, "outputs_"):
            model.kernel = self.kernel_.restrict(self.outputs_)
            model.store_outputs(model.kernel, self.outputs_)
        return model

    @property
    def span_(self) -> Span:
        """The span of the training outputs, in which predictions lie."""
        known = vars(self)
        if "outputs_" not in known:
            check_is_fitted(self)
            raise ValueError(
                f"this {type(self).__name__} was fitted without y: it has weights, leaves and a "
                "tree kernel, but no outputs. Fit it with y."
            )
        span: Span | None = known.get("_span")
        if span is None or span.kernel is not self.kernel_ or span.outputs is not self.outputs_:
            return Span(self.kernel_, self.outputs_, self.device)
        return span if span.device == self.device else span.moved(self.device)

    def validate_outputs(
        self, X: Any, y: Any, sample_weight: Floats | None = None
    ) -> tuple[OutputKernel, Outputs]:
        """Check y against the kernel and the decoder.

        For developers: ``fit`` calls it.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs, whose number of rows y must match.
        y : array-like
            Outputs.
        sample_weight : ndarray of shape (n,), optional
            Weights of the rows; what a kernel learns, it learns from rows of positive weight.

        Returns
        -------
        kernel : OutputKernel
            A copy of the kernel, with parameters that depend on the outputs filled in.
        outputs : ndarray
            The outputs in canonical form.
        """
        kernel = clone(as_kernel(self.kernel)).learn_form(y)
        outputs = check_outputs(self, kernel, X, y)
        used = outputs
        if sample_weight is not None and not sample_weight.all():
            used = outputs[sample_weight > 0]
        names = output_names(kernel, y, outputs)
        kernel = kernel.resolve(used)
        check_kernel(kernel, outputs)
        decoder = as_decoder(self.decoder, kernel)
        decoder.check(Span(kernel, outputs))
        if not decoder.is_tuned and not getattr(self, "bootstrap", False):
            raise ValueError(
                f"{decoder!r} is tuned from out-of-bag predictions, and this {type(self).__name__} "
                "has none; use a forest with bootstrap=True, or tune it by cross-validation: "
                f"decoder=okforest.tune_decoder(model, X, y, {decoder!r})."
            )
        self.output_names_ = names
        self.output_form_ = library_of(y)
        return kernel, outputs

    def store_outputs(self, kernel: OutputKernel, outputs: Outputs) -> None:
        """Store the kernel and the training outputs, and what every prediction needs of them.

        For developers: ``fit`` calls it at its end.

        Parameters
        ----------
        kernel : OutputKernel
            The kernel, resolved.
        outputs : ndarray
            The training outputs, in canonical form.
        """
        self.kernel_, self.outputs_ = kernel, outputs
        self._span = Span(kernel, outputs, self.device)
        if self._span.features is None:
            _ = self._span.training.squares  # once, instead of in the first prediction

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes are as declared and fit each other.

        For developers: :func:`okforest.save` and :func:`okforest.load` call it, since compiled code
        trusts these arrays. A subclass extends it by its own attributes.
        """
        super().check_state()
        if not hasattr(self, "outputs_"):  # trees can be grown without y
            return
        if self.outputs_.ndim < 1:
            raise ValueError("outputs_ is not an array of outputs")
        try:
            checked = self.kernel_.check(self.outputs_)
        except Exception as error:  # the kernel may be a user's
            raise ValueError(
                f"outputs_ do not fit kernel_, whose method check must accept what it has returned "
                f"({type(error).__name__}: {error})"
            ) from None
        if checked.shape != self.outputs_.shape:
            raise ValueError("outputs_ do not fit kernel_: they are not in its canonical form")

    def _checked_weights(self, X: Any) -> WeightMatrix:
        """Return the weights, after checking what a model of a user returns."""
        W = as_weights(self._weights_of(X))
        if hasattr(self, "outputs_") and W.shape[1] != len(self.outputs_):
            raise ValueError(
                f"weight_matrix of {type(self).__name__} returned {W.shape[1]} columns; expected "
                f"one for each of the {len(self.outputs_)} training outputs."
            )
        return W

    def _weights_of(self, X: Any) -> WeightMatrix:
        """Return the weights for a call that is over before X can change."""
        return self.weight_matrix(X)

    def _decoded(self, decoder: Decoder, W: WeightMatrix, span: Span) -> Any:
        """Return what a decoder, which may be a user's, predicts, in the form of y."""
        decoded = check_decoded(decoder, decoder.decode(W, span), W.shape[0])
        names = getattr(self, "output_names_", None)
        form: Any = getattr(self, "output_form_", "frame")
        return with_names(span.kernel.in_form(decoded), names, form)

    def _decoder(self) -> Decoder:
        """Return the decoder, with what the fit has tuned."""
        decoder = as_decoder(self.decoder, self.kernel_)
        if decoder.is_tuned:
            return decoder
        if hasattr(self, "decoder_"):
            return self.decoder_
        return tune_later(self, decoder)  # an attribute of the model was set after the fit

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of kernels and decoders, as in ``kernel__sigma``.

        Parameters
        ----------
        **params : dict
            Values by name.

        Returns
        -------
        self : estimator
            This estimator.
        """
        changed = {name.partition("__")[0] for name in params}
        if "decoder" in changed:
            self._forget("decoder_")  # it belongs to the previous decoder
        super().set_params(**params)
        if "decoder" in changed and hasattr(self, "oob_weights_"):
            with suppress(ValueError):  # predict raises it
                decoder = as_decoder(self.decoder, self.kernel_)
                if not decoder.is_tuned:
                    self.decoder_ = tune_later(self, decoder)
        if "device" in changed and "_span" in self.__dict__:
            self._span = self._span.moved(self.device)
        return self

    def _forget(self, *names: str) -> None:
        """Remove fitted attributes, if they exist."""
        for name in names:
            self.__dict__.pop(name, None)

    if not TYPE_CHECKING:  # a type checker shall find misspelt names

        def __getattr__(self, name: str) -> Any:
            """Return a method that the kernel offers."""
            if hasattr(type(self), name):  # a property, whose own error is more helpful
                return object.__getattribute__(self, name)
            if name.startswith("_") or name == "kernel":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            offered = self._kernel_methods().get(name)
            if isinstance(offered, property):
                return offered.__get__(self)
            if offered is not None:
                return MethodType(offered, self)
            reason = f" with kernel={self.kernel!r}; {HINTS[name]}" if name in HINTS else ""
            raise AttributeError(f"{type(self).__name__} has no {name}{reason}.")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._kernel_methods()})

    def _kernel_methods(self) -> dict[str, Any]:
        try:
            return methods_of(as_kernel(self.kernel))
        except (AttributeError, ValueError):  # not yet built, or fit raises an error that explains
            return {}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if hasattr(self, "outputs_"):
            self._span = Span(self.kernel_, self.outputs_, self.device)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        if has_numbers(self):
            # Other outputs are neither numbers nor classes: scikit-learn's metrics would take
            # positions in a Gram matrix, for example, for numbers.
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
        elif has_classes(self):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
            tags.target_tags.multi_output = False
        return tags
