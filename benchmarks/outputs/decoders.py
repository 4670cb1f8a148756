"""One forest, many decoders: the evidence for the default decoders of label sets and hierarchies.

The defaults were chosen on the development sets, by the mean rank over measures, and confirmed on
the others. Published splits; larger data are subsampled to 3,000 training and 1,500 test rows.
"tuned" is one threshold for all labels by cross-validation within the training rows: it is no
default, since a forest without bootstrap samples would have to be fitted several times.
"""

import time

import numpy as np
from benchmarks.outputs.measure import arguments, data_folder, hierarchical, report
from scipy.stats import rankdata

from okforest import OKExtraTrees, OKRandomForest, tune_decoder
from okforest.datasets import read_multilabel_arff
from okforest.decode import Hierarchical, Threshold
from okforest.kernels import Hierarchy
from okforest.metrics import set_f1_score, set_hamming_loss, subset_accuracy

N_LABELS = {
    "emotions": -6,
    "flags": -7,
    "birds": -19,
    "yeast": 14,
    "Corel5k": -374,
    "bibtex": -159,
    "tmc2007-500": -22,
}
HIERARCHIES = (
    "cellcycle_FUN",
    "gasch2_FUN",
    "Enron_corr",
    "Diatoms",
    "derisi_FUN",
    "spo_FUN",
    "church_FUN",
    "derisi_GO",
)
N_DEVELOPMENT = 4  # the first sets of each kind
MEASURES = {
    "Hamming loss": set_hamming_loss,
    "subset accuracy": subset_accuracy,
    "example F1": set_f1_score,
    "micro F1": lambda y, p: set_f1_score(y, p, average="micro"),
    "macro F1": lambda y, p: set_f1_score(y, p, average="macro"),
}
LABEL_SETS = {
    "threshold ½": "threshold",
    "nearest training set": "training_set",
    "mode": "mode",
    "cardinality": "cardinality",
    "expected F1": "expected_f1",
    "expected Jaccard": "expected_jaccard",
    "tuned, example F1": Threshold("example_f1"),
}
CLASSES = {
    "nearest closed set": Hierarchical(0.5),
    "threshold 0.3": Hierarchical(0.3),
    "hierarchical F1": Hierarchical(),
    "expected F1": "expected_f1",
    "expected Jaccard": "expected_jaccard",
    "nearest training set": "training_set",
    "mode": "mode",
}


def label_sets(name):
    """Return training inputs and outputs and test inputs and outputs."""
    folder = data_folder() / "multilabel"
    if name in ("emotions", "yeast"):
        parts = [read_multilabel_arff(folder / f"{name}.arff.gz", N_LABELS[name])]
    else:
        paths = [next(folder.glob(f"{name}-{part}*.arff.gz")) for part in ("train", "test")]
        parts = [read_multilabel_arff(path, N_LABELS[name]) for path in paths]
    arrays = [(part.data, np.ascontiguousarray(part.target)) for part in parts]
    if len(arrays) == 1:
        ((X, Y),) = arrays
        n_train = {"emotions": 391, "yeast": 1500}[name]
        arrays = [(X[:n_train], Y[:n_train]), (X[n_train:], Y[n_train:])]
    rng = np.random.default_rng(0)
    for i, size in enumerate((3000, 1500)):
        X, Y = arrays[i]
        if len(Y) > size:
            rows = np.sort(rng.choice(len(Y), size, replace=False))
            arrays[i] = X[rows], Y[rows]
    return *arrays[0], *arrays[1]


def decoded(model, decoders, X, Y, Z):
    """Yield names, predictions, and milliseconds for a row beside those for its weights."""
    model.predict_weights(Z[:1])
    start = time.perf_counter()
    model.weight_matrix(Z)
    of_weights = time.perf_counter() - start
    for title, decoder in decoders.items():
        if isinstance(decoder, Threshold):
            decoder = tune_decoder(model, X, Y, decoder)
        model.set_params(decoder=decoder)
        model.predict(Z[:1])  # what is kept for later predictions
        start = time.perf_counter()
        predicted = model.predict(Z)
        seconds = max(0.0, time.perf_counter() - start - of_weights)
        yield title, np.asarray(predicted) > 0, 1000.0 * seconds / Z.shape[0]


