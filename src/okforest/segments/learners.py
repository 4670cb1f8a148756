"""Estimators on segments whose predictions are weights over the training objects.

Models of okforest predict weights over the training segments, which are summed object by object.
Other estimators predict values or probabilities, which are turned into weights: the mean of the
training outputs with these weights is the predicted value, up to rounding errors. Values that are
not an affine combination of the training outputs, such as vectors of more numbers than there are
objects, are first projected onto the nearest one.

The leaves of trees grown on segments hold objects: one entry per object and leaf, with the
number of its segments there, instead of one entry per segment and tree.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

from okforest._utils.arrays import Floats, Ints
from okforest._utils.distinct import distinct
from okforest._utils.resources import check_memory
from okforest.embedding import as_factor, embed, principal_directions
from okforest.engine.trees import Trees
from okforest.models.base import OKModel
from okforest.models.tree_model import TreeModel
from okforest.weights import ProductWeights, Span, WeightMatrix, as_weights
from okforest.weights.grouped import merge_columns

Positions = npt.NDArray[np.intp]
Values = npt.NDArray[Any]
Members = tuple[Positions, Ints, Ints]  # size of each leaf; groups and numbers, leaf by leaf

N_COPIES = 3  # a fit holds the vectors of segments this many times
# Parameters of models whose outputs are vectors already.
ON_VECTORS: dict[str, Any] = {
    "kernel": "linear",
    "decoder": "mean",
    "embedding": "auto",
    "embedding_rank": None,
    "search_rank": None,
}


class Learner(ABC, BaseEstimator):
    """Fits an estimator to segments, and predicts weights over the training objects.

    Parameters
    ----------
    estimator : estimator
        The estimator, which is not changed.
    """

    def __init__(self, estimator: Any):
        self.estimator = estimator

    @abstractmethod
    def fit(self, S: Values, owner: Positions, span: Span, weight: Floats, seed: int) -> "Learner":
        """Fit the estimator to segments S of the objects ``owner``, whose outputs span holds."""

    @abstractmethod
    def weight_matrix(self, S: Values) -> WeightMatrix:
        """Return weights of shape (n_segments, n_objects)."""

    def fill(self, batches: Iterable[tuple[Values, Positions]], weight: Floats) -> None:
        """Learn from segments that the estimator was not fitted to, if it can."""

    @abstractmethod
    def check_objects(self, n_objects: int) -> None:
        """Raise a ValueError unless the weights are over this number of objects."""


class _VectorLearner(Learner):
    """A model of okforest: segments have their object's output, embedded once per object."""

    def fit(
        self, S: Values, owner: Positions, span: Span, weight: Floats, seed: int
    ) -> "_VectorLearner":
        vectors = self._vectors(span, weight, seed)
        check_memory(
            N_COPIES * vectors.itemsize * vectors.shape[1] * len(S),
            f"the vectors of {vectors.shape[1]} numbers that stand for the outputs of the {len(S)} "
            "segments",
            "Set search_rank=32 of the estimator, an approximate embedding, or max_segments.",
        )
        names = self.estimator.get_params(deep=False)
        changes = {name: value for name, value in ON_VECTORS.items() if name in names}
        self.estimator_ = clone(self.estimator).set_params(**changes)
        self.estimator_.fit(S, vectors[owner], sample_weight=weight[owner])
        self._keep(owner, len(weight))
        return self

    def _vectors(self, span: Span, weight: Floats, seed: int) -> Floats:
        """Return vectors with the inner products of the objects' outputs, around some centre."""
        kind: Any = getattr(self.estimator, "embedding", "auto")
        rank = getattr(self.estimator, "embedding_rank", None)
        if kind == "gram" and rank is None:  # vectors are needed, and features may be known
            kind = "factor"
        embedding = as_factor(embed(span.kernel, span.outputs, kind, rank, seed, weight))
        search_rank = getattr(self.estimator, "search_rank", None)
        vectors = principal_directions(embedding, search_rank, weight, seed)[0].values
        different = distinct(span.outputs)  # equal outputs may differ by rounding
        return vectors[different.first[different.group]]

    @abstractmethod
    def _keep(self, owner: Positions, n_objects: int) -> None:
        """Keep what turns weights of segments into weights of objects."""


