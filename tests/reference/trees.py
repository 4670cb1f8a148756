"""Output kernel trees by the book: variances from the Gram matrix, splits by trying them all."""

from dataclasses import dataclass, field

import numpy as np

from reference.random import Rng, derive


def total_variance(K, weight, rows):
    """Ω·var of the rows' outputs: Σ ω_i k_ii − Σ_ij ω_i ω_j k_ij / Ω."""
    w = weight[rows]
    block = K[rows[:, None], rows]
    return w @ block.diagonal() - w @ block @ w / w.sum()


def variances_of_sides(K, weight, rows, sides):
    """Return the total variance of each side, a row of truth values over the rows of a node."""
    w = sides * weight[rows]
    block = K[rows[:, None], rows]
    # np.dot takes half the time of @ in extended precision
    return np.dot(w, block.diagonal()) - (np.dot(w, block) * w).sum(axis=1) / w.sum(axis=1)


def predicted_kernel_square(K, weight, parts):
    """Return Σ_ij ω_i ω_j k̂_ij², where k̂_ij is the weighted mean of K over the parts of i and j.

    The error Σ_ij ω_i ω_j (k_ij − k̂_ij)² falls by as much as this grows.
    """
    membership = np.zeros((len(parts), len(K)))
    for row, part in zip(membership, parts, strict=True):
        row[part] = weight[part]
    totals = membership.sum(axis=1)
    return ((membership @ K @ membership.T) ** 2 / np.outer(totals, totals)).sum()


@dataclass(eq=False)
class Node:
    rows: np.ndarray
    depth: int
    seed: int
    variance: float
    split: tuple | None = None  # feature, test, gain, which rows go left
    children: list = field(default_factory=list)
    partition: list = field(default_factory=list)


def gram_rounding(variance, scale, n):
    """Return the rounding errors of a variance and of gains from inner products of n rows."""
    errors = (64 + n / 2) * np.finfo(float).eps * scale
    return errors, errors


def factor_rounding(variance, scale, n):
    """Return the rounding errors of a variance and of gains from vectors."""
    unit = 64 * np.finfo(float).eps
    # A variance from inner products, as here, has rounding errors of their type.
    least = max(unit**2, 64 * np.finfo(np.asarray(scale).dtype).eps) * scale
    return least, unit * np.sqrt(max(variance, 0.0)) * np.sqrt(scale)


def grow_tree(X, K, rules, weight, count, seed, categories=None, rounding=gram_rounding):
    """Grow one tree as the core says it does; return its root."""
    rows = np.flatnonzero(weight > 0)
    root = Node(rows, 0, seed, total_variance(K, weight, rows))
    root.partition = [root.rows]  # the leaves there are, which change as the tree grows
    frontier, n_leaves = [root], 1
    while frontier and n_leaves < rules.max_leaf_nodes:
        if rules.order == "depth":
            node = frontier.pop()
        else:
            order = [
                priority(X, K, node, rules, weight, count, root, categories, rounding)
                for node in frontier
            ]
            node = frontier[int(np.argmax(order))]
            frontier.remove(node)
        split = find_split(X, K, node, rules, weight, count, root, categories, rounding)
        if split is None:
            continue
        node.split = split
        left = split[3]
        for side, rows in ((1, node.rows[left]), (2, node.rows[~left])):
            variance = total_variance(K, weight, rows)
            node.children.append(Node(rows, node.depth + 1, derive(node.seed, side), variance))
        root.partition = [part for part in root.partition if part is not node.rows]
        root.partition += [child.rows for child in node.children]
        # Depth first, the left child comes first.
        frontier += node.children[::-1] if rules.order == "depth" else node.children
        n_leaves += 1
    return root


def priority(X, K, node, rules, weight, count, root, categories, rounding):
    """Return the priority of a node, rounded so that those that differ by rounding errors tie."""
    value = node.variance
    if rules.order != "variance":
        split = find_split(X, K, node, rules, weight, count, root, categories, rounding)
        value = -1.0 if split is None else split[2]
    mantissa, exponent = np.frexp(float(value))
    return np.ldexp(np.rint(mantissa * 2.0**30), exponent - 30)


