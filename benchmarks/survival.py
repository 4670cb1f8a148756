"""Survival analysis beside scikit-survival: concordance, Brier scores and time, cross-validated.

Prints the tables of results/survival.md in Markdown. Needs scikit-survival (GPL-3), which okforest
never imports: ``pip install scikit-survival``. The published tables use the folds of seeds 0, 1 and
2; defaults were chosen on the folds of other seeds. Each part takes minutes.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.machine import describe, fix_threads, version_of
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold

from okforest import OKBoost, OKEnsemble, OKExtraTrees, OKRandomForest
from okforest._utils.report import Table
from okforest.refit import CensoredForest
from okforest.survival import concordance_index, integrated_brier_score
from okforest.survival.estimates import censoring_survival, kaplan_meier

SIX = ("veteran", "whas500", "gbsg2", "aids", "breast_cancer", "flchain")
THREE = ("gbsg2", "veteran", "whas500")
MORE = ("lung", "rossi", "heart")  # from lifelines
N_FLCHAIN = 2000
TREES = 100


@cache
def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs as numbers, without missing values, and structured outputs."""
    if name in MORE:
        return _load_lifelines(name)
    from sksurv import datasets

    loader = {"veteran": "load_veterans_lung_cancer"}.get(name, f"load_{name}")
    frame, y = getattr(datasets, loader)()
    event, times = (np.array(y[field]) for field in y.dtype.names)
    if name == "flchain":
        rows = np.random.RandomState(0).permutation(len(frame))[:N_FLCHAIN]
        frame, event, times = frame.drop(columns="chapter").iloc[rows], event[rows], times[rows]
    return _numbers(frame), _outcome(event, times)


def _load_lifelines(name: str) -> tuple[np.ndarray, np.ndarray]:
    from lifelines import datasets

    if name == "lung":
        frame = datasets.load_lung()
        event, times = frame.pop("status") == 1, frame.pop("time")
    elif name == "rossi":
        frame = datasets.load_rossi()
        event, times = frame.pop("arrest") == 1, frame.pop("week")
    else:
        frame = datasets.load_stanford_heart_transplants()
        frame = frame.groupby("id").agg(
            {"stop": "max", "event": "max", "age": "first", "year": "first", "surgery": "first"}
        )
        event, times = frame.pop("event") == 1, frame.pop("stop")
    return _numbers(frame), _outcome(event.to_numpy(), times.to_numpy())


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    columns = {}
    for name, column in frame.items():
        if column.dtype.kind in "biuf":
            columns[name] = column.astype(float)
        else:
            category = column.astype("category")
            if category.cat.ordered or len(category.cat.categories) == 2:
                columns[name] = category.cat.codes.astype(float)
            else:
                columns.update(pd.get_dummies(category, prefix=name, dtype=float).items())
    table = pd.DataFrame(columns)
    return table.fillna(table.median()).to_numpy()


