"""How good predicted links are: cross-validation over vertices, by kinds of pairs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from time import perf_counter
from typing import Any, Literal

import numpy as np
from scipy.special import stdtr
from sklearn.metrics import average_precision_score, roc_auc_score

from okforest._typing import Floats
from okforest.metrics import AveragedCurve, average_curve, precision_at_k
from okforest.network._base import LinkPredictor
from okforest.network._folds import Pairs, folds_of, hide_links, join, score_fold
from okforest.network._graphs import read_graph
from okforest.network._pairs import KINDS, SEEN_UNSEEN, UNSEEN_UNSEEN, WITH_UNSEEN, Kind

Metric = Literal["auc", "aupr"]


@dataclass(frozen=True, eq=False)
class KindScores:
    """How good predictions are for one kind of pairs, fold by fold; NaN without links.

    Parameters
    ----------
    auc : ndarray of shape (n_folds,)
        The area under the ROC curve.
    aupr : ndarray of shape (n_folds,)
        The area under the precision–recall curve: the average precision.
    precision : dict of int to ndarray of shape (n_folds,)
        The share of linked pairs among so many with the largest scores.
    roc : AveragedCurve
        The ROC curve.
    pr : AveragedCurve
        The precision–recall curve.
    n_links : ndarray of shape (n_folds,)
        Number of linked pairs.
    n_pairs : ndarray of shape (n_folds,)
        Number of pairs.
    """

    auc: Floats
    aupr: Floats
    precision: dict[int, Floats]
    roc: AveragedCurve
    pr: AveragedCurve
    n_links: Floats
    n_pairs: Floats


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of cross-validation over vertices.

    Parameters
    ----------
    kinds : dict of str to KindScores
        By kind of pair: "seen-unseen", "unseen-unseen", both together as "with-unseen", and, if
        links were deleted, "seen-seen". A kind without links in any fold is left out.
    seconds : ndarray of shape (n_folds,)
        Time to fit and to score.
    """

    kinds: dict[Kind, KindScores]
    seconds: Floats


