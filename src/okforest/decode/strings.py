"""From weights to strings: k-mers put together by an Eulerian path."""

from collections import Counter
from typing import Any

import numpy as np

from okforest._utils.arrays import Outputs
from okforest.decode.base import Decoder, Need
from okforest.decode.search import TrainingSet
from okforest.kernels import Spectrum
from okforest.kernels.outputs import array_of_objects
from okforest.kernels.sequences import END, Kmer
from okforest.weights import Span, WeightMatrix, as_weights


def eulerian_path(counts: Counter[Kmer], boundaries: bool) -> tuple[Any, ...] | None:
    """Return the symbols of a sequence with exactly these k-mers, or None if there is none.

    A k-mer is an arc from its first k − 1 symbols to its last k − 1. A path through every arc once
    spells the sequence. If there are several, the first in the order of symbols is returned.
    """
    if not counts:
        return None if boundaries else ()  # every sequence has k-mers over its ends
    arcs: dict[Kmer, list[Kmer]] = {}
    balance: Counter[Kmer] = Counter()
    for kmer, n in counts.items():
        arcs.setdefault(kmer[:-1], []).extend([kmer] * n)
        balance[kmer[:-1]] += n
        balance[kmer[1:]] -= n
    begins = [vertex for vertex, value in balance.items() if value > 0]
    if sum(abs(value) for value in balance.values()) > 2 or len(begins) > 1:
        return None
    k = len(next(iter(counts)))
    start = begins[0] if begins else min(arcs, key=_order)
    if boundaries:
        outside = (END,) * (k - 1)
        if begins or outside not in arcs:
            return None
        start = outside
    for own in arcs.values():
        own.sort(key=_order, reverse=True)  # taken from the end
    path = _hierholzer(arcs, start)
    if len(path) != sum(counts.values()):
        return None
    symbols = (*start, *(kmer[-1] for kmer in path))
    if boundaries:
        symbols = symbols[k - 1 : len(symbols) - (k - 1)]
        return None if END in symbols else symbols
    return symbols


def _hierholzer(arcs: dict[Kmer, list[Kmer]], start: Kmer) -> list[Kmer]:
    stack: list[tuple[Kmer, Kmer | None]] = [(start, None)]
    path: list[Kmer] = []
    while stack:
        vertex, arc = stack[-1]
        if arcs.get(vertex):
            following = arcs[vertex].pop()
            stack.append((following[1:], following))
        else:
            stack.pop()
            if arc is not None:
                path.append(arc)
    return path[::-1]


def _order(symbols: Kmer) -> tuple[Any, ...]:
    return tuple((s is not END, str(s)) for s in symbols)


class EulerianPath(Decoder):
    """Sequences that have the predicted k-mers, put together by an Eulerian path.

    The predicted counts of k-mers, weighted means of those of the training outputs, are rounded. If
    there is a sequence with exactly these k-mers, it is the prediction, and need not occur among
    the training outputs; if there are several, it is the first of them in the order of symbols.
    Where there is none, or all counts are rounded to zero, the nearest training output is
    predicted.

    Examples
    --------
    >>> from okforest.decode import EulerianPath
    >>> from okforest.kernels import Spectrum
    >>> from okforest.weights import Span
    >>> kernel = Spectrum(length=3, boundaries=True)
    >>> y = kernel.check(["forest", "fortune", "forte"])
    >>> span = Span(kernel.resolve(y), y)
    >>> EulerianPath().decode([[0.1, 0.2, 0.7], [0.4, 0.4, 0.2]], span).tolist()
    ['forte', 'fortune']
    """

    def check(self, span: Span) -> None:
        """Check that the kernel counts k-mers."""
        if not isinstance(span.kernel, Spectrum):
            raise ValueError(
                f"EulerianPath needs kernel=Spectrum(...), and the kernel is of type "
                f"{type(span.kernel).__name__}; use decoder='auto'."
            )
        if span.kernel.length < 2:
            raise ValueError("EulerianPath needs a Spectrum kernel with length of at least 2.")

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights" and "training_outputs", of which one replaces an impossible sequence."""
        return frozenset({"weights", "training_outputs"})

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one sequence for each row of W."""
        W = as_weights(W)
        found = self.reconstruct(W, span)
        missing = [i for i, sequence in enumerate(found) if sequence is None]
        nearest = TrainingSet().decode(W, span) if missing else span.outputs[:0]
        is_text = isinstance(span.outputs[0], str)
        sequences = [
            nearest[i] if symbols is None else "".join(symbols) if is_text else symbols
            for i, symbols in enumerate(found)
        ]
        if span.outputs.dtype.kind == "U":
            return np.array(sequences)
        return array_of_objects(sequences)

    def reconstruct(self, W: WeightMatrix, span: Span) -> list[tuple[Any, ...] | None]:
        """Return the symbols of a sequence with the predicted k-mers; None where there is none."""
        kernel = span.kernel
        assert isinstance(kernel, Spectrum), "check first"
        vocabulary = kernel.vocabulary or []
        W = as_weights(W)
        features = kernel.features(span.outputs) if span.features is None else span.features
        found = []
        for i in range(W.shape[0]):
            counts = W[i : i + 1] @ features
            whole = np.round(np.clip(counts[0], 0.0, None)).astype(int)
            own = Counter({vocabulary[j]: int(whole[j]) for j in np.flatnonzero(whole)})
            found.append(eulerian_path(own, kernel.boundaries) if own else None)
        return found
