"""Output kernel trees by the book: variances from the Gram matrix, splits by trying them all."""

from dataclasses import dataclass, field

import numpy as np

from reference.random import Rng, derive


def total_variance(K, weight, rows):
    """Ω·var of the rows' outputs: Σ ω_i k_ii − Σ_ij ω_i ω_j k_ij / Ω."""
    w = weight[rows]
    block = K[np.ix_(rows, rows)]
    return w @ np.diag(block) - w @ block @ w / w.sum()


@dataclass(eq=False)
class Node:
    rows: np.ndarray
    depth: int
    seed: int
    variance: float
    split: tuple | None = None  # feature, threshold, gain
    children: list = field(default_factory=list)


def grow_tree(X, K, rules, weight, count, seed):
    """Grow one tree as the core says it does; return its root."""
    rows = np.flatnonzero(weight > 0)
    root = Node(rows, 0, seed, total_variance(K, weight, rows))
    frontier, n_leaves = [root], 1
    while frontier and n_leaves < rules.max_leaf_nodes:
        if rules.order == "depth":
            node = frontier.pop()
        else:
            node = max(frontier, key=lambda node: priority(X, K, node, rules, weight, count, root))
            frontier.remove(node)
        split = find_split(X, K, node, rules, weight, count, root)
        if split is None:
            continue
        node.split = split
        left = X[node.rows, split[0]] <= split[1]
        for side, rows in ((1, node.rows[left]), (2, node.rows[~left])):
            variance = total_variance(K, weight, rows)
            node.children.append(Node(rows, node.depth + 1, derive(node.seed, side), variance))
        frontier += node.children
        n_leaves += 1
    return root


def priority(X, K, node, rules, weight, count, root):
    if rules.order == "variance":
        return node.variance
    split = find_split(X, K, node, rules, weight, count, root)
    return -1.0 if split is None else split[2]


def find_split(X, K, node, rules, weight, count, root):
    """Return (feature, threshold, gain) of the split of a node, or None if it is a leaf."""
    rows = node.rows
    if len(rows) < 2 or node.depth >= rules.max_depth:
        return None
    if count[rows].sum() < max(rules.min_samples_split, 2 * rules.min_samples_leaf):
        return None
    pure = 1e-12 * root.variance / weight[root.rows].sum() * weight[rows].sum()
    if rules.stop_when_pure and node.variance <= pure:
        return None

    rng = Rng(node.seed)
    features = list(range(X.shape[1]))
    best = None
    for visited in range(X.shape[1]):
        if best is not None and visited >= rules.max_features:
            break
        pick = visited + rng.below(X.shape[1] - visited)
        features[visited], features[pick] = features[pick], features[visited]
        feature = features[visited]
        x = X[rows, feature].astype(float)
        if x.min() == x.max():
            continue
        if rules.random_splits:
            u = rng.uniform()
            thresholds = [(1 - u) * x.min() + u * x.max()]
        else:
            values = np.unique(x)
            thresholds = values[:-1] / 2 + values[1:] / 2
        for threshold in thresholds:
            left = x <= threshold
            if min(count[rows[left]].sum(), count[rows[~left]].sum()) < rules.min_samples_leaf:
                continue
            gain = node.variance - sum(
                total_variance(K, weight, rows[side]) for side in (left, ~left)
            )
            tie = best is not None and gain * (1 - 1e-9) <= best[2] + 1e-12 * node.variance
            if not tie:
                best = (feature, threshold, gain)
    total_weight = weight[root.rows].sum()
    if best is None or best[2] < rules.min_impurity_decrease * total_weight:
        return None
    return best


def as_nested(node):
    """Turn a reference tree into nested tuples, to compare shapes."""
    if node.split is None:
        return tuple(sorted(node.rows.tolist()))
    return (node.split[0], round(node.split[1], 9), *map(as_nested, node.children))


def engine_as_nested(tree, node=0):
    """Turn a tree of the engine into the same."""
    if tree.left[node] < 0:
        return tuple(sorted(set(tree.members[tree.begin[node] : tree.end[node]].tolist())))
    children = (engine_as_nested(tree, tree.left[node] + side) for side in (0, 1))
    return (int(tree.feature[node]), round(float(tree.threshold[node]), 9), *children)


def leaf_of(tree, x, node=0):
    """Follow one input down a tree of the engine."""
    while tree.left[node] >= 0:
        node = tree.left[node] + (0 if x[tree.feature[node]] <= tree.threshold[node] else 1)
    return node


def forest_weights(trees, X, n_train):
    """Weights w_i(x) = mean over trees of ω_i / Ω_leaf, members counted as often as they occur."""
    W = np.zeros((len(X), n_train))
    for t in range(len(trees)):
        tree = trees[t]
        for i, x in enumerate(X):
            leaf = leaf_of(tree, x)
            members = tree.members[tree.begin[leaf] : tree.end[leaf]]
            total = sum(tree.row_weight[m] for m in members)
            for m in members:
                W[i, m] += tree.row_weight[m] / total / len(trees)
    return W