@dataclass(frozen=True)
class Comparison:
    """A difference of two models, over the same folds.

    Parameters
    ----------
    difference : float
        The mean over folds of the first model's score less the second's.
    p_value : float
        How likely so large a difference is between models that are equally good; two-sided.
    """

    difference: float
    p_value: float


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

    In each fold the model is fitted to the subgraph of the other vertices, so that no link of a
    vertex that is held out is known; it is judged by all pairs with such a vertex.

    Parameters
    ----------
    model : LinkPredictor
        A model, such as NetworkCompletion; it is cloned.
    X : array-like, frame or sparse matrix of shape (n, p)
        Features, one row for each vertex.
    graph : adjacency matrix, networkx graph or edge list
        The links.
    names : array-like of shape (n,), optional
        Names of the rows, by which they are found in a networkx graph or an edge list.
    cv : int, default=10
        Number of folds.
    deleted : float, default=0.0
        Share of the links among seen vertices that are left out of training, drawn at random. These
        are then links to be found among the pairs of seen vertices, a third kind.
    precision_at : sequence of int, default=(10, 100)
        For which numbers of best pairs to tell the precision.
    random_state : int, default=0
        The seed of folds and deletions; the same for models that are to be compared.
    callback : callable, optional
        Called after each fold with the number of folds done.

    Returns
    -------
    evaluation : Evaluation
        Scores and curves of each kind of pairs.

    See Also
    --------
    compare_links : Whether one model is better than another.
    okforest.network.plot_curves : The curves drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import NetworkCompletion, cross_validate_links
    >>> rng = np.random.default_rng(0)
    >>> group = np.arange(60) % 2
    >>> links = np.triu((group[:, None] == group) & (rng.random((60, 60)) < 0.2), 1)
    >>> X = group[:, None] + rng.normal(0.0, 0.3, (60, 3))
    >>> result = cross_validate_links(NetworkCompletion(), X, links + links.T, cv=3)
    >>> bool(result.kinds["seen-unseen"].auc.mean() > 0.6)
    True
    """
    if not 0 <= deleted < 1:
        raise ValueError(f"deleted={deleted!r}; use a share of links, from 0 to less than 1.")
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
        kind: _join([result[kind] for result in results]) for kind in KINDS if kind in results[0]
    }
    scores = {kind: scores for kind, scores in joined.items() if scores.n_links.any()}
    return Evaluation(scores, np.array(seconds))


def scores_of(result: Evaluation, kind: Kind) -> KindScores:
    """Return the scores of a kind of pairs, or say which kinds there are."""
    if kind not in result.kinds:
        kinds = ", ".join(map(repr, result.kinds))
        raise ValueError(f"kind={kind!r}; this evaluation has {kinds}.")
    return result.kinds[kind]


def judge_kinds(
    pairs: dict[Kind, Pairs], precision_at: Sequence[int] = (10, 100)
) -> dict[Kind, KindScores]:
    """Return the scores of a fold: of each kind of pairs, and of all with an unseen vertex."""
    with_unseen = join([pairs[SEEN_UNSEEN], pairs[UNSEEN_UNSEEN]])
    kinds = {**pairs, WITH_UNSEEN: with_unseen}
    return {kind: judge([some], precision_at) for kind, some in kinds.items()}


def judge(folds: Iterable[Pairs], precision_at: Sequence[int] = (10, 100)) -> KindScores:
    """Return the scores and curves of pairs, fold by fold."""
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


def compare_links(
    first: Evaluation,
    second: Evaluation,
    kind: Kind = "with-unseen",
    metric: Metric = "auc",
) -> Comparison:
    """Test whether one model is better than another, on the same folds.

    A paired t-test whose variance allows for the overlap of training sets: that of the mean of
    differences is taken as 1/n + 1/(n − 1) times that of differences, n being the number of folds.

    Parameters
    ----------
    first, second : Evaluation
        Results of :func:`cross_validate_links`, with the same ``cv`` and ``random_state``.
    kind : str, default="with-unseen"
        The kind of pairs.
    metric : {"auc", "aupr"}, default="auc"
        What to compare.

    Returns
    -------
    comparison : Comparison
        The mean difference, and its significance.

    References
    ----------
    C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine Learning 52 (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import NetworkCompletion, compare_links, cross_validate_links
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> links = np.abs(X[:, 0] - X[:, :1]) < 0.3
    >>> model = NetworkCompletion()
    >>> good = cross_validate_links(model, X[:, [0]], links, cv=4)
    >>> bad = cross_validate_links(model, X[:, [1]], links, cv=4)
    >>> compare_links(good, bad).difference > 0
    True
    """
    if metric not in ("auc", "aupr"):
        raise ValueError(f"metric={metric!r}; use 'auc' or 'aupr'.")
    scores = [getattr(scores_of(result, kind), metric) for result in (first, second)]
    if len(scores[0]) != len(scores[1]):
        raise ValueError(
            f"the first has {len(scores[0])} folds and the second {len(scores[1])}; compare "
            "results on the same folds."
        )
    differences = scores[0] - scores[1]
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    mean = float(differences.mean()) if n else float("nan")
    if n < 2:
        return Comparison(mean, float("nan"))
    error = sqrt((1 / n + 1 / (n - 1)) * differences.var(ddof=1))
    if error == 0:
        return Comparison(mean, 1.0 if mean == 0 else 0.0)
    return Comparison(mean, float(2 * stdtr(n - 1, -abs(mean) / error)))


def compare_deletions(
    model: LinkPredictor,
    X: Any,
    graph: Any,
    names: Any = None,
    *,
    shares: Sequence[float] = (0.0, 0.2, 0.5, 0.8),
    **options: Any,
) -> dict[float, Evaluation]:
    """Evaluate a model with ever fewer links to learn from.

    Parameters
    ----------
    model : LinkPredictor
        A model; it is cloned.
    X, graph, names
        As in :func:`cross_validate_links`.
    shares : sequence of float, default=(0.0, 0.2, 0.5, 0.8)
        Shares of training links that are left out.
    **options
        Of :func:`cross_validate_links`.

    Returns
    -------
    evaluations : dict of float to Evaluation
        One for each share.
    """
    return {
        share: cross_validate_links(model, X, graph, names, deleted=share, **options)
        for share in shares
    }


def format_table(evaluations: Mapping[str, Evaluation], kind: Kind = "with-unseen") -> str:
    """Return a Markdown table of models and their scores on a kind of pairs.

    Parameters
    ----------
    evaluations : dict of str to Evaluation
        Results, by name.
    kind : str, default="with-unseen"
        The kind of pairs.

    Returns
    -------
    table : str
        Means over folds, and standard deviations in brackets.
    """
    several = {name: scores_of(result, kind) for name, result in evaluations.items()}
    ks = list(next(iter(several.values())).precision)
    header = ["", "AUC", "AUPR", *(f"precision at {k}" for k in ks), "seconds a fold"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for name, scores in several.items():
        cells = [
            name,
            *(f"{np.nanmean(s):.3f} ({np.nanstd(s):.3f})" for s in (scores.auc, scores.aupr)),
            *(f"{np.nanmean(scores.precision[k]):.3f}" for k in ks),
            f"{evaluations[name].seconds.mean():.1f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _area(area: Callable[..., float], pairs: Pairs) -> float:
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
