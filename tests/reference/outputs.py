"""Slow, obvious versions of kernels and scores on sets, rankings, strings and curves."""

from functools import cache
from itertools import combinations, product


def f1(a, b):
    """Return the F1 score of two sets; 1 if both are empty."""
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def jaccard(a, b):
    """Return the Jaccard score of two sets; 1 if both are empty."""
    return len(a & b) / len(a | b) if a or b else 1.0


def hierarchical_f1(chosen, p, weight, not_empty):
    """Return the F1 score of a set of classes for their probabilities p."""
    if not chosen:
        return 1.0 - not_empty
    gain = sum(weight[c] * p[c] for c in chosen)
    size = max(0.0, sum(weight[c] * p[c] for c in p)) / not_empty
    return 2.0 * gain / (sum(weight[c] for c in chosen) + size)


def subsets(labels):
    """Return all subsets of some labels."""
    labels = sorted(labels)
    return [frozenset(s) for k in range(len(labels) + 1) for s in combinations(labels, k)]


def discordant(first, second):
    """Count the pairs of labels that two orders place differently."""
    place = {label: i for i, label in enumerate(second)}
    return sum(place[a] > place[b] for a, b in combinations(first, 2))


def gap_weighted(s, t, k, decay):
    """Sum over all pairs of equal subsequences, by enumeration of index tuples."""
    total = 0.0
    for i in combinations(range(len(s)), k):
        for j in combinations(range(len(t)), k):
            if all(s[p] == t[q] for p, q in zip(i, j, strict=True)):
                total += decay ** (i[-1] - i[0] + 1 + j[-1] - j[0] + 1)
    return total


def mismatch(s, t, k, m, alphabet):
    """Sum over all words of the product of the numbers of k-mers within m mismatches."""

    def count(text, word):
        windows = [text[i : i + k] for i in range(len(text) - k + 1)]
        return sum(sum(a != b for a, b in zip(w, word, strict=True)) <= m for w in windows)

    return sum(count(s, word) * count(t, word) for word in product(alphabet, repeat=k))


def edit_distance(s, t):
    """Return the Levenshtein distance, by its recursive definition."""

    @cache
    def distance(i, j):
        if not i or not j:
            return i + j
        change = distance(i - 1, j - 1) + (s[i - 1] != t[j - 1])
        return min(change, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(s), len(t))


def alignments(u, v, similarity):
    """Return the sum over all monotone alignments of the product of similarities."""

    def total(i, j):
        if i == 0 and j == 0:
            return similarity(u[0], v[0])
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        reached = sum(total(a, b) for a, b in before if a >= 0 and b >= 0)
        return similarity(u[i], v[j]) * reached

    return total(len(u) - 1, len(v) - 1)
