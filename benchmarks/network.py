"""Completion of networks, in tables: yeast proteins, Cora's citations, drugs and targets.

Cross-validation over vertices, as in docs/networks.md, whose tables come from here. Scores are
means over folds, with their standard deviations. Reads the folder named by OKFOREST_DATA; prints
Markdown. Each part takes minutes.
"""

import argparse
import os
import time
import warnings
from collections.abc import Mapping
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
from okforest.datasets import fetch_cora, fetch_drug_target, fetch_yeast_ppi
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
from okforest.network._models import DEFAULT

N_JOBS = int(os.environ.get("OKFOREST_NUM_THREADS", "2"))
KINDS = ("seen-unseen", "unseen-unseen", "with-unseen")
FOREST = {"n_jobs": N_JOBS, "random_state": 0}


def filled(model):
    """Return a pipeline for a model that takes no missing values."""
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), model)


def trees(**params):
    """Return the default forest of networks with other parameters."""
    return clone(DEFAULT).set_params(**FOREST | params)


def completion(**params):
    """Return the default model with other parameters of its forest."""
    return NetworkCompletion(trees(**params))


def print_rows(header: str, rows: Mapping[str, list[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n| {header} |\n{'|---' * (header.count('|') + 1)}|")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def area(result: Evaluation, kind: str, metric: str) -> str:
    """Return the mean of a score over folds, and its standard deviation."""
    values = getattr(result.kinds[kind], metric)
    return f"{np.nanmean(values):.3f} ± {np.nanstd(values):.3f}"


def by_kind(results: Mapping[str, Evaluation], reference: str | None = None) -> None:
    """Print AUC and AUPR of each kind of pairs, and how sure a difference in AUC is."""
    header = "| AUC seen–unseen | unseen–unseen | all | AUPR seen–unseen | unseen–unseen | all"
    rows = {
        name: [area(result, kind, metric) for metric in ("auc", "aupr") for kind in KINDS]
        for name, result in results.items()
    }
    if reference is not None:
        header += f" | p (AUC, all, against {reference})"
        for name, result in results.items():
            same = name == reference
            p = 1.0 if same else compare_links(result, results[reference]).p_value
            rows[name].append("" if same else f"{p:.3f}" if p >= 0.001 else "< 0.001")
    print_rows(
        header + " | seconds a fold",
        {name: [*cells, f"{results[name].seconds.mean():.1f}"] for name, cells in rows.items()},
    )


def yeast_plain() -> None:
    """Column means for missing values, exp(−L), scores w'Kw: the plainest setting."""
    data = fetch_yeast_ppi()
    X = SimpleImputer(keep_empty_features=True).fit_transform(data.data)
    kernel = Diffusion(beta=1.0)
    plain = {"vertex_kernel": kernel, "normalize": 0, "seen": "predicted"}
    models = {
        "single tree": NetworkCompletion(OKTree(random_state=0), **plain),
        "extra-trees, K = √p": NetworkCompletion(OKExtraTrees(**FOREST), **plain),
        "cosine": InputSimilarity(),
        "kernel ridge": NetworkCompletion(
            make_pipeline(StandardScaler(), OKRidge("loo")), **plain | {"seen": "known"}
        ),
    }
    rows: dict[str, list[str]] = {}
    for name, model in models.items():
        results = compare_groups(model, X, data.graph, data.feature_groups)
        rows[name] = [area(result, "with-unseen", "auc") for result in results.values()]
        print(name, rows[name], flush=True)
    print("\nyeast_ppi, plain setting: AUC of all pairs with an unseen vertex, 10 folds")
    print_rows("| Spellman | Eisen | localization | all", rows)


def yeast_models() -> dict:
    """Return the models that are compared, by name."""
    forest = ExtraTreesClassifier(100, min_samples_leaf=3, n_jobs=N_JOBS, random_state=0)
    return {
        "extra-trees": completion(),
        "bagging": NetworkCompletion(OKBagging(100, min_samples_split=5, **FOREST)),
        "single tree": NetworkCompletion(OKTree(min_samples_split=5, random_state=0)),
        "kernel ridge": NetworkCompletion(filled(OKRidge("loo"))),
        "nearest neighbours (k = 10)": NetworkCompletion(filled(OKNeighbors(10))),
        "pairs, extra-trees": PairClassifier(
            make_pipeline(SimpleImputer(keep_empty_features=True), forest)
        ),
        "pairs, logistic": PairClassifier(),
        "cosine": InputSimilarity(),
    }


def yeast() -> None:
    """All models, on all features and on groups of them."""
    data = fetch_yeast_ppi()
    results = {}
    for name, model in yeast_models().items():
        results[name] = compare_groups(model, data.data, data.graph, data.feature_groups)
        print(name, *(area(r, "with-unseen", "auc") for r in results[name].values()), flush=True)
    print_yeast(results)
    shares = group_importances(completion().fit(data.data, data.graph), data.feature_groups)
    print("\nimportances:", {name: round(share, 3) for name, share in shares.items()})


def print_yeast(results: Mapping[str, Mapping[str, Evaluation]]) -> None:
    """Print kinds of pairs for all features, then groups of features."""
    print("\nyeast_ppi, all features")
    by_kind({name: groups["all"] for name, groups in results.items()}, "extra-trees")
    for metric in ("auc", "aupr"):
        print(f"\nyeast_ppi, {metric.upper()} of all pairs with an unseen vertex")
        print_rows(
            "| Spellman | Eisen | localization | all",
            {
                name: [area(result, "with-unseen", metric) for result in groups.values()]
                for name, groups in results.items()
            },
        )


def choice_models() -> dict:
    """Return the default model and others with one choice different, by name."""
    forest = trees()
    raw = Diffusion(beta=0.5)
    return {
        "defaults": completion(),
        "kernel not normalised": NetworkCompletion(forest, raw),
        "scores are inner products": NetworkCompletion(forest, normalize=0),
        "scores are cosines": NetworkCompletion(forest, normalize=1),
        "neither normalised": NetworkCompletion(forest, raw, normalize=0),
        "β = 0.1": NetworkCompletion(forest, Diffusion(beta=0.1, normalized=True)),
        "β = 1": NetworkCompletion(forest, Diffusion(beta=1.0, normalized=True)),
        "β = 3": NetworkCompletion(forest, Diffusion(beta=3.0, normalized=True)),
        "min_samples_split = 2": completion(min_samples_split=2),
        "min_samples_split = 10": completion(min_samples_split=10),
        "max_features = √p": completion(max_features="sqrt"),
        "max_features = p": completion(max_features=None),
        "seen vertices known": NetworkCompletion(forest, seen="known"),
        "seen vertices predicted": NetworkCompletion(forest, seen="predicted"),
        "seen vertices predicted, cosines": NetworkCompletion(
            forest, seen="predicted", normalize=1
        ),
        "average of trees' kernels": NetworkCompletion(forest, scheme="average"),
        "Frobenius rule": completion(criterion="frobenius"),
        "Frobenius rule, average of trees' kernels": NetworkCompletion(
            trees(criterion="frobenius"), scheme="average"
        ),
        "another seed": completion(random_state=1),
        "kernel ridge": NetworkCompletion(filled(OKRidge("loo"))),
        "kernel ridge, seen vertices predicted, cosines": NetworkCompletion(
            filled(OKRidge("loo")), seen="predicted", normalize=1
        ),
    }


def yeast_choices() -> None:
    """Tell what each choice in the defaults is worth."""
    data = fetch_yeast_ppi()
    results = {}
    for name, model in choice_models().items():
        results[name] = cross_validate_links(model, data.data, data.graph)
        print(name, area(results[name], "with-unseen", "auc"), flush=True)
    print("\nyeast_ppi, all features: what the choices are worth")
    by_kind(results, "defaults")


def yeast_deletion() -> None:
    """Training links deleted at random."""
    data = fetch_yeast_ppi()
    for seen in ("mean", "predicted"):
        model = NetworkCompletion(trees(), seen=seen)
        results = compare_deletions(model, data.data, data.graph)
        print(f"\nyeast_ppi, links deleted; seen vertices {seen}")
        print_rows(
            "deleted | AUC seen–unseen | unseen–unseen | all | AUC of deleted links | their AUPR",
            {
                f"{share:.0%}": [
                    *(area(result, kind, "auc") for kind in KINDS),
                    *(
                        area(result, "seen-seen", metric) if "seen-seen" in result.kinds else ""
                        for metric in ("auc", "aupr")
                    ),
                ]
                for share, result in results.items()
            },
        )


def cora() -> None:
    """Words of papers → citations, 5 folds."""
    data = fetch_cora()
    forest = trees(max_features="sqrt")
    models = {
        "extra-trees, K = √p": NetworkCompletion(forest),
        "nearest neighbours (k = 10)": NetworkCompletion(OKNeighbors(10, metric="cosine")),
        "kernel ridge, cosine": NetworkCompletion(OKRidge("loo", input_kernel="cosine")),
        "cosine": InputSimilarity(),
    }
    results = {}
    for name, model in models.items():
        results[name] = cross_validate_links(model, data.data, data.graph, cv=5)
        print(name, area(results[name], "with-unseen", "auc"), flush=True)
    print("\nCora")
    by_kind(results, "extra-trees, K = √p")


def drug_models() -> dict:
    """Return the models of drugs and targets by name, and whether they take distances."""
    nearest = OKNeighbors(5, metric="precomputed", weights=_decaying)
    return {
        "extra-trees, one side": (BipartiteCompletion(trees(), smoothing=0.0), False),
        "extra-trees": (BipartiteCompletion(trees()), False),
        "extra-trees, Gaussian profiles": (
            BipartiteCompletion(trees(), profile_kernel=RBF(1.0)),
            False,
        ),
        "nearest neighbours": (BipartiteCompletion(nearest), True),
        "kernel ridge": (BipartiteCompletion(OKRidge(1.0, input_kernel="precomputed")), False),
    }


def drug_target() -> None:
    """Similarities of drugs and of targets → interactions: new drugs, new targets, both new."""
    settings = {"new rows": 10, "new columns": 10, "both new": 5}
    for name in ("nr", "gpcr"):
        data = fetch_drug_target(name)
        rows = {}
        for label, (model, distances) in drug_models().items():
            S, T = data.drug_similarity, data.target_similarity
            if distances:
                S, T = 1 - S, 1 - T
            cells = []
            for setting, cv in settings.items():
                options = {"similarities": True, "cv": cv}
                scores = [
                    cross_validate_bipartite(
                        model, S, T, data.interactions.T, setting, random_state=repeat, **options
                    )
                    for repeat in range(5)
                ]
                for metric in ("auc", "aupr"):
                    means = [np.nanmean(getattr(score, metric)) for score in scores]
                    cells.append(f"{np.mean(means):.3f} ± {np.std(means):.3f}")
            rows[label] = cells
            print(name, label, cells, flush=True)
        print(f"\nDrug–target, {name}: means over 5 repetitions of all folds, sd over the 5")
        kinds = ("new drugs", "new targets", "both new")
        print_rows("".join(f"| AUC, {kind} | AUPR " for kind in kinds).rstrip(), rows)


def drug_target_blocks() -> None:
    """Hold out a quarter of drugs and of targets at once, in 4 × 4 folds, as other studies do."""
    for name in ("nr", "gpcr"):
        data = fetch_drug_target(name)
        Y = np.asarray(data.interactions.T)
        rows = {}
        for label, (model, distances) in drug_models().items():
            S, T = data.drug_similarity, data.target_similarity
            if distances:
                S, T = 1 - S, 1 - T
            pairs: dict[str, list[tuple[float, float]]] = {}
            for repeat in range(5):
                folds = KFold(4, shuffle=True, random_state=repeat)
                for (seen, new), (seen_t, new_t) in product(folds.split(S), folds.split(T)):
                    fitted = clone(model).fit(
                        S[np.ix_(seen, seen)], T[np.ix_(seen_t, seen_t)], Y[np.ix_(seen, seen_t)]
                    )
                    drugs, targets = S[np.ix_(new, seen)], T[np.ix_(new_t, seen_t)]
                    for kind, scores, truth in (
                        ("drugs", fitted.predict_links(drugs), Y[np.ix_(new, seen_t)]),
                        ("targets", fitted.predict_links(None, targets), Y[np.ix_(seen, new_t)]),
                        ("both", fitted.predict_links(drugs, targets), Y[np.ix_(new, new_t)]),
                    ):
                        if truth.any():
                            flat = truth.ravel(), scores.ravel()
                            found = roc_auc_score(*flat), average_precision_score(*flat)
                            pairs.setdefault(kind, []).append(found)
            means = [np.mean(pairs[kind], axis=0) for kind in ("drugs", "targets", "both")]
            rows[label] = [f"{value:.3f}" for value in np.concatenate(means)]
            print(name, label, rows[label], flush=True)
        print(f"\nDrug–target, {name}: 5 times 4 × 4 folds")
        kinds = ("new drugs", "new targets", "both new")
        print_rows("".join(f"| AUC, {kind} | AUPR " for kind in kinds).rstrip(), rows)


def _decaying(distances: np.ndarray) -> np.ndarray:
    """Return weights that fall by 0.7 from one neighbour to the next."""
    return np.broadcast_to(0.7 ** np.arange(distances.shape[1]), distances.shape)


PARTS = {
    part.__name__: part
    for part in (
        yeast_plain,
        yeast,
        yeast_choices,
        yeast_deletion,
        cora,
        drug_target,
        drug_target_blocks,
    )
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; by default all")
    warnings.simplefilter("ignore", ConvergenceWarning)
    chosen = parser.parse_args().parts or list(PARTS)
    for part in chosen:
        start = time.perf_counter()
        PARTS[part]()
        print(f"\n({part}: {time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
