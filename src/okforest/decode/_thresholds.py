"""Thresholds on probabilities that maximise a score of held-out predictions."""

import numpy as np

from okforest._typing import Booleans, Floats

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
