"""From weights to sets of labels, each decoder for its own measure of quality.

Weights give the probability of every label, p = Σ_i w_i [label in y_i]. Weights of boosting and
ridge regression may be negative; p is then not exactly a probability, and everything below still
maximises the stated weighted sum.
"""

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from okforest._utils.arrays import Booleans, Floats, Outputs
from okforest._utils.compat import StrOptions
from okforest._utils.parameters import check_parameters
from okforest.decode.base import Decoder, HeldOut, Need, TunableDecoder
from okforest.decode.search import Support
from okforest.kernels import Hamming, Hierarchy, Jaccard, LabelSetKernel, Linear, OutputKernel
from okforest.kernels.base import describe_kernel
from okforest.weights import Span, WeightMatrix, as_weights

LEVELS = 256  # common thresholds that are compared for the mean score of examples


def best_threshold(p: Floats, y: Booleans, score: str) -> float:
    """Return the threshold of one label with the best F1 score, or the fewest errors.

    A label is predicted above the threshold. Of equally good thresholds, the one nearest to one
    half is returned. A label that never occurs has no F1 score: its threshold is one half.
    """
    cuts, positives, predicted = _counts(p, y)
    if score == "hamming":
        quality = 2.0 * positives - predicted  # less errors, up to a constant
    elif not y.any():
        return 0.5
    else:
        quality = 2.0 * positives / np.maximum(predicted + y.sum(), 1)
    return _nearest_to_half(cuts, quality)


def best_common_threshold(P: Floats, Y: Booleans, score: str) -> float:
    """Return one threshold for all labels, with the best F1 score, pooled or by example."""
    if score == "micro_f1":
        return best_threshold(P.ravel(), Y.ravel(), "macro_f1")
    values = np.unique(P)
    if len(values) > LEVELS:
        values = np.unique(np.quantile(P, np.linspace(0.0, 1.0, LEVELS)))
    cuts = _cuts(values)
    size = Y.sum(axis=1)
    quality = np.empty(len(cuts))
    for i, cut in enumerate(cuts):
        chosen = cut < P
        both = (chosen & Y).sum(axis=1)
        sizes = chosen.sum(axis=1) + size
        quality[i] = np.where(sizes > 0, 2.0 * both / np.maximum(sizes, 1), 1.0).mean()
    return _nearest_to_half(cuts, quality)


def _counts(p: Floats, y: Booleans) -> tuple[Floats, Floats, Floats]:
    """Return cuts between probabilities, and the true and all rows above each cut."""
    values, group = np.unique(p, return_inverse=True)
    n = np.bincount(group, minlength=len(values))
    n_true = np.bincount(group, weights=y, minlength=len(values))
    above = np.append(np.cumsum(n[::-1])[::-1], 0.0)
    positives = np.append(np.cumsum(n_true[::-1])[::-1], 0.0)
    return _cuts(values), positives, above


def _cuts(values: Floats) -> Floats:
    """Return a cut below all values, those between neighbours, and one above all."""
    middle = (values[:-1] + values[1:]) / 2
    return np.concatenate([[min(values[0] - 1e-3, 0.0)], middle, [max(values[-1], 1.0)]])


def _nearest_to_half(cuts: Floats, quality: Floats) -> float:
    best = cuts[quality >= quality.max() - 1e-12]
    return float(best[np.argmin(np.abs(best - 0.5))])


BLOCK_VALUES = 2**22  # values of a block of predictions
ROUNDING = 1e-9  # sums of weights that differ by less are equal

Metric = Literal["hamming", "example_f1", "micro_f1", "macro_f1"]


def label_set_kernel(span: Span) -> LabelSetKernel | None:
    """Return the kernel on label sets that a kernel is or contains, or one for sets as outputs."""
    found = _part(span.kernel)
    if found is not None:
        return found
    outputs = span.outputs
    is_numeric = outputs.ndim == 2 and outputs.dtype.kind in "biuf"
    are_sets = outputs.dtype == object and all(isinstance(y, set | frozenset) for y in outputs)
    if are_sets or (is_numeric and ((outputs == 0) | (outputs == 1)).all()):
        return Hamming().resolve(outputs)
    return None


