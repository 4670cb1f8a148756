"""Cross-validation over vertices: folds, and the scores of pairs with vertices held out."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold

from okforest._compat import rows_of
from okforest._integers import is_integer
from okforest._typing import Booleans, Floats
from okforest.network._base import LinkPredictor
from okforest.network._graphs import Graph
from okforest.network._pairs import (
    KNOWN_KNOWN,
    KNOWN_NEW,
    NEW_NEW,
    PairKind,
    Positions,
)


class Fold(NamedTuple):
    """Known and new vertices, links between known ones to hide, and the number of the fold."""

    known: Positions
    new: Positions
    hidden: sp.csr_array | None = None
    number: int = 1  # in its partition, from 1


class ScoredPairs(NamedTuple):
    """For each pair, whether it is linked, and its score."""

    truth: Booleans
    scores: Floats


def join(parts: Iterable[ScoredPairs]) -> ScoredPairs:
    """Concatenate pairs."""
    truths, scores = zip(*parts, strict=True)
    return ScoredPairs(np.concatenate(truths), np.concatenate(scores))


def folds_of(n: int, n_folds: int, random_state: Any = 0) -> list[Fold]:
    """Return a partition of n vertices into folds."""
    if not is_integer(n_folds):
        raise TypeError(f"cv={n_folds!r}; use a number of folds, such as 10.")
    if n_folds < 2:
        raise ValueError(f"the number of folds is {n_folds}; use at least 2.")
    if n_folds > n:
        raise ValueError(f"there are {n} vertices for {n_folds} folds; use fewer folds.")
    splitter = KFold(n_folds, shuffle=True, random_state=random_state)
    splits = enumerate(splitter.split(np.empty((n, 1))), start=1)
    return [Fold(known, new, number=number) for number, (known, new) in splits]


def hide_links(graph: Graph, fold: Fold, share: float, rng: np.random.Generator) -> Fold:
    """Return the fold with a random share of the links between known vertices hidden."""
    links = sp.triu(graph.part(fold.known).adjacency, k=1).tocoo()
    chosen = rng.permutation(links.nnz)[: round(share * links.nnz)]
    ends = np.r_[links.row[chosen], links.col[chosen]], np.r_[links.col[chosen], links.row[chosen]]
    hidden = sp.csr_array((np.ones(2 * len(chosen)), ends), shape=links.shape)
    return fold._replace(hidden=hidden)


def score_fold(
    model: LinkPredictor, X: Any, graph: Graph, fold: Fold
) -> dict[PairKind, ScoredPairs]:
    """Fit a clone of the model to the known vertices only; return the other pairs by kind.

    If links are hidden, the known pairs that are not linked in training are included.
    """
    known_graph = graph.part(fold.known)
    training = known_graph.adjacency
    if fold.hidden is not None:
        training = training - training.multiply(fold.hidden)
        training.eliminate_zeros()
    if training.nnz == 0 < graph.adjacency.nnz:
        raise ValueError(
            f"in fold {fold.number} the {len(fold.known)} known vertices have no links between "
            "them to learn from; use more folds (cv), so that more vertices are known"
            f"{'' if fold.hidden is None else ', or delete fewer links'}."
        )
    X_known, X_new = rows_of(X, fold.known), rows_of(X, fold.new)
    fitted = clone(model).fit(X_known, sp.csr_array(training), known_graph.names)
    linked = graph.adjacency[fold.new] > 0
    across = linked[:, fold.known].toarray().ravel()
    upper = np.triu_indices(len(fold.new), k=1)
    within = linked[:, fold.new].toarray()[upper]
    pairs = {
        KNOWN_NEW: ScoredPairs(across, fitted.predict_links(X_new).ravel()),
        NEW_NEW: ScoredPairs(within, fitted.predict_links(X_new, X_new)[upper]),
    }
    if fold.hidden is not None:
        upper = np.triu_indices(len(fold.known), k=1)
        candidates = ~(training.toarray()[upper] > 0)
        truth = fold.hidden.toarray()[upper] > 0
        scores = fitted.predict_links()[upper]
        pairs[KNOWN_KNOWN] = ScoredPairs(truth[candidates], scores[candidates])
    return pairs
