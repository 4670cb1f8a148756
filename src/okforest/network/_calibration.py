"""From scores of pairs to probabilities of links, by cross-validation over vertices."""

from typing import Any

from sklearn.isotonic import IsotonicRegression

from okforest._typing import Floats
from okforest.network._base import LinkPredictor
from okforest.network._folds import folds_of, join, score_fold
from okforest.network._graphs import Graph
from okforest.network._pairs import SEEN_UNSEEN, UNSEEN_UNSEEN, Kind

# For each kind of pair, scores and the probabilities of links that belong to them.
Calibration = dict[Kind, tuple[Floats, Floats]]


def calibrate(model: LinkPredictor, X: Any, graph: Graph, n_folds: int) -> Calibration:
    """Return increasing step-like maps from scores to shares of linked pairs, of unseen vertices.

    Folds are as good as unseen vertices; the kinds of pairs have maps of their own, for their
    scores differ.
    """
    pairs = [score_fold(model, X, graph, fold) for fold in folds_of(len(graph.names), n_folds)]
    maps: Calibration = {}
    for kind in (SEEN_UNSEEN, UNSEEN_UNSEEN):
        truth, scores = join(fold[kind] for fold in pairs)
        isotonic = IsotonicRegression(out_of_bounds="clip").fit(scores, truth)
        maps[kind] = isotonic.X_thresholds_, isotonic.y_thresholds_
    return maps
