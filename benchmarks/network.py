"""Network completion on yeast proteins, citations of papers (Cora), and drugs and targets.

Prints the tables of docs/results_networks.md in Markdown: cross-validation over vertices, with
means and standard deviations over folds. Reads the data from the folder named by OKFOREST_DATA.
Each part takes minutes; its results are in benchmarks/results/network_*.md.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKBagging, OKExtraTrees, OKNeighbors, OKRidge, OKTree
from okforest._utils.report import Table
from okforest.datasets import load_cora, load_drug_target, load_yeast_ppi
from okforest.kernels import RBF, Diffusion
from okforest.network import (
    BipartiteCompletion,
    Evaluation,
    InputSimilarity,
    NetworkCompletion,
    PairClassifier,
    compare_deletions,
    compare_groups,
    compare_links,
    cross_validate_bipartite,
    cross_validate_links,
    group_importances,
)
from okforest.network.links import DEFAULT

N_JOBS = int(os.environ.get("OKFOREST_NUM_THREADS", "2"))
KINDS = ("known-new", "new-new", "with-new")
KIND_SCORES = [
    f"{metric} {kind}" for metric in ("AUC", "AUPR") for kind in ("known–new", "new–new", "all")
]
GROUPS = ("Spellman", "Eisen", "localization", "all")
DRUG_SCORES = [
    f"{metric}, {kind}"
    for kind in ("new drugs", "new targets", "both new")
    for metric in ("AUC", "AUPR")
]
FOREST = {"n_jobs": N_JOBS, "random_state": 0}


def imputed(model):
    """Return a pipeline for a model that does not accept missing values."""
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), model)


def ridge(alpha="loo", **params):
    """Return kernel ridge regression without an intercept: unlike vertices have no links."""
    return OKRidge(alpha, fit_intercept=False, **params)


def trees(**params):
    """Return the default forest with some parameters changed."""
    return clone(DEFAULT).set_params(**FOREST | params)


def completion(**params):
    """Return the default model with some parameters of its forest changed."""
    return NetworkCompletion(trees(**params))


def report(*words: object) -> None:
    """Print the progress on the standard error, so that the output has the tables alone."""
    print(*words, file=sys.stderr, flush=True)


def print_table(title: str, header: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """Print a Markdown table with the names of its rows in the first column."""
    table = Table(["", *header], [[name, *cells] for name, cells in rows.items()])
    print(f"\n{title}\n\n{table.markdown()}", flush=True)


def area(result: Evaluation, kind: str, metric: str) -> str:
    """Return the mean and the standard deviation of a score over folds."""
    values = getattr(result.kinds[kind], metric)
    return f"{np.nanmean(values):.3f} ± {np.nanstd(values):.3f}"


def print_kinds(title: str, results: Mapping[str, Evaluation], reference: str) -> None:
    """Print the scores for each kind of pair, and the p-values of differences to a reference."""
    rows = {}
    for name, result in results.items():
        p = "" if name == reference else p_value(result, results[reference])
        scores = [area(result, kind, metric) for metric in ("auc", "aupr") for kind in KINDS]
        rows[name] = [*scores, p]
    print_table(title, [*KIND_SCORES, f"p (AUC all, against {reference})"], rows)


def p_value(result: Evaluation, reference: Evaluation) -> str:
    """Return the p-value of the difference in AUC."""
    p = compare_links(result, reference).p_value
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def yeast_plain() -> None:
    """Compare models in the simplest setting: imputation by means, exp(−L), scores w'Kw."""
    data = load_yeast_ppi()
    X = SimpleImputer(keep_empty_features=True).fit_transform(data.data)
    kernel = Diffusion(beta=1.0)
    scaled = make_pipeline(StandardScaler(), ridge())
    plain = {"vertex_kernel": kernel, "normalize": 0, "known": "predicted"}
    models = {
        "single tree": NetworkCompletion(OKTree(random_state=0), **plain),
        "extra-trees, K = √p": NetworkCompletion(OKExtraTrees(**FOREST), **plain),
        "cosine": InputSimilarity(),
        "kernel ridge, known vertices": NetworkCompletion(scaled, **plain | {"known": "links"}),
        "kernel ridge": NetworkCompletion(scaled, **plain),
    }
    rows: dict[str, list[str]] = {}
    for name, model in models.items():
        results = compare_groups(model, X, data.graph, data.feature_groups)
        rows[name] = [area(result, "with-new", "auc") for result in results.values()]
        report(name, rows[name])
    title = "yeast_ppi, simplest setting: AUC of all pairs with a new vertex, 10 folds"
    print_table(title, GROUPS, rows)


