"""Calibration of scores: probabilities of links, estimated by cross-validation over vertices."""

from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from okforest._typing import Floats
from okforest.network._base import LinkPredictor
from okforest.network._folds import folds_of, join, score_fold
from okforest.network._graphs import Graph
from okforest.network._pairs import KNOWN_NEW, NEW_NEW, PairKind

# For each kind of pair, increasing scores and the corresponding probabilities of a link.
Calibration = dict[PairKind, tuple[Floats, Floats]]


def calibrate(model: LinkPredictor, X: Any, graph: Graph, n_folds: int) -> Calibration:
    """Return, for each kind of pair, an isotonic regression of links on scores.

    Vertices held out stand for new ones. Each kind of pair has its own regression because the
    scores of different kinds are not comparable.
    """
    pairs = [score_fold(model, X, graph, fold) for fold in folds_of(len(graph.names), n_folds)]
    calibration: Calibration = {}
    for kind in (KNOWN_NEW, NEW_NEW):
        truth, scores = join(fold[kind] for fold in pairs)
        isotonic = IsotonicRegression(out_of_bounds="clip").fit(scores, truth)
        calibration[kind] = isotonic.X_thresholds_, isotonic.y_thresholds_
    return calibration


def check_calibration(calibration: Any) -> None:
    """Raise a ValueError if a restored calibration cannot be interpolated."""
    kinds = {KNOWN_NEW, NEW_NEW}
    if not isinstance(calibration, dict) or set(calibration) != kinds:
        raise ValueError(f"calibration_ does not have the kinds {sorted(kinds)}")
    for kind, points in calibration.items():
        curve = isinstance(points, tuple | list) and len(points) == 2
        if not curve or not all(_is_vector(part) for part in points):
            raise ValueError(f"calibration_[{kind!r}] is not a pair of arrays of floats")
        scores, probabilities = points
        if len(scores) != len(probabilities) or (np.diff(scores) < 0).any():
            raise ValueError(f"calibration_[{kind!r}] is not a curve over increasing scores")


def _is_vector(values: Any) -> bool:
    is_array = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return is_array and values.ndim == 1 and len(values) > 0