def mean_ranks(found):
    """Return the mean rank of each decoder, over measures of which all but the first are scores."""
    values = np.array(list(found.values()))
    values[:, 1:] *= -1.0
    return np.apply_along_axis(rankdata, 0, values.round(4)).mean(axis=1)


def measure_label_sets(names, n_trees):
    """Print the measures of every set and model, and the mean ranks of decoders."""
    ranks, rows = {}, []
    for name in names:
        X, Y, Z, T = label_sets(name)
        models = {
            "extra-trees, Hamming": OKExtraTrees(n_trees, kernel="hamming", random_state=0),
            "random forest, Hamming": OKRandomForest(n_trees, kernel="hamming", random_state=0),
            "extra-trees, Dice": OKExtraTrees(n_trees, kernel="dice", random_state=0),
        }
        for about, model in models.items():
            model.fit(X, Y)
            found = {}
            for title, chosen, ms in decoded(model, LABEL_SETS, X, Y, Z):
                found[title] = [score(T, chosen.astype(int)) for score in MEASURES.values()]
                if about == "extra-trees, Hamming":
                    rows.append([name, title, *(f"{v:.4f}" for v in found[title]), f"{ms:.2f}"])
            kind = "development" if name in list(N_LABELS)[:N_DEVELOPMENT] else "confirmation"
            ranks.setdefault((kind, about), []).append(mean_ranks(found))
    titles = list(LABEL_SETS)
    lines = [
        [kind, about, *(f"{rank:.2f}" for rank in np.mean(values, axis=0))]
        for (kind, about), values in sorted(
            ranks.items(), key=lambda item: item[0][0] != "development"
        )
    ]
    report("label sets: mean rank over five measures", ["sets", "model", *titles], lines)
    header = ["data", "decoder", *MEASURES, "ms a row"]
    report("label sets: extra-trees, Hamming kernel", header, rows)


def measure_hierarchies(names, n_trees):
    """Print the measures of every set, and the mean ranks of decoders."""
    ranks, rows = {}, []
    for name in names:
        X, Y, parents, split = hierarchical(name)
        test = split == "test"
        T = Y[test] > 0
        model = OKExtraTrees(
            n_trees, kernel=Hierarchy(parents), max_features="sqrt", min_samples_leaf=5
        ).set_params(random_state=0)
        model.fit(X[~test], Y[~test])
        weight = model.kernel_.weight_of_classes()
        is_large = Y.shape[1] > 1000
        decoders = {t: d for t, d in CLASSES.items() if not (is_large and d == "expected_f1")}
        found = {}
        for title, chosen, ms in decoded(model, decoders, X[~test], Y[~test], X[test]):
            both = ((chosen & T) @ weight).sum()
            found[title] = [
                ((chosen != T) @ weight).mean(),
                set_f1_score(T.astype(int), chosen.astype(int)),
                2.0 * both / ((chosen @ weight).sum() + (T @ weight).sum()),
                (chosen == T).all(axis=1).mean(),
            ]
            empty = 1.0 - chosen.any(axis=1).mean()
            rows.append([name, title, f"{empty:.2f}", *(f"{v:.4f}" for v in found[title])])
            rows[-1].append(f"{ms:.2f}")
        if is_large:
            continue
        kind = "development" if name in HIERARCHIES[:N_DEVELOPMENT] else "confirmation"
        ranks.setdefault(kind, []).append(mean_ranks(found))
    lines = [
        [kind, *(f"{r:.2f}" for r in np.mean(values, axis=0))] for kind, values in ranks.items()
    ]
    report("hierarchies: mean rank over four measures", ["sets", *CLASSES], lines)
    header = ["data", "decoder", "empty", "loss", "example F1", "hierarchical F1", "exact"]
    report("hierarchies: extra-trees, leaves of 5", [*header, "ms a row"], rows)


def main():
    """Print mean ranks and measures."""
    options = arguments(*N_LABELS, *HIERARCHIES)
    n_trees = max(2, int(50 * options.scale))
    sets = [name for name in options.data if name in N_LABELS]
    hierarchies = [name for name in options.data if name in HIERARCHIES]
    if sets:
        measure_label_sets(sets, n_trees)
    if hierarchies:
        measure_hierarchies(hierarchies, n_trees)


if __name__ == "__main__":
    main()
