"""Incomplete tables as they are, beside imputing means and coding categories one-hot.

On data sets with missing entries (those of the data, and more at random up to a fifth of all) and
with categorical columns, each kind of tree is fitted to the table as it is, and to the table with
means for missing numbers and indicators for categories. The score is the kernel R² over repeated
10-fold cross-validation. Reads the folder named by OKFOREST_DATA; prints a Markdown table.
"""

import argparse
import gzip
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.linalg as sla
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from okforest import OKExtraTrees, OKRandomForest, OKTree
from okforest.kernels import Dirac, Linear, Normalized, Precomputed

MISSING = 0.2
MODELS = {
    "tree": OKTree(min_samples_leaf=5, random_state=0),
    "random forest": OKRandomForest(random_state=0),
    "extra-trees": OKExtraTrees(random_state=0),
}


def yeast_ppi(folder: Path):
    """Proteins: expression and functional class → a diffusion kernel on their interactions.

    The kernel is normalised.
    """
    nodes = pd.read_csv(folder / "yeast_ppi/nodes.csv.gz")
    frames = [
        pd.read_csv(folder / f"yeast_ppi/expression_{name}.csv.gz", index_col=0).add_prefix(name)
        for name in ("spellman", "eisen")
    ]
    X = pd.concat([frame.reset_index(drop=True) for frame in frames], axis=1)
    X["class"] = nodes["mips_class"].astype("category")
    edges = pd.read_csv(folder / "yeast_ppi/edges.csv.gz")
    place = {name: i for i, name in enumerate(nodes["orf"])}
    a, b = (edges[column].map(place) for column in ("orf_a", "orf_b"))
    adjacency = np.zeros((len(nodes), len(nodes)))
    adjacency[a, b] = adjacency[b, a] = 1.0
    laplacian = np.diag(adjacency.sum(axis=0)) - adjacency
    return X, np.arange(len(nodes)), Normalized(Precomputed(sla.expm(-laplacian)))


def cellcycle(folder: Path):
    """Genes: expression → their functions in a hierarchy, deeper ones counting less."""
    with gzip.open(folder / "hmc/cellcycle_FUN.train.arff.gz", "rt") as file:
        rows = [line.strip().split(",") for line in file if re.match(r"[-\d.?]", line)]
    X = pd.DataFrame([row[:-1] for row in rows]).replace("?", np.nan).astype(float)
    paths = []
    for row in rows:
        parts = [label.split("/") for label in row[-1].split("@")]
        paths.append({"/".join(p[: i + 1]) for p in parts for i in range(len(p))})
    classes = sorted(set().union(*paths))
    Y = np.array([[(c in p) * 0.75 ** c.count("/") for c in classes] for p in paths])
    return X, Y, Linear()


def ranking(folder: Path, name: str):
    """Attributes → the ranks of some labels."""
    table = pd.read_csv(folder / f"label_ranking/{name}.csv.gz", header=None)
    orders = [ranking.split(">") for ranking in table.iloc[:, -1]]
    Y = np.array([[order.index(label) for label in sorted(order)] for order in orders], float)
    return table.iloc[:, :-1].astype(float), Y, Linear()


def stock(folder: Path):
    """See :func:`ranking`."""
    return ranking(folder, "stock")


def vowel(folder: Path):
    """See :func:`ranking`."""
    return ranking(folder, "vowel")


def tecator(folder: Path):
    """Absorbances of meat → moisture, fat and protein."""
    table = pd.read_csv(folder / "tecator/tecator.csv.gz")
    return table.iloc[:, 3:].astype(float), table.iloc[:, :3].to_numpy(float), Linear()


def promoters(folder: Path):
    """Sequences of 57 bases, each a category → promoter or not."""
    table = pd.read_csv(folder / "dna/promoters.csv.gz")
    return table.iloc[:, 2:].astype("category"), table["class"].to_numpy(), Dirac()


def with_gaps(X: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Remove entries at random until a fifth is missing; return also what was missing before."""
    before = X.isna().to_numpy().mean()
    rng = np.random.default_rng(0)
    rate = max(0.0, (MISSING - before) / (1 - before))
    return X.mask(rng.uniform(size=X.shape) < rate), before


def imputed(model):
    """Return the model behind means for missing numbers and indicators for categories."""
    fill = make_column_transformer(
        (SimpleImputer(keep_empty_features=True), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        sparse_threshold=0,
    )
    return make_pipeline(fill, model)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    folder = Path(os.environ["OKFOREST_DATA"])
    folds = RepeatedKFold(n_splits=10, n_repeats=options.repeats, random_state=0)
    print(
        "| data | rows × columns | missing | model | as it is | imputed | difference | folds won |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for load in (yeast_ppi, cellcycle, stock, vowel, tecator, promoters):
        X, y, kernel = load(folder)
        X, before = with_gaps(X)
        for name, model in MODELS.items():
            model = clone(model).set_params(kernel=kernel)
            ours, theirs = Parallel(n_jobs=2)(
                delayed(cross_val_score)(m, X, y, cv=folds) for m in (model, imputed(model))
            )
            gain = ours - theirs
            print(
                f"| {load.__name__} | {X.shape[0]} × {X.shape[1]} | {before:.0%} → "
                f"{X.isna().to_numpy().mean():.0%} | {name} | {ours.mean():.4f} | "
                f"{theirs.mean():.4f} | {gain.mean():+.4f} ± {gain.std() / len(gain) ** 0.5:.4f} | "
                f"{(gain > 0).mean():.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