def find_split(X, K, node, rules, weight, count, root, categories, rounding):
    """Return the split of a node, or None if it is a leaf."""
    rows = node.rows
    if len(rows) < 2 or node.depth >= rules.max_depth:
        return None
    if count[rows].sum() < max(rules.min_samples_split, 2 * rules.min_samples_leaf) - 1e-6:
        return None
    scale = weight[rows] @ K.diagonal()[rows]
    least, errors = rounding(node.variance, scale, len(rows))
    if rules.stop_when_pure and node.variance <= least:
        return None

    rng, cuts = Rng(node.seed), Rng(derive(node.seed, 3))
    features = list(range(X.shape[1]))
    found, n_candidates = [], 0  # feature, test, gain, which rows go left
    for visited in range(X.shape[1]):
        if found and n_candidates >= rules.max_features:
            break
        pick = visited + rng.below(X.shape[1] - visited)
        features[visited], features[pick] = features[pick], features[visited]
        feature = features[visited]
        draws = cuts.ahead(feature * 4096)
        x = X[rows, feature].astype(float)
        if categories is not None and categories[feature]:
            sides = category_sides(x, K, rows, weight, rules, draws, categories[feature])
        else:
            sides = numeric_sides(x, weight[rows], rules, draws)
        sides = list(sides)
        n_candidates += bool(sides) or not rules.ignore_constant
        sides = [(left, test) for left, test in sides if is_allowed(left, count[rows], rules)]
        if not sides:
            continue
        if rules.frobenius:
            parts = [part for part in root.partition if part is not rows]
            before = predicted_kernel_square(K, weight, [*parts, rows])
            gains = [
                predicted_kernel_square(K, weight, [*parts, rows[left], rows[~left]]) - before
                for left, _ in sides
            ]
        else:
            lefts = np.array([left for left, _ in sides])
            gains = node.variance - sum(
                variances_of_sides(K, weight, rows, part) for part in (lefts, ~lefts)
            )
        for (left, test), gain in zip(sides, gains, strict=True):
            found.append((feature, test, max(gain, 0.0), left))
    if not found:
        return None
    # The first of those whose gain counts as equal to the largest.
    noise = max(1e-12 * node.variance, errors)
    least = max(split[2] for split in found) * (1 - 1e-9) - noise
    best = next(split for split in found if split[2] >= least)
    return best if best[2] >= rules.min_impurity_decrease * weight[root.rows].sum() else None


def is_allowed(left, count, rules):
    """Tell whether both sides have rows, and as many as a leaf must have."""
    if left.all() or not left.any():
        return False
    return min(count[left].sum(), count[~left].sum()) >= rules.min_samples_leaf - 1e-6


def numeric_sides(x, weight, rules, rng):
    """Yield (which rows go left, threshold) for the splits of a numeric feature, in order."""
    missing = np.isnan(x)
    values = np.unique(x[~missing])
    if len(values) == 0 or (len(values) == 1 and not missing.any()):
        return
    if rules.random_splits:
        threshold = np.inf
        if len(values) > 1:
            u = rng.uniform()
            threshold = (1 - u) * values[0] + u * values[-1]
        yield with_missing(x <= threshold, missing, weight, rng), threshold
        return
    thresholds = values[:-1] / 2 + values[1:] / 2
    for missing_left in (False, True) if missing.any() else (False,):
        for threshold in thresholds:
            yield np.where(missing, missing_left, x <= threshold), threshold
        if missing.any() and not missing_left:
            yield ~missing, np.inf


def with_missing(left, missing, weight, rng):
    """Send missing values to a side, drawn by the present weights; never where all others are."""
    if not missing.any():
        return left
    u = rng.uniform()
    part = weight[left & ~missing].sum() / weight[~missing].sum()
    return np.where(missing, u < part if 0 < part < 1 else part == 0, left)