def yeast_models() -> dict:
    """Return the models to compare, by name."""
    forest = ExtraTreesClassifier(100, min_samples_leaf=3, n_jobs=N_JOBS, random_state=0)
    return {
        "extra-trees": completion(),
        "bagging": NetworkCompletion(OKBagging(100, min_samples_split=5, **FOREST)),
        "single tree": NetworkCompletion(OKTree(min_samples_split=5, random_state=0)),
        "kernel ridge": NetworkCompletion(imputed(ridge())),
        "nearest neighbours (k = 10)": NetworkCompletion(imputed(OKNeighbors(10))),
        "pairs, extra-trees": PairClassifier(
            make_pipeline(SimpleImputer(keep_empty_features=True), forest)
        ),
        "pairs, logistic": PairClassifier(),
        "cosine": InputSimilarity(),
    }


def yeast() -> None:
    """Compare all models, on all features and on each group of features."""
    data = load_yeast_ppi()
    results = {}
    for name, model in yeast_models().items():
        results[name] = compare_groups(model, data.data, data.graph, data.feature_groups)
        report(name, *(area(r, "with-new", "auc") for r in results[name].values()))
    print_yeast(results)
    shares = group_importances(completion().fit(data.data, data.graph), data.feature_groups)
    rows = {"importance": [f"{share:.0%}" for share in shares.values()]}
    print_table("yeast_ppi, importances of the groups", list(shares), rows)


def print_yeast(results: Mapping[str, Mapping[str, Evaluation]]) -> None:
    """Print the scores for each kind of pair, then for each group of features."""
    all_features = {name: groups["all"] for name, groups in results.items()}
    print_kinds("yeast_ppi, all features", all_features, "extra-trees")
    for metric in ("auc", "aupr"):
        rows = {
            name: [area(result, "with-new", metric) for result in groups.values()]
            for name, groups in results.items()
        }
        title = f"yeast_ppi, {metric.upper()} of all pairs with a new vertex"
        print_table(title, GROUPS, rows)


def choice_models() -> dict:
    """Return the default model and variants of it, by name."""
    forest = trees()
    raw = Diffusion(beta=0.5)
    return {
        "defaults": completion(),
        "kernel not normalised": NetworkCompletion(forest, raw),
        "scores are inner products": NetworkCompletion(forest, normalize=0),
        "scores are cosines": NetworkCompletion(forest, normalize=1),
        "neither normalised": NetworkCompletion(forest, raw, normalize=0),
        "β = 0.1": NetworkCompletion(forest, Diffusion(beta=0.1, normalize=True)),
        "β = 1": NetworkCompletion(forest, Diffusion(beta=1.0, normalize=True)),
        "β = 3": NetworkCompletion(forest, Diffusion(beta=3.0, normalize=True)),
        "min_samples_split = 2": completion(min_samples_split=2),
        "min_samples_split = 10": completion(min_samples_split=10),
        "max_features = √p": completion(max_features="sqrt"),
        "max_features = p": completion(max_features=None),
        "known: links": NetworkCompletion(forest, known="links"),
        "known: predicted": NetworkCompletion(forest, known="predicted"),
        "known: predicted; cosines": NetworkCompletion(forest, known="predicted", normalize=1),
        "average of trees' kernels": NetworkCompletion(forest, scheme="average"),
        "Frobenius rule": completion(criterion="frobenius"),
        "kernel ridge": NetworkCompletion(imputed(ridge())),
    }


