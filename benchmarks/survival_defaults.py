"""The defaults of survival forests: the size of leaves, and the rows of a CensoredForest's trees.

Prints the tables of results/survival_defaults.md in Markdown. Sixteen data sets with their
published folds are read from the folder ``survival`` of OKFOREST_DATA: eight to choose on and eight
to confirm on. More sets to confirm on come from SurvSet (GPL-3), which okforest never imports:
``pip install SurvSet``. Each part takes about ten minutes.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.machine import describe, fix_threads
from benchmarks.survival import _brier

from okforest import OKExtraTrees, OKRandomForest
from okforest._utils.report import Table
from okforest.refit import CensoredForest
from okforest.survival import concordance_index

# Published folds, with the columns that hold categories.
DEVELOPMENT = {
    "aids.id": "drug gender prevOI AZT",
    "bladder0": "Center",
    "CarpenterFdaData": "",
    "channing": "",
    "cost": "sex hypTen ihd prevStroke othDisease alcohol diabetes smoke atrialFib hemor",
    "e1684": "",
    "grace": "",
    "kidtran": "",
}
CONFIRMATION = {
    "lung": "inst sex",
    "metabric": "",
    "mgus": "sex",
    "rdata": "year",
    "tumor": "charlson_score",
    "veteran": "trt celltype prior",
    "flchain": "sex flc.grp mgus",
    "wa_churn": "",
}
SURVSET = (
    *("prostate", "LeukSurv", "Melanoma", "pharmacoSmoking", "zinc", "actg", "vlbw", "whas500"),
    *("uis", "follic", "retinopathy", "Pbc3", "nwtco", "smarto", "Framingham", "GBSG2", "pbc"),
    *("stagec", "Bergamaschi", "hepatoCellular"),
)
LEAVES = (1, 3, 5, 10, 15, 20)
STRUCTURES = ("exact", "km", "all")
TREES = 50
MOST_ROWS = 2000
Fold = tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]


def published(name: str, categories: str, repeats: int) -> Iterator[Fold]:
    """Yield training and test parts of the published folds."""
    folder = Path(os.environ["OKFOREST_DATA"]) / "survival"
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    folds = pd.read_csv(folder / f"{name}.folds.csv.gz").iloc[:, :repeats]
    event, times = frame.pop("status") == 1, frame.pop("time")
    rows = sampled_rows(len(frame))
    X, y = with_categories(frame.iloc[rows], categories.split()), outcome(event, times)[rows]
    for fold in folds.iloc[rows].to_numpy().T:
        for k in (1, 2, 3):
            yield X[fold != k], y[fold != k], X[fold == k], y[fold == k]


def from_survset(name: str, repeats: int) -> Iterator[Fold]:
    """Yield training and test parts of three random folds."""
    from SurvSet.data import SurvLoader

    frame = SurvLoader().load_dataset(ds_name=name)["df"]
    event, times = frame.pop("event") == 1, frame.pop("time")
    rows = sampled_rows(len(frame))
    factors = [column for column in frame if column.startswith("fac_")]
    X = with_categories(frame.drop(columns="pid").iloc[rows], factors)
    y = outcome(event, times)[rows]
    for seed in range(repeats):
        fold = np.random.default_rng(seed).permutation(len(y)) % 3
        for k in range(3):
            yield X[fold != k], y[fold != k], X[fold == k], y[fold == k]


def sampled_rows(n: int) -> np.ndarray:
    """Return at most 2,000 of n rows."""
    return np.random.default_rng(0).permutation(n)[:MOST_ROWS]


def with_categories(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return a frame whose columns of text, and those named, hold categories."""
    frame = frame.reset_index(drop=True)
    for column in frame:
        if column in names or not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype(str).astype("category")
    return frame