def _outcome(event: np.ndarray, times: np.ndarray) -> np.ndarray:
    y = np.empty(len(event), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, times
    return y


@dataclass
class Fitted:
    """Predictions of one model for one fold."""

    risk: np.ndarray
    functions: object = None


def okforest_model(make: Callable[[], object]) -> Callable[..., Fitted]:
    """Return a function that fits a model of okforest and predicts."""

    def run(X, y, X_test):
        model = make().fit(X, y)
        return Fitted(model.predict_risk(X_test), model.predict_survival_function(X_test))

    return run


def peer(make: Callable[[], object], functions: bool = True) -> Callable[..., Fitted]:
    """Return a function that fits a model of scikit-survival and predicts."""

    def run(X, y, X_test):
        model = make().fit(X, y)
        found = model.predict_survival_function(X_test) if functions else None
        return Fitted(model.predict(X_test), found)

    return run


def random_forest(**parameters):
    """Return the recommended forest for survival."""
    defaults = {"kernel": "survival", "min_samples_leaf": 10, "random_state": 0}
    return OKRandomForest(TREES, **defaults | parameters)


def ensemble(boosting: bool):
    """Return the mean of a random forest and extra-trees, and of boosting if wanted."""
    models = [
        OKRandomForest(TREES, min_samples_leaf=10, random_state=0),
        OKExtraTrees(TREES, min_samples_leaf=10, max_features=None, random_state=0),
    ]
    if boosting:
        parameters = {"max_splits": 3, "learning_rate": 0.05, "subsample": 0.5}
        models.append(OKBoost(100, min_samples_leaf=10, random_state=0, **parameters))
    return OKEnsemble(models, kernel="survival")


def curve_models() -> dict[str, Callable[..., Fitted]]:
    """Return models that predict survival functions."""
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest

    def forest(**parameters):
        return RandomSurvivalForest(TREES, max_features="sqrt", random_state=0, **parameters)

    return {
        "random survival forest, 3 a leaf (default)": peer(forest),
        "random survival forest, 10 a leaf": peer(lambda: forest(min_samples_leaf=10)),
        "gradient boosting (scikit-survival)": peer(
            lambda: GradientBoostingSurvivalAnalysis(random_state=0)
        ),
        "OKRandomForest": okforest_model(random_forest),
        "OKExtraTrees, all features": okforest_model(
            lambda: OKExtraTrees(
                TREES, kernel="survival", min_samples_leaf=10, max_features=None, random_state=0
            )
        ),
        "OKEnsemble of both": okforest_model(lambda: ensemble(boosting=False)),
        "OKEnsemble of both and OKBoost": okforest_model(lambda: ensemble(boosting=True)),
    }


def refit_models() -> dict[str, Callable[..., Fitted]]:
    """Return censored refits, what they are compared with, and peers."""
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    def refit(**parameters):
        return okforest_model(lambda: CensoredForest(**parameters))

    def without_refit(structure):
        return okforest_model(lambda: CensoredForest(structure=structure, leaf_penalty=1e12))

    def inverse_probability(X, y, X_test):
        G = censoring_survival(y["event"], y["time"])(y["time"])
        weight = np.where(y["event"], 1.0 / np.maximum(G, 1e-2), 0.0)
        rank = 1.0 - kaplan_meier(y["event"], y["time"])(y["time"])
        forest = OKExtraTrees(TREES, min_samples_leaf=15, max_features="sqrt", random_state=0)
        return Fitted(-forest.fit(X, rank, weight).predict(X_test))

    def scaled(X, y, X_test):
        mean, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-9)
        model = CoxPHSurvivalAnalysis(alpha=1e-2).fit((X - mean) / spread, y)
        return Fitted(model.predict((X_test - mean) / spread))

    return {
        "random survival forest": peer(
            lambda: RandomSurvivalForest(TREES, max_features="sqrt", random_state=0), False
        ),
        "gradient boosting (scikit-survival)": peer(
            lambda: GradientBoostingSurvivalAnalysis(random_state=0), False
        ),
        "Cox regression": scaled,
        "extra-trees of exact cases": without_refit("exact"),
        "the same, weighted by the inverse probability of censoring": inverse_probability,
        "extra-trees, censored taken as exact": without_refit("all"),
        "extra-trees, censored imputed by Kaplan–Meier": without_refit("km"),
        "CensoredForest": refit(),
        "CensoredForest, censored_penalty=0": refit(censored_penalty=0.0),
        "CensoredForest, adjust='outputs'": refit(adjust="outputs"),
        "CensoredForest, structure='km'": refit(structure="km"),
        "OKRandomForest, kernel='survival'": okforest_model(random_forest),
    }


def cross_validate(models, names, seeds, n_splits=5) -> pd.DataFrame:
    """Return one row per model, data set and fold."""
    rows = []
    for name in names:
        X, y = load(name)
        for seed in seeds:
            folds = KFold(n_splits, shuffle=True, random_state=seed)
            for fold, (train, test) in enumerate(folds.split(X)):
                for label, run in models.items():
                    start = time.process_time()
                    found = run(X[train], y[train], X[test])
                    seconds = time.process_time() - start
                    rows.append(
                        {
                            "model": label,
                            "data": name,
                            "fold": f"{seed}.{fold}",
                            "C": concordance_index(y[test], found.risk),
                            "IBS": _brier(y[train], y[test], found.functions),
                            "seconds": seconds,
                        }
                    )
    return pd.DataFrame(rows)


def _brier(train: np.ndarray, test: np.ndarray, functions: object) -> float:
    """Return the integrated Brier score at event times, up to the 90 % quantile of times."""
    if functions is None:
        return np.nan
    last = min(np.quantile(test["time"], 0.9), np.sort(train["time"])[-2])
    times = np.unique(test["time"][test["event"]])
    times = times[(times > test["time"].min()) & (times < last)]
    values = np.array([function(np.clip(times, *_domain(function))) for function in functions])
    return integrated_brier_score(train, test, values, times)


def _domain(function: object) -> tuple[float, float]:
    """Return the times at which a function of either library can be evaluated."""
    return getattr(function, "domain", (0.0, np.inf))