def yeast_choices() -> None:
    """Measure the effect of each choice in the defaults."""
    data = load_yeast_ppi()
    results = {}
    for name, model in choice_models().items():
        results[name] = cross_validate_links(model, data.data, data.graph)
        report(name, area(results[name], "with-new", "auc"))
    title = "yeast_ppi, effect of the choices: all pairs with a new vertex"
    print_table(title, ["AUC", "AUPR"], {name: both(result) for name, result in results.items()})

    kept = ("defaults", "Frobenius rule", "average of trees' kernels")
    print_kinds("yeast_ppi, splitting rule and scheme", {k: results[k] for k in kept}, "defaults")

    cosines = NetworkCompletion(trees(), known="predicted", normalize=1)
    groups = compare_groups(cosines, data.data, data.graph, data.feature_groups)
    rows = {name: both(groups[name]) for name in data.feature_groups}
    print_table("yeast_ppi, known: predicted; cosines, by group", ["AUC", "AUPR"], rows)

    other = cross_validate_links(completion(), data.data, data.graph, random_state=12)
    print_table("yeast_ppi, other folds", ["AUC", "AUPR"], {"defaults": both(other)})


def both(result: Evaluation) -> list[str]:
    """Return the AUC and the AUPR of all pairs with a new vertex."""
    return [area(result, "with-new", metric) for metric in ("auc", "aupr")]


def yeast_deletion() -> None:
    """Delete training links at random."""
    data = load_yeast_ppi()
    header = ["AUC known–new", "AUC new–new", "AUC all", "AUC of deleted links"]
    rows = {}
    for share, result in compare_deletions(completion(), data.data, data.graph).items():
        deleted = ["", ""]
        if "known-known" in result.kinds:
            deleted = [area(result, "known-known", metric) for metric in ("auc", "aupr")]
        rows[f"{share:.0%}"] = [*(area(result, kind, "auc") for kind in KINDS), *deleted]
    print_table("yeast_ppi, links deleted", [*header, "AUPR of deleted links"], rows)


def cora() -> None:
    """Predict citations of papers from their words; 5 folds."""
    data = load_cora()
    models = {
        "extra-trees, K = √p": completion(max_features="sqrt"),
        "nearest neighbours (k = 10)": NetworkCompletion(OKNeighbors(10, metric="cosine")),
        "kernel ridge": NetworkCompletion(ridge(input_kernel="cosine")),
        "cosine of words": InputSimilarity(),
    }
    results = {}
    for name, model in models.items():
        results[name] = cross_validate_links(model, data.data, data.graph, cv=5)
        report(name, area(results[name], "with-new", "auc"))
    print_kinds("Cora", results, "extra-trees, K = √p")


def seconds() -> None:
    """Time a fold with 100 trees, on a machine without other work."""
    rows = {}
    for name, fetch, models in (
        (
            "yeast",
            load_yeast_ppi,
            {"": completion(), ", Frobenius rule": completion(criterion="frobenius")},
        ),
        ("Cora", load_cora, {", K = √p": completion(max_features="sqrt")}),
    ):
        data = fetch()
        cv = 10 if name == "yeast" else 5
        for label, model in models.items():
            load = os.getloadavg()[0]
            result = cross_validate_links(model, data.data, data.graph, cv=cv)
            rows[name + label] = [f"{result.seconds.min():.1f}", f"{load:.1f}"]
    header = ["seconds, best of the folds", "load at the start"]
    print_table("Fit and evaluation of a fold", header, rows)


def drug_models() -> dict:
    """Return the models of drugs and targets by name, and whether they use distances."""
    nearest = OKNeighbors(5, metric="precomputed", weights=_decaying)
    return {
        "extra-trees, one side": (BipartiteCompletion(trees(), smoothing=0.0), False),
        "extra-trees": (BipartiteCompletion(trees()), False),
        "extra-trees, Gaussian profiles": (
            BipartiteCompletion(trees(), profile_kernel=RBF(1.0)),
            False,
        ),
        "nearest neighbours": (BipartiteCompletion(nearest), True),
        "kernel ridge": (BipartiteCompletion(ridge(1.0, input_kernel="precomputed")), False),
    }