def outcome(event: pd.Series, times: pd.Series) -> np.ndarray:
    """Return structured outputs."""
    y = np.empty(len(event), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, times
    return y


def data_sets(repeats: int) -> Iterator[tuple[str, str, Iterator[Fold]]]:
    """Yield the part, the name and the folds of every set."""
    for part, sets in (("development", DEVELOPMENT), ("confirmation", CONFIRMATION)):
        for name, categories in sets.items():
            yield part, name, published(name, categories, repeats)
    for name in SURVSET:
        yield "SurvSet", name, from_survset(name, repeats)


def leaves(repeats: int) -> None:
    """Compare sizes of leaves, for random forests and extra-trees."""
    found = []
    for part, name, folds in data_sets(repeats):
        for fold, (X, y, X_test, y_test) in enumerate(folds):
            for model in (OKRandomForest, OKExtraTrees):
                for leaf in LEAVES:
                    forest = model(
                        TREES, kernel="survival", min_samples_leaf=leaf, random_state=fold
                    ).fit(X, y)
                    C = concordance_index(y_test, forest.predict_risk(X_test))
                    IBS = _brier(y, y_test, forest.predict_survival_function(X_test))
                    found.append((part, name, fold, model.__name__, leaf, C, IBS))
    columns = ["part", "data", "fold", "model", "leaf", "C", "IBS"]
    results = pd.DataFrame(found, columns=columns)
    for score in ("C", "IBS"):
        rows = []
        for (model, part), scores in results.groupby(["model", "part"], sort=False):
            means = scores.pivot_table(score, "data", "leaf")
            cells = [paired(means[leaf] - means[1]) for leaf in LEAVES[1:]]
            rows.append([model, f"{part}, {len(means)} sets", f"{means[1].mean():.4f}", *cells])
        header = ["", "", "leaf 1", *(f"leaf {leaf}" for leaf in LEAVES[1:])]
        title = f"{score}: difference to fully grown trees"
        print(f"\n### {title}\n\n{Table(header, rows).markdown()}", flush=True)


def structures(repeats: int) -> None:
    """Compare the rows that a CensoredForest grows its trees on."""
    found = []
    for part, name, folds in data_sets(repeats):
        for fold, (X, y, X_test, y_test) in enumerate(folds):
            for structure in STRUCTURES:
                try:
                    model = CensoredForest(structure=structure).fit(X, y)
                    C = model.score(X_test, y_test)
                except ValueError:  # fewer than two events
                    C = 0.5
                found.append((part, name, fold, y["event"].mean(), structure, C))
    results = pd.DataFrame(found, columns=["part", "data", "fold", "events", "structure", "C"])
    events = results.groupby("data")["events"].mean()
    means = results.pivot_table("C", ["part", "data"], "structure", sort=False)
    means["events"] = events.reindex(means.index.get_level_values("data")).to_numpy()
    rows = []
    for (part, name), row in means.sort_values("events").iterrows():
        scores = [f"{row[structure]:.4f}" for structure in STRUCTURES]
        rows.append([name, part, f"{row['events']:.0%}", *scores])
    table = Table(["", "", "events", *STRUCTURES], rows)
    print(f"\n### C of CensoredForest\n\n{table.markdown()}", flush=True)
    rows = []
    for part in (["development"], ["confirmation", "SurvSet"]):
        chosen = means[means.index.get_level_values("part").isin(part)]
        for low, high in ((0.0, 0.4), (0.4, 1.0)):
            group = chosen[(chosen["events"] >= low) & (chosen["events"] < high)]
            cells = [paired(group[structure] - group["exact"]) for structure in STRUCTURES[1:]]
            better = int((group["km"] > group["exact"]).sum())
            label = f"events from {low:.0%} to {high:.0%}"
            wins = f"{better} of {len(group)}"
            rows.append([" and ".join(part), label, len(group), *cells, wins])
    header = ["", "", "sets", "km − exact", "all − exact", "km better in"]
    print(f"\n### Difference in C\n\n{Table(header, rows).markdown()}", flush=True)


def paired(differences: pd.Series) -> str:
    """Return the mean over data sets and its standard error."""
    error = differences.std() / np.sqrt(len(differences))
    return f"{differences.mean():+.4f} ± {error:.4f}"


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["leaves", "structures"], nargs="+")
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    fix_threads()
    warnings.simplefilter("ignore")
    print(describe()["CPU"])
    for part in arguments.part:
        {"leaves": leaves, "structures": structures}[part](arguments.repeats)


if __name__ == "__main__":
    main()
