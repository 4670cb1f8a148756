"""Classes in hierarchies, published splits: the pooled area under precision–recall.

One of nine models of okforest is chosen by its area on the validation rows, fitted to the training
rows alone. All are then fitted to the training and validation rows and measured on the test rows;
only the chosen one is the result. Beside: random forests of scikit-learn on all classes, with
missing values imputed by medians. Functions of yeast genes (FunCat), words of e-mails, and features
of images of diatoms; a third of the rows of the last two is for validation.
"""

from benchmarks.outputs.measure import arguments, hierarchical, report
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from okforest import OKBoost, OKExtraTrees, OKRandomForest
from okforest.kernels import Hierarchy
from okforest.metrics import au_prc


def choices(parents, scale):
    """Return the models to choose from, by name."""
    kernel = Hierarchy(parents)
    n_trees, n_rounds = max(3, int(100 * scale)), max(3, int(200 * scale))
    boosting = {
        "kernel": kernel,
        "splitter": "random",
        "max_features": "sqrt",
        "max_splits": 30,
        "subsample": 0.7,
        "min_samples_leaf": 10,
        "random_state": 0,
    }
    models = {}
    for title, max_features in (("√p", "sqrt"), ("all", None)):
        for leaf in (1, 5, 20):
            models[f"OKExtraTrees, {title} features, leaves of {leaf}"] = OKExtraTrees(
                n_trees,
                kernel=kernel,
                max_features=max_features,
                min_samples_leaf=leaf,
                random_state=0,
            )
    models["OKRandomForest, √p features, leaves of 5"] = OKRandomForest(
        n_trees, kernel=kernel, max_features="sqrt", min_samples_leaf=5, random_state=0
    )
    for rate in (0.05, 0.02):
        models[f"OKBoost, rate {rate}"] = OKBoost(n_rounds, learning_rate=rate, **boosting)
    return models


def peers(scale):
    """Return forests of scikit-learn, by name."""
    return {
        f"scikit-learn forest, leaves of {leaf}": make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            RandomForestRegressor(
                max(3, int(100 * scale)),
                max_features="sqrt",
                min_samples_leaf=leaf,
                random_state=0,
            ),
        )
        for leaf in (1, 5)
    }


def main():
    """Print a table for each data set."""
    options = arguments("cellcycle_FUN", "derisi_FUN", "Enron_corr", "Diatoms")
    for name in options.data:
        X, Y, parents, split = hierarchical(name)
        train, valid, test = (split == part for part in ("train", "valid", "test"))
        models = choices(parents, options.scale)
        on_valid = {
            title: au_prc(Y[valid], model.fit(X[train], Y[train]).predict_proba(X[valid]))
            for title, model in models.items()
        }
        chosen = max(on_valid, key=on_valid.get)
        scores = {
            title: model.fit(X[~test], Y[~test]).predict_proba(X[test])
            for title, model in models.items()
        }
        for title, model in peers(options.scale).items():
            scores[title] = model.fit(X[~test], Y[~test] * 1.0).predict(X[test])
        rows = []
        for title, score in scores.items():
            areas = [au_prc(Y[test], score, average=kind) for kind in ("pooled", "macro")]
            valid_area = f"{on_valid[title]:.4f}" if title in on_valid else ""
            mark = " (chosen)" if title == chosen else ""
            rows.append([title + mark, valid_area, *(f"{area:.4f}" for area in areas)])
        header = ["method", "pooled, validation", "pooled, test", "macro, test"]
        report(f"AU(PRC), {name}", header, rows)


if __name__ == "__main__":
    main()