def drug_data(name: str) -> tuple:
    """Return the similarities of drugs and of targets, and their interactions."""
    data = load_drug_target(name)
    return data.drug_similarity, data.target_similarity, np.asarray(data.interactions.T)


def drug_target() -> None:
    """Predict interactions of new drugs, new targets and both, from similarities."""
    for name in ("nr", "gpcr"):
        S, T, Y = drug_data(name)
        rows = {}
        for label, (model, distances) in drug_models().items():
            sides = (1 - S, 1 - T) if distances else (S, T)
            rows[label] = repeated_scores(model, *sides, Y)
            report(name, label, rows[label])
        title = f"Drug–target, {name}: mean ± standard deviation over 5 repetitions of all folds"
        print_table(title, DRUG_SCORES, rows)


def repeated_scores(model: BipartiteCompletion, S, T, Y) -> list[str]:
    """Return the scores of 5 repetitions of cross-validation in each setting."""
    cells = []
    for setting, cv in {"new rows": 10, "new columns": 10, "both new": 5}.items():
        options = {"similarities": True, "cv": cv}
        scores = [
            cross_validate_bipartite(model, S, T, Y, setting, random_state=repeat, **options)
            for repeat in range(5)
        ]
        for metric in ("auc", "aupr"):
            means = [np.nanmean(getattr(score, metric)) for score in scores]
            cells.append(f"{np.mean(means):.3f} ± {np.std(means):.3f}")
    return cells


def drug_target_blocks() -> None:
    """Hold out a quarter of the drugs and of the targets together, as other studies do."""
    for name in ("nr", "gpcr"):
        S, T, Y = drug_data(name)
        rows = {}
        for label, (model, distances) in drug_models().items():
            sides = (1 - S, 1 - T) if distances else (S, T)
            rows[label] = [f"{value:.3f}" for value in block_scores(model, *sides, Y)]
            report(name, label, rows[label])
        print_table(f"Drug–target, {name}: 5 times 4 × 4 folds", DRUG_SCORES, rows)


def block_scores(model: BipartiteCompletion, S, T, Y) -> np.ndarray:
    """Return the mean scores of 5 times 4 × 4 folds, in the order of DRUG_SCORES."""
    found: dict[str, list[tuple[float, float]]] = {"drugs": [], "targets": [], "both": []}
    for repeat in range(5):
        folds = KFold(4, shuffle=True, random_state=repeat)
        for (known, new), (known_t, new_t) in product(folds.split(S), folds.split(T)):
            fitted = clone(model).fit(
                S[np.ix_(known, known)], T[np.ix_(known_t, known_t)], Y[np.ix_(known, known_t)]
            )
            drugs, targets = S[np.ix_(new, known)], T[np.ix_(new_t, known_t)]
            for kind, scores, truth in (
                ("drugs", fitted.predict_links(drugs), Y[np.ix_(new, known_t)]),
                ("targets", fitted.predict_links(None, targets), Y[np.ix_(known, new_t)]),
                ("both", fitted.predict_links(drugs, targets), Y[np.ix_(new, new_t)]),
            ):
                if truth.any():
                    flat = truth.ravel(), scores.ravel()
                    found[kind].append((roc_auc_score(*flat), average_precision_score(*flat)))
    return np.concatenate([np.mean(scores, axis=0) for scores in found.values()])


def _decaying(distances: np.ndarray) -> np.ndarray:
    """Return weights that are multiplied by 0.7 from one neighbour to the next."""
    return np.broadcast_to(0.7 ** np.arange(distances.shape[1]), distances.shape)


PARTS = {
    part.__name__: part
    for part in (
        yeast_plain,
        yeast,
        yeast_choices,
        yeast_deletion,
        cora,
        seconds,
        drug_target,
        drug_target_blocks,
    )
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; by default all")
    warnings.simplefilter("ignore", ConvergenceWarning)
    chosen = parser.parse_args().parts or list(PARTS)
    print(f"Printed by `python -m benchmarks.network {' '.join(chosen)}`.")
    for part in chosen:
        start = time.perf_counter()
        PARTS[part]()
        report(f"({part}: {time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