def category_sides(x, K, rows, weight, rules, rng, n_categories):
    """Yield (which rows go left, None) for the splits of a categorical feature, in order."""
    missing = np.isnan(x) | (x < 0) | (x >= n_categories)
    codes = np.unique(x[~missing])
    n_groups = len(codes) + missing.any()
    if len(codes) == 0 or n_groups < 2:
        return
    if rules.random_splits:
        sides = [rng.below(2) for _ in codes]
        if len(set(sides)) == 1 and len(codes) > 1:
            sides[rng.below(len(codes))] ^= 1
        left = np.isin(x, codes[np.array(sides, dtype=bool)])
        yield with_missing(left, missing, weight[rows], rng), None
        return
    if n_groups <= 10:  # every subset that holds the first category, in the order of a Gray code
        groups = [x == c for c in codes] + ([missing] if missing.any() else [])
        for k in range(2 ** (n_groups - 1)):
            gray = k ^ (k >> 1)
            chosen = [0] + [g + 1 for g in range(n_groups - 1) if gray >> g & 1]
            yield np.any([groups[g] for g in chosen], axis=0), None
        return
    # Order the categories by the first principal component of their means, weighted.
    present = rows[~missing]
    phi = np.linalg.eigh(K)
    phi = phi[1] * np.sqrt(np.maximum(phi[0], 0))
    node_mean = np.average(phi[rows], axis=0, weights=weight[rows])
    means, totals = [], []
    for c in codes:
        members = present[x[~missing] == c]
        means.append(np.average(phi[members], axis=0, weights=weight[members]) - node_mean)
        totals.append(weight[members].sum())
    scaled = np.array(means) * np.sqrt(totals)[:, None]
    direction = np.linalg.svd(scaled)[2][0]
    position = np.array(means) @ direction
    position *= -np.sign(position[0])
    rank = np.full(n_categories, np.nan)
    rank[codes.astype(int)] = np.argsort(np.argsort(position))
    ranks = np.where(missing, np.nan, rank[np.where(missing, 0, x).astype(int)])
    for left, _ in numeric_sides(ranks, weight[rows], rules, rng):
        yield left, None


def as_nested(node):
    """Turn a reference tree into nested tuples of features and rows, to compare shapes."""
    if node.split is None:
        return tuple(sorted(node.rows.tolist()))
    return (node.split[0], *map(as_nested, node.children))


def engine_as_nested(tree, node=0):
    """Turn a tree of the engine into the same."""
    if tree.left[node] < 0:
        return tuple(sorted(set(tree.members[tree.begin[node] : tree.end[node]].tolist())))
    children = (engine_as_nested(tree, tree.left[node] + side) for side in (0, 1))
    return (int(tree.feature[node]), *children)


def thresholds_of(node):
    """List the thresholds of a reference tree's numeric tests, depth first."""
    if node.split is None:
        return []
    below = [t for child in node.children for t in thresholds_of(child)]
    return [node.split[1], *below] if node.split[1] is not None else below


def engine_thresholds(tree, node=0):
    """List the thresholds of a tree of the engine."""
    if tree.left[node] < 0:
        return []
    below = [t for side in (0, 1) for t in engine_thresholds(tree, tree.left[node] + side)]
    return [float(tree.threshold[node]), *below] if tree.subset[node] < 0 else below


def leaf_of(tree, x, node=0):
    """Follow one input down a tree of the engine."""
    while tree.left[node] >= 0:
        value = x[tree.feature[node]]
        categories = tree.left_categories(node)
        known = categories is None or 0 <= value < tree.n_categories[tree.feature[node]]
        if np.isnan(value) or not known:
            left = tree.missing_left[node]
        elif categories is None:
            left = value <= tree.threshold[node]
        else:
            left = value in categories
        node = tree.left[node] + (0 if left else 1)
    return node


def forest_weights(trees, X, n_train):
    """Weights w_i(x) = mean over trees of ω_i / Ω_leaf, members counted as often as they occur."""
    W = np.zeros((len(X), n_train))
    for t in range(len(trees)):
        tree = trees[t]
        for i, x in enumerate(X):
            leaf = leaf_of(tree, x)
            members = slice(tree.begin[leaf], tree.end[leaf])
            w = tree.row_weight[tree.members[members]]
            if len(tree.times):
                w = w * tree.times[members]
            W[i, tree.members[members]] += w / w.sum() / len(trees)
    return W