def summary(results: pd.DataFrame, names, reference: str, scores=("C", "IBS")) -> str:
    """Return means by data set, the mean over data sets, and the difference to a reference."""
    rows = []
    seconds = results.groupby("model")["seconds"].mean()
    wide = {score: results.pivot_table(score, ["data", "fold"], "model") for score in scores}
    for label in results["model"].unique():
        cells = []
        for score in scores:
            means = wide[score].groupby("data")[label].mean()
            cells += [f"{means[name]:.4f}" for name in names] if len(scores) == 1 else []
            cells.append("" if np.isnan(means.mean()) else f"{means.mean():.4f}")
            difference = wide[score][label] - wide[score][reference]
            by_data = difference.groupby("data").mean()
            error = by_data.std() / np.sqrt(len(by_data))
            shown = f"{by_data.mean():+.4f} ± {error:.4f}"
            cells.append("" if np.isnan(by_data.mean()) or label == reference else shown)
        cells.append(f"{seconds[reference] / seconds[label]:.1f}")
        rows.append([label, *cells])
    by_set = list(names) if len(scores) == 1 else []
    header = [""]
    for score in scores:
        header += [*by_set, f"mean {score}", "difference"]
    return Table([*header, "times as fast"], rows).markdown()


def large() -> None:
    """Compare splits searched in a few directions of the curves, on 8,000 synthetic cases."""
    X, target = make_friedman1(10_000, random_state=0)
    rng = np.random.default_rng(0)
    log_time = target / 5 + rng.normal(0.0, 0.5, size=10_000)
    limit = rng.normal(log_time.mean() + 0.6, 1.0, size=10_000)
    y = _outcome(log_time <= limit, np.exp(np.minimum(log_time, limit)))
    rows = []
    for rank in (None, 16, 4):
        start = time.process_time()
        forest = random_forest(search_rank=rank).fit(X[:8000], y[:8000])
        seconds = time.process_time() - start
        risk = forest.predict_risk(X[8000:])
        functions = forest.predict_survival_function(X[8000:])
        scores = (
            concordance_index(y[8000:], risk),
            integrated_brier_score(y[:8000], y[8000:], functions),
        )
        rows.append([rank, *(f"{score:.4f}" for score in scores), f"{seconds:.2f} s"])
    table = Table(["search_rank", "C", "IBS", "growing"], rows)
    print(f"\n### 8,000 synthetic cases\n\n{table.markdown()}", flush=True)


def draw_gbsg2() -> None:
    """Draw the figure of docs/survival.md: predicted functions, and their calibration."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from okforest.survival import plot_calibration, plot_survival

    X, y = load("gbsg2")
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = rows[:400], rows[400:]
    forest = random_forest().fit(X[train], y[train])
    by_risk = test[np.argsort(forest.predict_risk(X[test]))]
    shown = by_risk[[20, len(test) // 2, -20]]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    labels = ["low risk", "medium risk", "high risk"]
    plot_survival(forest, X[shown], y[shown], labels=labels, ax=left)
    left.set(xlabel="days")
    plot_calibration(forest, X[test], y[test], time=1500, ax=right)
    path = Path(__file__).parent.parent / "docs" / "images" / "survival_gbsg2.png"
    figure.savefig(path, dpi=90, metadata={"Software": None})
    print(path)


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["curves", "more", "refit", "large", "figure"], nargs="+")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--data", nargs="+")
    arguments = parser.parse_args()
    fix_threads()
    warnings.simplefilter("ignore")
    versions = {name: version_of(name) for name in ("okforest", "scikit-survival", "scikit-learn")}
    print(", ".join(f"{k} {v}" for k, v in versions.items()), describe()["CPU"], sep="; ")
    for part in arguments.part:
        if part in ("large", "figure"):
            large() if part == "large" else draw_gbsg2()
            continue
        names = arguments.data or {"curves": SIX, "more": MORE, "refit": THREE}[part]
        if part == "refit":
            results = cross_validate(refit_models(), names, arguments.seed)
            table = summary(results, names, "random survival forest", ["C"])
            print(f"\n### Refits of {', '.join(names)}\n\n{table}", flush=True)
            continue
        results = cross_validate(curve_models(), names, arguments.seed)
        first = results["model"].iloc[0]
        title = f"Survival functions of {', '.join(names)}"
        print(f"\n### {title}\n\n{summary(results, names, first)}", flush=True)
        for score in ("C", "IBS"):
            table = results.pivot_table(score, "model", "data", sort=False)[list(names)]
            rows = [[label, *(f"{v:.4f}" for v in row)] for label, row in table.iterrows()]
            print(
                f"\n{score} of each data set\n\n{Table(['', *names], rows).markdown()}", flush=True
            )


if __name__ == "__main__":
    main()
