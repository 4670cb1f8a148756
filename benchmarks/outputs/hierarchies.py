"""Functions of yeast genes (FunCat), published split: the pooled area under precision–recall.

One of six models of okforest is chosen by its area on the validation rows, fitted to the training
rows alone. All are then fitted to the training and validation rows and measured on the test rows;
only the chosen one is the result. Beside: a random forest of scikit-learn on all classes, with
missing values imputed by medians.
"""

from benchmarks.outputs.measure import arguments, report
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from okforest import OKBoost, OKExtraTrees, OKRandomForest
from okforest.datasets import fetch_hierarchical
from okforest.kernels import Hierarchy
from okforest.metrics import au_prc


def choices(parents, scale):
    """Return the models to choose from, by name."""
    kernel = Hierarchy(parents)
    n_trees, n_rounds = max(3, int(100 * scale)), max(3, int(200 * scale))
    forest = {"kernel": kernel, "max_features": None, "random_state": 0}
    boosting = {
        "kernel": kernel,
        "splitter": "random",
        "max_features": "sqrt",
        "max_splits": 30,
        "subsample": 0.7,
        "min_samples_leaf": 10,
        "random_state": 0,
    }
    return {
        "OKExtraTrees, leaves of 5": OKExtraTrees(n_trees, min_samples_leaf=5, **forest),
        "OKExtraTrees, leaves of 10": OKExtraTrees(n_trees, min_samples_leaf=10, **forest),
        "OKExtraTrees, leaves of 20": OKExtraTrees(n_trees, min_samples_leaf=20, **forest),
        "OKRandomForest, leaves of 10": OKRandomForest(n_trees, min_samples_leaf=10, **forest),
        "OKBoost, rate 0.05": OKBoost(n_rounds, learning_rate=0.05, **boosting),
        "OKBoost, rate 0.02": OKBoost(n_rounds, learning_rate=0.02, **boosting),
    }


def main():
    """Print a table."""
    options = arguments("cellcycle", "derisi")
    rows = []
    for name in options.data:
        data = fetch_hierarchical(name)
        X, Y = data.data, data.target
        train, valid, test = (data.split == part for part in ("train", "valid", "test"))
        known = ~test
        models = choices(data.parents, options.scale)
        on_valid = {
            title: au_prc(Y[valid], model.fit(X[train], Y[train]).predict_proba(X[valid]))
            for title, model in models.items()
        }
        chosen = max(on_valid, key=on_valid.get)
        scores = {
            title: model.fit(X[known], Y[known]).predict_proba(X[test])
            for title, model in models.items()
        }
        n_trees = max(3, int(100 * options.scale))
        peer = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            RandomForestRegressor(n_trees, max_features="sqrt", min_samples_leaf=5, random_state=0),
        )
        scores["scikit-learn forest"] = peer.fit(X[known], Y[known] * 1.0).predict(X[test])
        for title, score in scores.items():
            areas = [au_prc(Y[test], score, average=kind) for kind in ("pooled", "macro")]
            valid_area = f"{on_valid[title]:.4f}" if title in on_valid else ""
            mark = " (chosen)" if title == chosen else ""
            rows.append([name, title + mark, valid_area, *(f"{area:.4f}" for area in areas)])
    header = ["data", "method", "pooled, validation", "pooled, test", "macro, test"]
    report("AU(PRC)", header, rows)


if __name__ == "__main__":
    main()
