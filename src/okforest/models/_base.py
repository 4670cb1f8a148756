"""The contract that every model keeps: x → w(x), weights over the training outputs."""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils import RegressorTags, Tags
from sklearn.utils.validation import check_is_fitted

from okforest._typing import Floats, Outputs, WeightMatrix, Weights
from okforest._validation import check_outputs
from okforest.decode import Candidates, SearchDecoder, TrainingSet, as_decoder
from okforest.embedding import Span
from okforest.kernels import OutputKernel, as_kernel
from okforest.metrics import kernel_r2


class Averager(ABC, BaseEstimator):
    """A model that predicts F(x) = Σ_i w_i(x) φ(y_i): all it knows of x is in the weights.

    A subclass has parameters ``kernel`` and ``decoder``, sets ``kernel_`` and ``outputs_`` when
    fitted (:meth:`_check_target` returns them), and writes :meth:`predict_weights`.
    """

    kernel: Any
    decoder: Any
    kernel_: OutputKernel
    outputs_: Outputs

    @abstractmethod
    def predict_weights(self, X: Any) -> Weights:
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

    def predict(self, X: Any, candidates: Any = None) -> Outputs:
        """Predict outputs, decoded from the weights.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        candidates : array-like, optional
            Outputs to choose from, of the kernel's kind; by default ``decoder`` decides.

        Returns
        -------
        y : ndarray of n outputs
            With a precomputed kernel, positions in its Gram matrix.
        """
        span, W = self.span_, self._weights(X)
        if candidates is not None:
            return Candidates(candidates).decode(W, span)
        return as_decoder(self.decoder, span.kernel).decode(W, span)

    def predict_top(self, X: Any, k: int = 5, candidates: Any = None) -> tuple[Outputs, Floats]:
        """Return the k outputs nearest to each prediction, and how far they are.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        k : int, default=5
            How many.
        candidates : array-like, optional
            Outputs to choose from; by default those that ``decoder`` searches, or the training
            outputs if it does not search.

        Returns
        -------
        y : ndarray of shape (n, k, ...)
            Outputs, nearest first.
        losses : ndarray of shape (n, k)
            Their squared distances to the prediction in H.
        """
        span, W = self.span_, self._weights(X)
        decoder = as_decoder(self.decoder, span.kernel)
        if candidates is not None:
            decoder = Candidates(candidates)
        elif not isinstance(decoder, SearchDecoder):
            decoder = TrainingSet()
        return decoder.top(W, span, k)

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
            raise ValueError(f"scheme={scheme!r}; {type(self).__name__} has 'convolve' only.")
        span = self.span_
        return span.gram(self._weights(X), None if Z is None else self._weights(Z))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the kernel R², which needs no pre-image.

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
            1 − Σ‖φ(y) − F(x)‖² / Σ‖φ(y) − φ̄‖²; see :func:`okforest.metrics.kernel_r2`.
        """
        return kernel_r2(self, X, y, sample_weight)

    def compact(self) -> Self:
        """Return a copy of the model without what prediction does not need.

        Of a precomputed Gram matrix the block of the training outputs is kept, so that a saved
        model does not carry the rest; predictions are positions in the whole matrix all the same,
        but other positions than those of training are unknown to it, so that it cannot score them.
        Out-of-bag estimates are dropped.

        Returns
        -------
        model : estimator
            The smaller model; it predicts the same.
        """
        model = copy(self)
        model._forget("oob_weights_", "oob_prediction_", "oob_score_")
        if hasattr(self, "outputs_"):
            model.kernel = model.kernel_ = self.kernel_.restrict(self.outputs_)
        return model

    @property
    def span_(self) -> Span:
        """The span of the training outputs, in which predictions are."""
        check_is_fitted(self)
        if not hasattr(self, "outputs_"):
            raise ValueError(
                f"this {type(self).__name__} was fitted without y: it has weights, leaves and a "
                "tree kernel, but no outputs. Fit it with y."
            )
        return Span(self.kernel_, self.outputs_)

    def _check_target(self, X: Any, y: Any, weight: Floats) -> tuple[OutputKernel, Outputs]:
        """Return the kernel, resolved, and the outputs of X's rows in its canonical form."""
        kernel = clone(as_kernel(self.kernel))  # of our own: the user's may change later
        outputs = check_outputs(self, kernel, X, y)
        kernel = kernel.resolve(outputs[weight > 0])
        as_decoder(self.decoder, kernel)  # tells now if it is not known
        return kernel, outputs

    def _forget(self, *names: str) -> None:
        """Remove fitted attributes, those that are there."""
        for name in names:
            self.__dict__.pop(name, None)

    def _weights(self, X: Any) -> WeightMatrix:
        """Return the weights, or what stands for them where the matrix would be large."""
        return self.predict_weights(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        try:
            numeric = as_kernel(self.kernel).numeric
        except ValueError:  # fit will say what is wrong
            numeric = False
        if numeric:
            # Other outputs are neither numbers nor classes: scikit-learn's metrics would take
            # positions in a Gram matrix, say, for numbers.
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
        return tags