def _part(kernel: OutputKernel) -> LabelSetKernel | None:
    if isinstance(kernel, LabelSetKernel):
        return kernel
    parts = kernel.get_params(deep=False).values()
    found = (_part(part) for part in parts if isinstance(part, OutputKernel))
    return next((part for part in found if part is not None), None)


def marginals(W: WeightMatrix, span: Span) -> Floats:
    """Return Σ_i w_i [label in y_i] for every prediction and label."""
    W = as_weights(W)
    if marginals_need(span):
        return W @ _label_sets(span).indicators(span.outputs)
    sums = W.feature_sums(span)
    return span.kernel.marginals(sums) if isinstance(span.kernel, Hamming | Hierarchy) else sums


def marginals_need(span: Span) -> frozenset[Need]:
    """Return "weights", or nothing if the explicit features have the probabilities of labels."""
    has_marginals = isinstance(span.kernel, Hamming | Hierarchy | Linear)
    return frozenset(() if has_marginals and span.features is not None else {"weights"})


def _label_sets(span: Span) -> LabelSetKernel:
    kernel = label_set_kernel(span)
    assert kernel is not None, "check first"
    return kernel


class LabelSetDecoder(Decoder):
    """A decoder whose outputs are sets of labels.

    Examples
    --------
    >>> from okforest.decode import ExpectedF1, LabelSetDecoder
    >>> isinstance(ExpectedF1(), LabelSetDecoder)
    True
    """

    def check(self, span: Span) -> None:
        """Check that outputs are sets of labels."""
        if label_set_kernel(span) is None:
            raise ValueError(
                f"{type(self).__name__} predicts sets of labels, and the kernel is "
                f"{describe_kernel(span.kernel)}; use decoder='auto', "
                "or a kernel on label sets such as Hamming()."
            )

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one set for each row of W."""
        kernel = _label_sets(span)
        return kernel.outputs_from(self.choose(as_weights(W), span), span.outputs)

    @abstractmethod
    def choose(self, W: WeightMatrix, span: Span) -> Booleans:
        """Return which labels each predicted set has, of shape (n, n_labels)."""


class Threshold(LabelSetDecoder, TunableDecoder):
    """The labels whose probability exceeds a threshold.

    With 0.5 it minimises the expected Hamming loss, and is exact for the Hamming kernel if weights
    sum to one, as those of forests do.

    Parameters
    ----------
    threshold : float, array-like of shape (n_labels,) or str, default=0.5
        One threshold, or one per label, in the order of the kernel's ``labels``. A name of a score
        chooses the thresholds that maximise it on held-out predictions of the training outputs:
        "hamming" (the Hamming loss) and "macro_f1" choose one threshold per label, "example_f1" and
        "micro_f1" one for all.

    See Also
    --------
    okforest.tune_decoder : Chooses thresholds for models without out-of-bag predictions.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from okforest import OKRandomForest
    >>> from okforest.decode import Threshold
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> forest = OKRandomForest(50, kernel="hamming", decoder=Threshold("macro_f1"), random_state=0)
    >>> forest.fit(X, Y).decoder_.threshold.shape
    (5,)
    >>> forest.predict(X[:2])
    array([[0, 0, 1, 1, 1],
           [0, 0, 1, 0, 0]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "threshold": [Real, "array-like", StrOptions(set(get_args(Metric)))]
    }

    def __init__(self, threshold: Any = 0.5):
        self.threshold = threshold

    @property
    def is_tuned(self) -> bool:
        """Whether the thresholds are numbers."""
        return not isinstance(self.threshold, str)

    def check(self, span: Span) -> None:
        """Check that outputs are sets of labels, and that there is a threshold for each."""
        super().check(span)
        check_parameters(self)
        if isinstance(self.threshold, str):
            return
        shape = np.shape(self.threshold)
        n_labels = _label_sets(span).indicators(span.outputs[:1]).shape[1]
        if shape not in ((), (n_labels,)):
            raise ValueError(
                f"threshold has shape {shape}; pass a number, or one for each of {n_labels} labels."
            )

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the explicit features have the probabilities."""
        return marginals_need(span)

    def choose(self, W: WeightMatrix, span: Span) -> Booleans:
        """Return the labels whose probability exceeds the threshold."""
        return marginals(W, span) > np.asarray(self.threshold, dtype=np.float64) + ROUNDING

    def tune(self, held_out: Sequence[HeldOut], span: Span) -> "Threshold":
        """Return thresholds that maximise the score on held-out predictions."""
        if self.is_tuned:
            return self
        parts = [_aligned(part, span) for part in held_out]
        P = np.concatenate([probability for probability, _ in parts])
        Y = np.concatenate([truth for _, truth in parts])
        if self.threshold in ("hamming", "macro_f1"):
            return Threshold(
                np.array(
                    [best_threshold(p, y, self.threshold) for p, y in zip(P.T, Y.T, strict=True)]
                )
            )
        return Threshold(best_common_threshold(P, Y, self.threshold))


def _aligned(part: HeldOut, span: Span) -> tuple[Floats, Booleans]:
    """Return probabilities and truth of held-out rows, with the labels of a model as columns."""
    kernel, own = _label_sets(span), _label_sets(part.span)
    truth = kernel.indicators(part.outputs) > 0
    found = marginals(part.W, part.span)
    if own.labels == kernel.labels:
        return found, truth
    column = {label: j for j, label in enumerate(own.labels or [])}
    aligned = np.zeros(truth.shape)  # a label without a training row in a fold is never predicted
    for j, label in enumerate(kernel.labels or []):
        if label in column:
            aligned[:, j] = found[:, column[label]]
    return aligned, truth


class Cardinality(LabelSetDecoder):
    """The most probable labels, as many as the expected size of the set, rounded.

    Among sets of that size, it has the largest expected number of correct labels.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.decode import Cardinality
    >>> from okforest.kernels import Hamming
    >>> from okforest.weights import Span
    >>> y = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> Cardinality().decode([[0.4, 0.3, 0.3]], Span(Hamming().resolve(y), y))
    array([[1, 1, 0]])
    """

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the explicit features have the probabilities."""
        return marginals_need(span)

    def choose(self, W: WeightMatrix, span: Span) -> Booleans:
        """Return the most probable labels of each prediction."""
        P = marginals(W, span)
        sizes = np.floor(np.clip(P.sum(axis=1), 0.0, P.shape[1]) + 0.5 - ROUNDING).astype(int)
        return _first(np.argsort(-P, axis=1, kind="stable"), sizes)


class Mode(LabelSetDecoder):
    """The set of the training outputs with the largest total weight, the first of equals.

    It maximises the expected subset accuracy over the known sets.

    Examples
    --------
    >>> from okforest.decode import Mode
    >>> from okforest.kernels import Jaccard
    >>> from okforest.weights import Span
    >>> kernel = Jaccard()
    >>> y = kernel.check([{"sea"}, {"sand"}, {"sea"}])
    >>> Mode().decode([[0.3, 0.4, 0.3]], Span(kernel.resolve(y), y))
    array([frozenset({'sea'})], dtype=object)
    """

    def choose(self, W: WeightMatrix, span: Span) -> Booleans:
        """Return the known set of the largest weight of each prediction."""
        known = _label_sets(span).indicators(span.training.outputs) > 0
        chosen = np.empty((W.shape[0], known.shape[1]), dtype=bool)
        size = max(1, BLOCK_VALUES // len(known))
        for start in range(0, W.shape[0], size):
            (weights,), positions = span.terms(W[start : start + size])
            entries = weights.entries()
            dense = entries if isinstance(entries, np.ndarray) else entries.toarray()
            votes = np.zeros((len(dense), len(known)))
            np.add.at(votes.T, positions, dense.T)
            most = votes.max(axis=1, keepdims=True)
            winners = np.argmax(votes >= most - ROUNDING * np.abs(most), axis=1)
            chosen[start : start + size] = known[winners]
        return chosen


class ExpectedJaccard(LabelSetDecoder):
    """The training set with the largest expected Jaccard score, of those of nonzero weight.

    The score of a set h is Σ_i w_i |h ∩ y_i| / |h ∪ y_i|; labels count by the weights of the
    kernel. It is a compromise between the decoders of other measures, :class:`Mode`,
    :class:`Threshold` and :class:`ExpectedF1`, and the default of the Hamming and Dice kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.decode import ExpectedJaccard
    >>> from okforest.kernels import Hamming
    >>> from okforest.weights import Span
    >>> y = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    >>> ExpectedJaccard().decode([[0.3, 0.3, 0.4]], Span(Hamming().resolve(y), y))
    array([[1, 0, 0]])
    """

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one set for each row of W."""
        return Support().decode(W, span.kept("jaccard", lambda: _with_jaccard(span)))

    def choose(self, W: WeightMatrix, span: Span) -> Booleans:
        """Return the labels of the best known set of each prediction."""
        return _label_sets(span).indicators(self.decode(W, span)) > 0


def _with_jaccard(span: Span) -> Span:
    """Return the same outputs with the Jaccard kernel: all its squares k(y, y) are one."""
    kernel = _label_sets(span)
    return Span(Jaccard(kernel.weights, kernel.labels), span.outputs)


class ExpectedF1(LabelSetDecoder):
    """The set of labels that maximises the expected F1 score, over all sets.

    The score of a set h is Σ_i w_i F1(h, y_i), with F1 = 1 for two empty sets. The maximum is exact
    (the general F-measure maximiser): for every size k, labels are ranked by
    Σ_i w_i [label in y_i] · 2 / (k + number of labels in y_i). Weights of labels, as those of a
    Dice kernel, are not used: the F1 score counts labels.

    References
    ----------
    W. Waegeman, K. Dembczyński, A. Jachnik, W. Cheng, E. Hüllermeier, "On the Bayes-optimality of
    F-measure maximizers", Journal of Machine Learning Research 15 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.decode import ExpectedF1
    >>> from okforest.kernels import Dice
    >>> from okforest.weights import Span
    >>> y = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    >>> ExpectedF1().decode([[0.3, 0.3, 0.4]], Span(Dice().resolve(y), y))
    array([[1, 0, 1]])
    """

    def choose(self, W: WeightMatrix, span: Span) -> Booleans:
        """Return the best set of each prediction."""
        present = _label_sets(span).indicators(span.outputs)
        sizes = present.sum(axis=1)
        n_labels = present.shape[1]
        levels = np.unique(sizes[sizes > 0])
        # Weight of the training sets of each size that have a label, and of the empty sets.
        block = max(1, BLOCK_VALUES // max(1, n_labels * max(n_labels, len(levels))))
        by_size = [present * (sizes == level)[:, None] for level in levels]
        gains = 2.0 / np.add.outer(levels, np.arange(1, n_labels + 1))  # (sizes, k)
        chosen = np.zeros((W.shape[0], n_labels), dtype=bool)
        for start in range(0, W.shape[0], block):
            rows = W[start : start + block]
            empty = rows @ (sizes == 0).astype(np.float64)
            if len(levels):
                joint = np.stack([rows @ values for values in by_size], axis=2)  # (n, labels, s)
                chosen[start : start + block] = _maximise(joint @ gains, empty)
        return chosen


def _maximise(scores: Floats, empty: Floats) -> Booleans:
    """Return the best set of each row: the k labels of the largest scores[:, :, k - 1]."""
    n, n_labels, _ = scores.shape
    ordered = -np.sort(-scores, axis=1)
    ranks = np.tri(n_labels).T  # column k - 1 sums the k largest
    totals = np.einsum("nlk,lk->nk", ordered, ranks)
    values = np.column_stack([empty, totals])
    most = values.max(axis=1, keepdims=True)
    sizes = np.argmax(values >= most - ROUNDING * np.abs(most), axis=1)
    column = np.maximum(sizes - 1, 0)
    order = np.argsort(-scores[np.arange(n), :, column], axis=1, kind="stable")
    return _first(order, sizes)


def _first(order: Any, sizes: Any) -> Booleans:
    """Return which labels are among the first of each row's order."""
    chosen = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(chosen, order, np.arange(order.shape[1]) < sizes[:, None], axis=1)
    return chosen