class TreeLearner(_VectorLearner):
    """A tree or forest of okforest. Its leaves hold objects, and how many segments of each."""

    def _keep(self, owner: Positions, n_objects: int) -> None:
        self.estimator_.trees_ = merge_members(self.estimator_.trees_, owner, n_objects)
        self.estimator_._forget("outputs_", "kernel_", "row_weight_", "_span")

    def fill(self, batches: Iterable[tuple[Values, Positions]], weight: Floats) -> None:
        """Put the segments into the leaves."""
        reached = ((self.estimator_.apply(S), owner) for S, owner in batches)
        self.estimator_.trees_ = fill_leaves(self.estimator_.trees_, reached, weight)

    def weight_matrix(self, S: Values) -> WeightMatrix:
        return self.estimator_.weight_matrix(S)

    def check_objects(self, n_objects: int) -> None:
        if len(self.estimator_.trees_.row_weight) != n_objects:
            raise ValueError("the trees were not grown on these objects")


class ModelLearner(_VectorLearner):
    """Any other model of okforest."""

    owner_: Positions

    def _keep(self, owner: Positions, n_objects: int) -> None:
        self.owner_, self.n_objects_ = owner, n_objects

    def weight_matrix(self, S: Values) -> WeightMatrix:
        return merge_columns(
            as_weights(self.estimator_.weight_matrix(S)), self.owner_, self.n_objects_
        )

    def check_objects(self, n_objects: int) -> None:
        owner = self.owner_
        if owner.dtype.kind != "i" or owner.ndim != 1 or self.n_objects_ != n_objects:
            raise ValueError("owner_ does not hold the objects of segments")
        if len(owner) != len(self.estimator_.outputs_) or min(owner) < 0 or max(owner) >= n_objects:
            raise ValueError("owner_ does not hold the objects of the training segments")


class ProbabilityLearner(Learner):
    """A classifier: the probability of a class is shared by the training objects of the class."""

    shares_: Floats  # each object (column) has a share of its class (row)

    def fit(
        self, S: Values, owner: Positions, span: Span, weight: Floats, seed: int
    ) -> "ProbabilityLearner":
        if not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"{type(self.estimator).__name__} has no predict_proba, which segments of an "
                "object are combined by; use a classifier that has it, or wrap this one in "
                "scikit-learn's CalibratedClassifierCV."
            )
        self.estimator_ = _fitted(self.estimator, S, span.outputs[owner], weight[owner])
        same = np.equal.outer(self.estimator_.classes_, span.outputs)
        shares = same * weight
        self.shares_ = shares / shares.sum(axis=1, keepdims=True)
        return self

    def weight_matrix(self, S: Values) -> WeightMatrix:
        return ProductWeights(self.estimator_.predict_proba(S), self.shares_)

    def check_objects(self, n_objects: int) -> None:
        _check_shares(self.shares_, n_objects)


class ValueLearner(Learner):
    """A regressor: a value is the mean of the training outputs with the weights nearest to equal.

    Weights of the outputs y_i, centred, are ω_i (1 + (v − ȳ)ᵀ C⁺ (y_i − ȳ)), where C is their
    covariance matrix. A value v that is not an affine combination of the outputs is replaced by
    the nearest one, where distances are measured in standard deviations of the columns.
    """

    mean_: Floats
    shares_: Floats  # one row for a constant, and one per component of the values

    def fit(
        self, S: Values, owner: Positions, span: Span, weight: Floats, seed: int
    ) -> "ValueLearner":
        outputs = span.outputs.reshape(len(weight), -1)
        # scikit-learn warns about a matrix of one column.
        targets = outputs[:, 0] if outputs.shape[1] == 1 else outputs
        self.estimator_ = _fitted(self.estimator, S, targets[owner], weight[owner])
        share = weight / weight.sum()
        self.mean_ = share @ outputs
        self.shares_ = np.vstack([share, _slopes(outputs - self.mean_, outputs, share)])
        return self

    def weight_matrix(self, S: Values) -> WeightMatrix:
        values = np.asarray(self.estimator_.predict(S), dtype=np.float64).reshape(len(S), -1)
        left = np.hstack([np.ones((len(S), 1)), values - self.mean_])
        return ProductWeights(left, self.shares_)

    def check_objects(self, n_objects: int) -> None:
        _check_shares(self.shares_, n_objects)


