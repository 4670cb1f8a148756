"""Retrieval, slowly: scores from the leaves of subwindows; and small images to search for."""

import numpy as np


def scores(query_leaves, image_leaves):
    """Return S(q, i) for each image.

    Leaves are arrays of shape (n_subwindows, n_trees); the mean is over the pairs of a query
    subwindow and a tree whose leaf has a subwindow of some image.
    """
    total, n_used = np.zeros(len(image_leaves)), 0
    n, n_trees = query_leaves.shape
    for w in range(n):
        for t in range(n_trees):
            counts = np.array(
                [(leaves[:, t] == query_leaves[w, t]).sum() for leaves in image_leaves]
            )
            if counts.sum():
                total += counts / counts.sum()
                n_used += 1
    return total / n_used


def average_precision(relevant):
    """Return the mean of the precision at the rank of each relevant item."""
    found, precisions = 0, []
    for rank, one in enumerate(relevant, start=1):
        found += one
        if one:
            precisions.append(found / rank)
    return sum(precisions) / len(precisions)


def reach(tree, row):
    """Return the number of the leaf, from left to right, that a row reaches in a tree of nodes.

    ``tree`` has arrays left, feature and threshold, as in the engine.
    """

    def leaves_below(node):
        left = tree.left[node]
        return 1 if left < 0 else leaves_below(left) + leaves_below(left + 1)

    node, number = 0, 0
    while tree.left[node] >= 0:
        left = tree.left[node]
        if row[tree.feature[node]] <= tree.threshold[node]:
            node = left
        else:
            number += leaves_below(left)
            node = left + 1
    return number


def make_images(n=12, side=(24, 20), n_classes=4, seed=0, channels=None):
    """Return images of smooth random patterns, one pattern for each class, and their labels."""
    rng = np.random.default_rng(seed)
    shape = (n_classes, side[0] // 4, side[1] // 4, *([channels] if channels else []))
    patterns = rng.integers(0, 256, shape).repeat(4, axis=1).repeat(4, axis=2)
    labels = np.arange(n) % n_classes
    noise = rng.normal(0, 12, (n, *patterns.shape[1:]))
    images = np.clip(patterns[labels] + noise, 0, 255).astype(np.uint8)
    return images, [f"class {label}" for label in labels]


def scores_by_name(index, query):
    """Return the scores of all images of an index, by their names."""
    ids, scores = index.scores(query)
    names = {row.id: row.name for row in index.rows()}
    return {names[int(i)]: score for i, score in zip(ids, scores, strict=True)}
