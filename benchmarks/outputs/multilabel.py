"""Multi-label classification beside scikit-learn: each measure with the decoder made for it.

Data: emotions by 5-fold cross-validation, yeast and bibtex by their published splits; with
``--repeats``, means over as many cross-validations, or seeds of the models. Methods of
scikit-learn: random forests on all labels, thresholded at one half, and decoded to the nearest
training set; a forest on label powersets; 100 trees each; and ten classifier chains of forests of
20 trees. On bibtex, forests have 50 trees, and there are three chains of logistic regression:
chains of forests would take hours. okforest: boosting and extra-trees with all features at each
node, and the mean of the two; these settings were chosen by cross-validation within the training
rows of yeast, and kept for the other data. On bibtex there is boosting only: all of 1,836 features
at each node take long. Thresholds are tuned by cross-validation within the training rows.
"""

import warnings

import numpy as np
import scipy.sparse as sp
from benchmarks.outputs.measure import arguments, folds, report
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin
from sklearn.multioutput import ClassifierChain

from okforest import OKBoost, OKEnsemble, OKExtraTrees, tune_decoder
from okforest.datasets import load_multilabel
from okforest.decode import Threshold
from okforest.metrics import set_f1_score, set_hamming_loss, subset_accuracy

warnings.filterwarnings("ignore")  # labels that are constant within a fold

MEASURES = {
    "Hamming loss": set_hamming_loss,
    "subset accuracy": subset_accuracy,
    "example F1": set_f1_score,
    "micro F1": lambda y, p: set_f1_score(y, p, average="micro"),
    "macro F1": lambda y, p: set_f1_score(y, p, average="macro"),
}
DECODERS = {
    "threshold ½": "threshold",
    "nearest known set": "training_set",
    "mode": "mode",
    "cardinality": "cardinality",
    "expected F1": "expected_f1",
    "tuned, micro F1": Threshold("micro_f1"),
    "tuned, macro F1": Threshold("macro_f1"),
}


TREES = {"bibtex": 50}


def probabilities(forest, X):
    """Return the probabilities of labels by a forest of scikit-learn on an indicator matrix."""
    columns = zip(forest.predict_proba(X), forest.classes_, strict=True)
    return np.column_stack(
        [P[:, list(c).index(1)] if 1 in c else np.zeros(X.shape[0]) for P, c in columns]
    )


def scikit_learn(name, scale, seed, X, Y, Z):
    """Yield names and predicted indicators for the rows Z of methods of scikit-learn."""
    n_trees = max(2, int(TREES.get(name, 100) * scale))
    forest = RandomForestClassifier(n_trees, random_state=seed).fit(X, Y)
    P = probabilities(forest, Z)
    yield "scikit-learn forest, threshold ½", (P > 0.5).astype(int)
    yield "scikit-learn forest, nearest known set", Y[pairwise_distances_argmin(P, Y)]
    sets, code = np.unique(Y, axis=0, return_inverse=True)
    powerset = RandomForestClassifier(n_trees, random_state=seed).fit(X, code)
    yield "label powerset of scikit-learn forests", sets[powerset.predict(Z)]
    if name == "bibtex":
        base, n_chains = LogisticRegression(solver="liblinear"), 3
        X, Z = sp.csr_array(X), sp.csr_array(Z)
    else:
        base, n_chains = RandomForestClassifier(20, random_state=seed), 10
    votes = np.zeros((Z.shape[0], Y.shape[1]))
    occurs = np.flatnonzero((Y.min(axis=0) == 0) & (Y.max(axis=0) == 1))
    n_chains = max(1, int(n_chains * scale))
    for number in range(seed * n_chains, (seed + 1) * n_chains):
        chain = ClassifierChain(base, order="random", random_state=number).fit(X, Y[:, occurs])
        votes[:, occurs] += chain.predict_proba(Z)
    votes /= n_chains
    yield "classifier chains of scikit-learn", (votes > 0.5).astype(int)


def okforest(name, scale, seed, X, Y, Z):
    """Yield names and predicted indicators of models of okforest with several decoders."""
    boost = OKBoost(
        max(2, int(300 * scale)),
        learning_rate=0.05,
        kernel="hamming",
        splitter="random",
        max_splits=30,
        max_features="sqrt",
        subsample=0.7,
        random_state=seed,
    )
    trees = OKExtraTrees(
        max(2, int(100 * scale)), kernel="hamming", max_features=None, random_state=seed
    )
    models = {"OKBoost": boost}
    if name != "bibtex":
        models["OKExtraTrees"] = trees
        models["OKEnsemble of both"] = OKEnsemble([boost, trees], kernel="hamming")
    for model_name, model in models.items():
        model.fit(X, Y)
        for title, decoder in DECODERS.items():
            if not isinstance(decoder, str):
                decoder = tune_decoder(model, X, Y, decoder)
            yield f"{model_name}, {title}", model.set_params(decoder=decoder).predict(Z)


def splits(data, n_repeats):
    """Yield training rows, test rows and the seed of the models."""
    if "split" in data:
        train, test = (np.flatnonzero(data.split == part) for part in ("train", "test"))
        yield from ((train, test, seed) for seed in range(n_repeats))
    else:
        yield from ((*rows, 0) for rows in folds(data.data.shape[0], 5, n_repeats))


def main():
    """Print a table for each data set."""
    options = arguments("emotions", "yeast", "bibtex")
    for name in options.data:
        data = load_multilabel(name)
        X, Y = data.data, data.target
        found = {}
        for train, test, seed in splits(data, options.repeats):
            dense = X.toarray() if sp.issparse(X) else X  # chains of scikit-learn need it
            methods = [
                *scikit_learn(name, options.scale, seed, dense[train], Y[train], dense[test]),
                *okforest(name, options.scale, seed, X[train], Y[train], X[test]),
            ]
            for method, predicted in methods:
                scores = [measure(Y[test], predicted) for measure in MEASURES.values()]
                found.setdefault(method, []).append(scores)
        means = {method: np.mean(scores, axis=0) for method, scores in found.items()}
        rows = [[method, *(f"{v:.4f}" for v in mean)] for method, mean in means.items()]
        report(name, ["method", *MEASURES], rows)


if __name__ == "__main__":
    main()