def make_learner(estimator: Any) -> Learner:
    """Return the learner that an estimator needs."""
    if isinstance(estimator, TreeModel):
        return TreeLearner(estimator)
    if isinstance(estimator, OKModel):
        return ModelLearner(estimator)
    if is_classifier(estimator):
        return ProbabilityLearner(estimator)
    return ValueLearner(estimator)


def _fitted(estimator: Any, S: Values, y: Values, weight: Floats) -> Any:
    """Fit a copy of an estimator to the segments of positive weight.

    Weights are passed only if they differ: not every estimator takes them.
    """
    used = weight > 0
    if not used.all():
        S, y, weight = S[used], y[used], weight[used]
    if (weight == weight[0]).all():
        return clone(estimator).fit(S, y)
    return clone(estimator).fit(S, y, sample_weight=weight)


def _slopes(centred: Floats, outputs: Floats, share: Floats) -> Floats:
    """Return ω_i C⁺ (y_i − ȳ), one column per object.

    The sums of rows are zero to the last bit or so, whatever the offset of the outputs: an offset
    is multiplied by them in a prediction.
    """
    centred = centred - share @ centred  # the first mean has the rounding error of the offset
    deviation = np.sqrt(share @ centred**2)
    rounding = 4 * np.finfo(np.float64).eps * np.abs(outputs).max(axis=0)
    scale = np.where(deviation > rounding, deviation, np.inf)  # constant columns become zero
    root = np.sqrt(share)[:, None]
    cutoff = max(centred.shape) * np.finfo(np.float64).eps
    slopes = np.linalg.pinv(root * centred / scale, rcond=cutoff) * root.T / scale[:, None]
    return np.asarray(slopes - slopes.sum(axis=1, keepdims=True) * share)


def _check_shares(shares: Any, n_objects: int) -> None:
    if not isinstance(shares, np.ndarray) or shares.dtype != np.float64:
        raise ValueError("shares_ is not an array of floats")
    if shares.ndim != 2 or shares.shape[1] != n_objects:
        raise ValueError(f"shares_ has shape {shares.shape}")


Task = Literal["classifier", "regressor"]


def check_estimator(owner: Any, estimator: Any, task: Task | None = None) -> None:
    """Raise a ValueError unless an estimator predicts what the model on objects needs.

    Models of okforest do: they get the kernel of the model on objects.
    """
    name, inner = type(owner).__name__, type(estimator).__name__
    fits = {
        "classifier": is_classifier(estimator),
        "regressor": is_regressor(estimator),
        None: is_classifier(estimator) or is_regressor(estimator),
    }
    if not isinstance(estimator, OKModel) and not fits[task]:
        kind = "classifier" if is_classifier(estimator) else "regressor"
        found = f"is a {kind}" if fits[None] else "is neither a classifier nor a regressor"
        names = ("classifier", "regressor") if task is None else (task,)
        raise ValueError(
            f"estimator={inner} of {name} {found}; expected a model of okforest or a scikit-learn "
            f"{' or '.join(names)}."
        )
    _check_out_of_bag(name, inner, estimator)


def _check_out_of_bag(name: str, inner: str, estimator: Any) -> None:
    for key, value in estimator.get_params(deep=True).items():
        if key.split("__")[-1] == "oob_score" and value:
            raise ValueError(
                f"{key}={value!r} of {inner}: a segment that is out of bag comes from an object "
                "whose other segments are in the bag, so that the score is too high. Set it to "
                f"False, and use cross_val_score({name}(...), X, y), which leaves out whole "
                "objects."
            )


def with_shared_parameters(base: Any, owner: Any) -> Any:
    """Set the seed, number of threads and verbosity of an estimator where it has none of its own.

    ``owner`` has parameters ``n_jobs`` and ``verbose`` and an attribute ``seed_``.
    """
    current = base.get_params(deep=False)
    shared = {"random_state": owner.seed_ % 2**32, "n_jobs": owner.n_jobs}
    open_ = {name: value for name, value in shared.items() if current.get(name, 0) is None}
    if owner.verbose and current.get("verbose") == 0:
        open_["verbose"] = owner.verbose
    return base.set_params(**open_)


