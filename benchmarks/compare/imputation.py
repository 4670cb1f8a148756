"""Missing values and categories handled by the trees, compared with imputation and one-hot coding.

On data sets with missing entries (original ones, and more at random up to a fifth of all) and with
categorical columns, each kind of tree is fitted to the table directly, and to the table with means
for missing numbers and indicators for categories. The score is the kernel R² in repeated 10-fold
cross-validation. Reads the folder named by OKFOREST_DATA; prints a Markdown table.
"""

import argparse

import numpy as np
import pandas as pd
import scipy.linalg as sla
from benchmarks.compare.protocol import print_progress
from benchmarks.data import gene_functions, label_ranks
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from okforest import OKExtraTrees, OKRandomForest, OKTree
from okforest._utils.report import Table
from okforest.datasets import fetch_promoters, load_tecator, load_yeast_ppi
from okforest.kernels import Dirac, Linear, Normalized, Precomputed
from okforest.metrics import kernel_r2_scorer

MISSING = 0.2
MODELS = {
    "tree": OKTree(min_samples_leaf=5, random_state=0),
    "random forest": OKRandomForest(random_state=0),
    "extra-trees": OKExtraTrees(random_state=0),
}


def yeast_ppi():
    """Expression and functional class of proteins → a normalised diffusion kernel."""
    proteins = load_yeast_ppi()
    groups = proteins.feature_groups
    columns = slice(groups["spellman"].start, groups["eisen"].stop)
    X = pd.DataFrame(proteins.data[:, columns].astype(float)).add_prefix("expression")
    known = proteins.mips_class != ""
    X["class"] = pd.Categorical(np.where(known, proteins.mips_class, None))
    links = proteins.graph.toarray()
    diffusion = sla.expm(links - np.diag(links.sum(axis=0)))  # exp(−βL) with β = 1
    return X, np.arange(len(X)), Normalized(Precomputed(diffusion))


def cellcycle():
    """Expression of genes → their functions in a hierarchy."""
    X, Y = gene_functions()
    return pd.DataFrame(X), Y, Linear()


def ranking(name: str):
    """Attributes → the ranks of labels."""
    X, Y = label_ranks(name)
    return pd.DataFrame(X), Y, Linear()


def tecator():
    """Absorbances of meat → moisture, fat and protein."""
    meat = load_tecator()
    return pd.DataFrame(meat.data), meat.target, Linear()


def promoters():
    """Sequences of 57 bases, each a category → promoter or not."""
    dna = fetch_promoters()
    return pd.DataFrame(dna.data).astype("category"), dna.target, Dirac()


DATA_SETS = {
    "yeast_ppi": yeast_ppi,
    "cellcycle": cellcycle,
    "stock": lambda: ranking("stock"),
    "vowel": lambda: ranking("vowel"),
    "tecator": tecator,
    "promoters": promoters,
}


def remove_entries(X: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Remove entries at random until a fifth is missing; return also the original fraction."""
    before = X.isna().to_numpy().mean()
    rng = np.random.default_rng(0)
    rate = max(0.0, (MISSING - before) / (1 - before))
    return X.mask(rng.uniform(size=X.shape) < rate), before


def with_imputation(model):
    """Return the model after imputation of means and one-hot coding of categories."""
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
    folds = RepeatedKFold(n_splits=10, n_repeats=options.repeats, random_state=0)
    rows = []
    for data_set, load in DATA_SETS.items():
        X, y, kernel = load()
        X, before = remove_entries(X)
        for name, model in MODELS.items():
            print_progress(f"{data_set}, {name}")
            model = clone(model).set_params(kernel=kernel)
            direct, imputed = Parallel(n_jobs=2)(
                delayed(cross_val_score)(m, X, y, cv=folds, scoring=kernel_r2_scorer)
                for m in (model, with_imputation(model))
            )
            gain = direct - imputed
            rows.append(
                [
                    data_set,
                    f"{X.shape[0]} × {X.shape[1]}",
                    f"{before:.0%} → {X.isna().to_numpy().mean():.0%}",
                    name,
                    f"{direct.mean():.4f}",
                    f"{imputed.mean():.4f}",
                    f"{gain.mean():+.4f} ± {gain.std() / len(gain) ** 0.5:.4f}",
                    f"{(gain > 0).mean():.0%}",
                ]
            )
    header = ["data", "rows × columns", "missing", "model", "direct", "imputed", "difference"]
    print("### Imputation\n")
    print(Table([*header, "folds won"], rows).markdown())


if __name__ == "__main__":
    main()
