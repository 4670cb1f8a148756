"""Pre-images that minimise the expectation of a loss of the user's own."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats, Outputs
from okforest.decode.base import Decoder, Need
from okforest.decode.nearest import smallest_of
from okforest.decode.search import CandidateLists, CandidateSearch, PerQuery, candidate_blocks
from okforest.weights import OutputSet, Span, WeightMatrix

ADVICE = (
    "pass a function of a true and a predicted output that returns a number, or, with "
    "elementwise=False, of two arrays of outputs that returns a matrix."
)


class ExpectedLoss(CandidateSearch):
    """Searches candidates c for the least expected loss Σ_i w_i ℓ(y_i, c), for any loss ℓ.

    The weights of a prediction are taken as probabilities of the training outputs y_i. The kernel
    is not used: a model can learn with one notion of similarity and predict for another. The
    minimum is exact among the candidates.

    Parameters
    ----------
    loss : callable
        ``loss(true, predicted)`` returns a number for two outputs, in the form in which those of y
        were given. With ``elementwise=False`` it takes two arrays of outputs and returns the matrix
        of losses, with a row for every true and a column for every predicted output; this is
        faster.
    candidates : array-like, optional
        Outputs to choose from, of the type that the kernel takes; by default the training outputs.
    elementwise : bool, default=True
        Whether the function takes two outputs instead of two arrays of them.

    See Also
    --------
    okforest.metrics.make_output_scorer : Scores predicted outputs by the same loss.
    Sharpened : Raises weights to a power, before any decoder.

    References
    ----------
    C. Ciliberto, L. Rosasco, A. Rudi, "A consistent regularization approach for structured
    prediction", NeurIPS 2016.

    Examples
    --------
    The absolute error is minimised by the median, not by the mean:

    >>> import numpy as np
    >>> from okforest import OKTree
    >>> from okforest.decode import ExpectedLoss
    >>> def absolute_error(true, predicted):
    ...     return abs(true - predicted)
    >>> X, y = np.zeros((5, 1)), [1.0, 2.0, 3.0, 4.0, 90.0]
    >>> OKTree(decoder=ExpectedLoss(absolute_error)).fit(X, y).predict(X[:1])
    array([3.])
    """

    def __init__(
        self, loss: Callable[[Any, Any], Any], candidates: Any = None, elementwise: bool = True
    ):
        self.loss = loss
        self.candidates = candidates
        self.elementwise = elementwise

    def check(self, span: Span) -> None:
        """Check the function on two outputs, and the candidates."""
        if not callable(self.loss):
            raise ValueError(f"loss={self.loss!r} is not a function; {ADVICE}")
        for candidates in self._candidate_blocks(span):
            self._matrix(span, span.outputs[:1], candidates.outputs[:1])

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", and "training_outputs" if these are the candidates."""
        needs: set[Need] = {"weights"}
        if self.candidates is None:
            needs.add("training_outputs")
        return frozenset(needs)

    def with_candidates(self, candidates: Any) -> Decoder:
        """Return a decoder for the same loss that searches other candidates."""
        if isinstance(candidates, CandidateLists):
            return PerQuery(self, candidates)
        return ExpectedLoss(self.loss, candidates, self.elementwise)

    def _candidate_blocks(self, span: Span) -> Iterator[OutputSet]:
        if self.candidates is None:
            return iter([span.training])
        return candidate_blocks(self.candidates, span)

    def _nearest(
        self, W: WeightMatrix, span: Span, candidates: OutputSet, k: int
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        return smallest_of(self._loss_blocks(W, span, candidates), W.shape[0], k)

    def _losses(self, costs: Floats, W: WeightMatrix, span: Span) -> Floats:
        return costs

    def _loss_blocks(
        self, W: WeightMatrix, span: Span, candidates: OutputSet
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield the expected losses of some candidates at a time."""
        (weights,), positions = span.terms(W)
        true = span.training.outputs[positions]
        for block in span.blocks(len(candidates), max(len(true), W.shape[0])):
            yield block, weights @ self._matrix(span, true, candidates.outputs[block])

    def _matrix(self, span: Span, true: Outputs, predicted: Outputs) -> Floats:
        """Return the losses of all pairs."""
        true, predicted = span.kernel.as_given(true), span.kernel.as_given(predicted)
        if self.elementwise:
            losses = np.array([[self._number(y, c) for c in predicted] for y in true])
        else:
            losses = self._of_arrays(true, predicted)
            if losses.shape != (len(true), len(predicted)) or losses.dtype.kind not in "biuf":
                raise ValueError(
                    f"the loss function returned an array of shape {losses.shape} and type "
                    f"{losses.dtype} for {len(true)} true and {len(predicted)} predicted outputs; "
                    f"expected numbers, of shape {(len(true), len(predicted))}. If it takes two "
                    "single outputs, pass ExpectedLoss(loss, elementwise=True)."
                )
        if not np.isfinite(losses).all():
            i, j = np.argwhere(~np.isfinite(losses))[0]
            raise ValueError(
                f"the loss function returned {losses[i, j]} for {true[i]!r} and {predicted[j]!r}; "
                "losses must be finite."
            )
        return losses.astype(np.float64, copy=False)

    def _of_arrays(self, true: Outputs, predicted: Outputs) -> Outputs:
        """Call the function on two arrays, or explain that it takes two single outputs."""
        try:
            return np.asarray(self.loss(true, predicted))
        except Exception as error:
            try:
                self._number(true[0], predicted[0])
            except Exception:
                raise error from None
            raise ValueError(
                f"the loss function takes two single outputs: on two arrays of outputs it raises "
                f"{type(error).__name__} ({error}). Pass ExpectedLoss(loss, elementwise=True)."
            ) from error

    def _number(self, true: Any, predicted: Any) -> float:
        value = self.loss(true, predicted)
        if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf":
            return float(value)
        raise ValueError(f"the loss function returned {value!r} for two outputs; {ADVICE}")
