"""Label ranking beside scikit-learn: Kendall's τ, 10-fold cross-validation.

Methods of scikit-learn: a random forest on ranks, decoded by sorting; and ranking by pairwise
comparison, one logistic regression for each pair of labels, whose probabilities are summed for each
label. okforest: a random forest with the Kendall kernel and the Kemeny decoder, one with the
Spearman kernel and the Borda decoder, each with the leaf size of the best out-of-bag τ; and kernel
ridge regression with leave-one-out choice of the penalty. No choice used a test fold.
"""

import sys

import numpy as np
from benchmarks.outputs.measure import arguments, folds, report
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKRandomForest, OKRidge
from okforest.datasets import load_label_ranking
from okforest.metrics import kendall_tau

NAMES = ("iris", "glass", "wine", "vehicle", "vowel", "stock", "wisconsin", "cold", "heat", "spo")
LEAVES = (1, 3, 10, 30)


def ranks_from(scores):
    """Return the ranks of labels; the highest score has rank 1."""
    return np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable") + 1


def forest_on_ranks(X, ranks, Z, n_trees):
    """Predict ranks by a forest of scikit-learn, and sort them."""
    return ranks_from(-RandomForestRegressor(n_trees, random_state=0).fit(X, ranks).predict(Z))


def pairwise_comparison(X, ranks, Z, n_trees):
    """Sum the probabilities that a label is preferred to each other label."""
    scaler = StandardScaler().fit(X)
    X, Z = scaler.transform(X), scaler.transform(Z)
    scores = np.zeros((len(Z), ranks.shape[1]))
    for i in range(ranks.shape[1]):
        for j in range(i):
            preferred = ranks[:, i] < ranks[:, j]
            p = np.full(len(Z), preferred.mean())
            if 0 < preferred.sum() < len(preferred):
                p = LogisticRegression().fit(X, preferred).predict_proba(Z)[:, 1]
            scores[:, i] += p
            scores[:, j] += 1 - p
    return ranks_from(scores)


def tuned_forest(kernel):
    """Return a method: a forest with the leaf size of the best out-of-bag τ."""

    def predict(X, ranks, Z, n_trees):
        best, chosen = -2.0, None
        for leaf in LEAVES:
            forest = OKRandomForest(
                n_trees, kernel=kernel, min_samples_leaf=leaf, oob_score=True, random_state=0
            ).fit(X, ranks)
            known = np.diff(forest.oob_weights_.indptr) > 0  # out of bag for at least one tree
            tau = kendall_tau(ranks[known], forest.oob_prediction_[known])
            if tau > best:
                best, chosen = tau, forest
        return chosen.predict(Z)

    return predict


def ridge(X, ranks, Z, n_trees):
    """Predict by kernel ridge regression with the Spearman kernel."""
    model = OKRidge("loo", kernel="spearman", input_kernel="rbf")
    return make_pipeline(StandardScaler(), model).fit(X, ranks).predict(Z)


METHODS = {
    "scikit-learn forest on ranks": forest_on_ranks,
    "ranking by pairwise comparison": pairwise_comparison,
    "OKRandomForest, Kendall, Kemeny": tuned_forest("kendall"),
    "OKRandomForest, Spearman, Borda": tuned_forest("spearman"),
    "OKRidge, Spearman, Borda": ridge,
}


def main():
    """Print a table with one row per data set."""
    options = arguments(*NAMES, repeats=5)
    n_trees = max(3, int(100 * options.scale))
    rows = []
    for name in options.data:
        data = load_label_ranking(name)
        found = {method: [] for method in METHODS}
        for train, test in folds(len(data.data), 10, options.repeats):
            for method, predict in METHODS.items():
                ranks = predict(data.data[train], data.target[train], data.data[test], n_trees)
                found[method].append(kendall_tau(data.target[test], ranks))
        rows.append([name, *(np.mean(taus) for taus in found.values())])
        print(name, file=sys.stderr, flush=True)
    mean = ["mean", *np.mean([row[1:] for row in rows], axis=0)]
    shown = [[row[0], *(f"{tau:.3f}" for tau in row[1:])] for row in [*rows, mean]]
    report(f"Kendall's τ, {options.repeats} × 10 folds", ["data", *METHODS], shown)


if __name__ == "__main__":
    main()
