"""Cross-validation over vertices: how good predicted links are, for each kind of pair."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from okforest._utils.arrays import Booleans, Floats
from okforest._utils.compat import rows_of
from okforest._utils.parameters import is_integer
from okforest.metrics import AveragedCurve, average_curve, precision_at_k
from okforest.network.graphs import (
    KNOWN_KNOWN,
    KNOWN_NEW,
    NEW_NEW,
    PAIR_KINDS,
    WITH_NEW,
    Graph,
    PairKind,
    Positions,
    read_graph,
)
from okforest.network.links import LinkPredictor


class Fold(NamedTuple):
    """Known and new vertices, links between known ones to hide, and the fold's number from 1."""

    known: Positions
    new: Positions
    hidden: sp.csr_array | None = None
    number: int = 1


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


Metric = Literal["auc", "aupr"]


@dataclass(frozen=True, eq=False, repr=False)
class KindScores:
    """The scores of predictions for one kind of pair, in each fold; NaN in folds without links.

    Parameters
    ----------
    auc : ndarray of shape (n_folds,)
        The area under the ROC curve.
    aupr : ndarray of shape (n_folds,)
        The area under the precision–recall curve: the average precision.
    precision : dict of int to ndarray of shape (n_folds,)
        For each k, the share of linked pairs among the k best-scoring ones.
    roc : AveragedCurve
        The ROC curve.
    pr : AveragedCurve
        The precision–recall curve.
    n_links : ndarray of shape (n_folds,)
        Number of linked pairs.
    n_pairs : ndarray of shape (n_folds,)
        Number of pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity, cross_validate_links
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> result = cross_validate_links(InputSimilarity(), X, np.abs(X - X.T) < 0.3, cv=4)
    >>> scores = result.kinds["known-new"]
    >>> scores.auc.shape, bool(scores.auc.mean() > 0.5)
    ((4,), True)
    """

    auc: Floats
    aupr: Floats
    precision: dict[int, Floats]
    roc: AveragedCurve
    pr: AveragedCurve
    n_links: Floats
    n_pairs: Floats

    def __repr__(self) -> str:
        means = [
            f"{name} {np.nanmean(scores):.3f} ± {np.nanstd(scores):.3f}"
            for name, scores in (("AUC", self.auc), ("AUPR", self.aupr))
        ]
        return ", ".join(means)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The result of cross-validation over vertices.

    Parameters
    ----------
    kinds : dict of str to KindScores
        Scores for each kind of pair: "known-new", "new-new", their union "with-new"
        and, if links were deleted, "known-known". A kind without links in any fold is left out.
    seconds : ndarray of shape (n_folds,)
        Time to fit and score each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity, cross_validate_links
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> result = cross_validate_links(InputSimilarity(), X, np.abs(X - X.T) < 0.3, cv=4)
    >>> sorted(result.kinds), result.seconds.shape
    (['known-new', 'new-new', 'with-new'], (4,))
    """

    kinds: dict[PairKind, KindScores]
    seconds: Floats

    def __repr__(self) -> str:
        kinds = [f"  {kind}: {scores!r}" for kind, scores in self.kinds.items()]
        return "\n".join([f"Evaluation of {len(self.seconds)} folds:", *kinds])


def cross_validate_links(
    model: LinkPredictor,
    X: Any,
    graph: Any,
    names: Any = None,
    *,
    cv: int = 10,
    deleted: float = 0.0,
    precision_at: Sequence[int] = (10, 100),
    random_state: int = 0,
    callback: Callable[[int], object] | None = None,
) -> Evaluation:
    """Evaluate a model of links by cross-validation over vertices.

    In each fold, the model is fitted to the subgraph of the other vertices, so that it knows no
    link of the vertices held out; it is evaluated on all pairs with at least one of these.

    Parameters
    ----------
    model : LinkPredictor
        A model of links, such as NetworkCompletion; it is cloned.
    X : array-like, frame or sparse matrix of shape (n, p)
        Features, one row per vertex.
    graph : adjacency matrix, networkx graph or edge list
        The links.
    names : array-like of shape (n,), optional
        Names of the rows, used to match them with a networkx graph or an edge list.
    cv : int, default=10
        Number of folds.
    deleted : float, default=0.0
        Share of the links between known vertices to remove from training, drawn at random. The
        model is then also evaluated on finding them among the pairs of known vertices.
    precision_at : sequence of int, default=(10, 100)
        The numbers k for which to compute the precision among the k best-scoring pairs.
    random_state : int, default=0
        Seed of the folds and deletions. Use the same seed for models that are compared.
    callback : callable, optional
        Called after each fold with the number of completed folds.

    Returns
    -------
    evaluation : Evaluation
        Scores and curves for each kind of pair.

    See Also
    --------
    compare_links : Test whether one model is better than another.
    okforest.network.plot_curves : Plot the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import NetworkCompletion, cross_validate_links
    >>> rng = np.random.default_rng(0)
    >>> group = np.arange(60) % 2
    >>> links = np.triu((group[:, None] == group) & (rng.random((60, 60)) < 0.2), 1)
    >>> X = group[:, None] + rng.normal(0.0, 0.3, (60, 3))
    >>> result = cross_validate_links(NetworkCompletion(), X, links + links.T, cv=3)
    >>> bool(result.kinds["known-new"].auc.mean() > 0.6)
    True
    """
    if not hasattr(model, "predict_links"):
        raise TypeError(
            f"model is {model!r}; pass a model of links, such as NetworkCompletion(OKExtraTrees())."
        )
    if not isinstance(deleted, Real) or not 0 <= deleted < 1:
        raise ValueError(f"deleted={deleted!r}; use a share of the links: at least 0, less than 1.")
    whole = read_graph(graph, X, names)
    folds = folds_of(len(whole.names), cv, random_state)
    rng = np.random.default_rng(random_state)
    results, seconds = [], []
    for done, fold in enumerate(folds, start=1):
        if deleted:
            fold = hide_links(whole, fold, deleted, rng)
        start = perf_counter()
        pairs = score_fold(model, X, whole, fold)
        seconds.append(perf_counter() - start)
        results.append(judge_kinds(pairs, precision_at))
        if callback is not None:
            callback(done)
    joined = {
        kind: _join([result[kind] for result in results])
        for kind in PAIR_KINDS
        if kind in results[0]
    }
    scores = {kind: scores for kind, scores in joined.items() if scores.n_links.any()}
    return Evaluation(scores, np.array(seconds))


def scores_of(result: Evaluation, kind: PairKind) -> KindScores:
    """Return the scores for a kind of pair; raise an error if there are none."""
    if not isinstance(result, Evaluation):
        raise TypeError(
            f"the result is of type {type(result).__name__}; pass an Evaluation, which "
            "cross_validate_links returns."
        )
    if kind not in result.kinds:
        kinds = ", ".join(map(repr, result.kinds))
        raise ValueError(f"kind={kind!r}; this evaluation has the kinds {kinds}.")
    return result.kinds[kind]


def judge_kinds(
    pairs: dict[PairKind, ScoredPairs], precision_at: Sequence[int] = (10, 100)
) -> dict[PairKind, KindScores]:
    """Return the scores of a fold for each kind of pair, "with-new" included."""
    with_new = join([pairs[KNOWN_NEW], pairs[NEW_NEW]])
    kinds = {**pairs, WITH_NEW: with_new}
    return {kind: judge([fold], precision_at) for kind, fold in kinds.items()}


def judge(folds: Iterable[ScoredPairs], precision_at: Sequence[int] = (10, 100)) -> KindScores:
    """Return the scores and curves of each fold."""
    folds = list(folds)
    return KindScores(
        np.array([_area(roc_auc_score, pairs) for pairs in folds]),
        np.array([_area(average_precision_score, pairs) for pairs in folds]),
        {k: np.array([precision_at_k(*pairs, k) for pairs in folds]) for k in precision_at},
        average_curve(folds, "roc"),
        average_curve(folds, "pr"),
        np.array([pairs.truth.sum() for pairs in folds], dtype=np.float64),
        np.array([len(pairs.truth) for pairs in folds], dtype=np.float64),
    )


def check_evaluations(evaluations: Any) -> None:
    """Raise an error unless there is at least one result, by name."""
    if not isinstance(evaluations, Mapping):
        raise TypeError(
            f"evaluations is of type {type(evaluations).__name__}; pass a dict of results by name, "
            "such as {'extra-trees': evaluation}."
        )
    if not evaluations:
        raise ValueError(
            "evaluations is empty; pass at least one result by name, such as {'extra-trees': "
            "cross_validate_links(model, X, graph)}."
        )


def check_metric(metric: Any) -> None:
    """Raise an error unless there are scores of this name."""
    if metric not in ("auc", "aupr"):
        raise ValueError(f"metric={metric!r}; use 'auc' or 'aupr'.")


def _area(area: Callable[..., float], pairs: ScoredPairs) -> float:
    defined = pairs.truth.any() and not pairs.truth.all()
    return float(area(*pairs)) if defined else float("nan")


def _join(folds: list[KindScores]) -> KindScores:
    first = folds[0]

    def stack(name: str) -> Floats:
        return np.concatenate([getattr(fold, name) for fold in folds])

    def curve(name: str) -> AveragedCurve:
        curves = [getattr(fold, name) for fold in folds]
        return AveragedCurve(curves[0].x, np.concatenate([one.folds for one in curves]))

    precision = {k: np.concatenate([fold.precision[k] for fold in folds]) for k in first.precision}
    return KindScores(
        stack("auc"),
        stack("aupr"),
        precision,
        curve("roc"),
        curve("pr"),
        stack("n_links"),
        stack("n_pairs"),
    )