def merge_members(trees: Trees, group: Positions, n_groups: int) -> Trees:
    """Replace the members of every leaf by the groups they belong to, each with its number.

    The weights of a leaf over groups are the sums of its weights over members. The rows of a group
    must have the same weight.
    """
    row_weight = np.zeros(n_groups)
    row_weight[group] = trees.row_weight
    found = []
    for t in range(len(trees)):
        tree = trees[t]
        leaf, _ = tree.leaves_by_tree()
        rank = np.repeat(np.arange(len(leaf)), tree.end[leaf] - tree.begin[leaf])
        pairs = rank * n_groups + group[tree.members]
        times = tree.times if len(tree.times) else None
        found.append(_counted(pairs, len(leaf), n_groups, times))
    return _with_members(trees, found, row_weight)


def fill_leaves(
    trees: Trees, batches: Iterable[tuple[Ints, Positions]], row_weight: Floats
) -> Trees:
    """Replace the members of every leaf by the groups of other rows that reach it.

    A batch has the leaves of some rows, shape (n, n_trees), and the group of each; ``row_weight``
    has the weight of a row of each group. The rows that the trees were grown on must be among them,
    so that no leaf is empty. A node gets the weight of its new members; its variance stays.

    A batch is counted before the next one is made: memory is proportional to the number of members.
    """
    n_groups = len(row_weight)
    ranks = [_leaf_ranks(trees[t]) for t in range(len(trees))]
    parts: list[list[tuple[Positions, Ints]]] = [[] for _ in ranks]
    for leaves, group in batches:
        used = np.flatnonzero(row_weight[group])
        for t, rank in enumerate(ranks):
            pairs = rank[leaves[used, t]].astype(np.intp) * n_groups + group[used]
            pairs, counts = np.unique(pairs, return_counts=True)
            parts[t].append((pairs, counts.astype(np.int32)))
    found = []
    for kept, rank in zip(parts, ranks, strict=True):
        pairs = np.concatenate([pair for pair, _ in kept])
        times = np.concatenate([count for _, count in kept])
        kept.clear()
        found.append(_counted(pairs, int(rank.max()) + 1, n_groups, times))
    filled = _with_members(trees, found, row_weight)
    weight = np.empty_like(filled.weight)
    for t, (_, members, times) in enumerate(found):
        total = np.append(0.0, np.cumsum(times * row_weight[members]))
        nodes = slice(trees.node_offsets[t], trees.node_offsets[t + 1])
        weight[nodes] = total[filled.end[nodes]] - total[filled.begin[nodes]]
    return replace(filled, weight=weight)


def _leaf_ranks(tree: Trees) -> Ints:
    """Return the number of every leaf in the order of members; -1 for other nodes."""
    leaf, _ = tree.leaves_by_tree()
    rank = np.full(len(tree.left), -1, dtype=np.int32)
    rank[leaf] = np.arange(len(leaf))
    return rank


def _counted(pairs: Positions, n_leaves: int, n_groups: int, times: Ints | None) -> Members:
    """Return the members of the leaves of one tree, from pairs leaf · n_groups + group.

    Leaves are numbered in the order of their members.
    """
    if times is None:
        pairs, counts = np.unique(pairs, return_counts=True)
    else:
        pairs, inverse = np.unique(pairs, return_inverse=True)
        counts = np.round(np.bincount(inverse, times)).astype(np.intp)
    sizes = np.bincount(pairs // n_groups, minlength=n_leaves)
    return sizes, (pairs % n_groups).astype(np.int32), counts.astype(np.int32)


def _with_members(trees: Trees, found: Sequence[Members], row_weight: Floats) -> Trees:
    """Return trees whose leaves have other members."""
    begin, end = np.empty_like(trees.begin), np.empty_like(trees.end)
    for t, (sizes, _, _) in enumerate(found):
        tree, nodes = trees[t], slice(trees.node_offsets[t], trees.node_offsets[t + 1])
        leaf, _ = tree.leaves_by_tree()
        # Every node's range begins where a leaf's range begins, and ends where one ends.
        moved = np.empty(tree.end[0] + 1, dtype=begin.dtype)
        moved[np.append(0, tree.end[leaf])] = np.append(0, np.cumsum(sizes))
        begin[nodes], end[nodes] = moved[tree.begin], moved[tree.end]
    n_members = [len(group) for _, group, _ in found]
    return replace(
        trees,
        begin=begin,
        end=end,
        members=np.concatenate([group for _, group, _ in found]),
        times=np.concatenate([times for _, _, times in found]),
        member_offsets=np.append(0, np.cumsum(n_members)).astype(np.int64),
        row_weight=row_weight,
    )
