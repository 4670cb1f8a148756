"""What a split search in few principal directions of the outputs costs, and what it saves.

Extra-trees of 100 trees, exact and with ``search_rank``, on the same training and test rows; the
seeds of the trees differ. The loss in H and that of the pre-image (for a network, the area under
the ROC curve of its links instead: larger is better) are means over seeds; beside them is the
difference to the exact search, with its standard deviation over seeds, and in the row of the exact
search the standard deviation of its losses. Reads the folder named by OKFOREST_DATA; prints a
Markdown table.
"""

import argparse
import gzip
import os
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.linalg as sla
from sklearn.metrics import roc_auc_score

from okforest import OKExtraTrees
from okforest.kernels import RBF, Laplacian, Linear, Precomputed
from okforest.metrics import kernel_loss, output_loss


def usps(folder: Path, n_each: int):
    """Upper halves of digits → lower halves, as in the ICML 2006 paper.

    Five folds; training on one, testing on the others.
    """
    with gzip.open(folder / "usps/zip.train.gz") as file:
        table = np.loadtxt(file)
    labels, images = table[:, 0], table[:, 1:]
    rows = np.array(
        [np.flatnonzero(labels == digit)[: 5 * n_each].reshape(5, n_each) for digit in range(10)]
    )
    folds = [(rows[:, f].ravel(), np.delete(rows, f, axis=1).ravel()) for f in range(5)]
    return images[:, :128], images[:, 128:], RBF(7.0711), folds


def spo(folder: Path):
    """Attributes of genes → rankings of 11 time points, as vectors of ranks."""
    table = pd.read_csv(folder / "label_ranking/spo.csv.gz", header=None)
    orders = [ranking.split(">") for ranking in table.iloc[:, -1]]
    Y = np.array([[order.index(label) for label in sorted(order)] for order in orders], float)
    return table.iloc[:, :-1].to_numpy(float), Y, RBF(), halves(len(Y))


def yeast(folder: Path):
    """Attributes of genes → sets of 14 labels, as vectors of zeros and ones."""
    with gzip.open(folder / "multilabel/yeast.arff.gz", "rt") as file:
        table = np.array([line.split(",") for line in file if re.match(r"[-\d.]", line)], float)
    return table[:, 14:], table[:, :14], Laplacian(), halves(len(table))


def cellcycle(folder: Path):
    """Expression of genes → their functions in a hierarchy of 499, deeper ones counting less."""
    with gzip.open(folder / "hmc/cellcycle_FUN.train.arff.gz", "rt") as file:
        rows = [line.strip().split(",") for line in file if re.match(r"[-\d.?]", line)]
    X = pd.DataFrame([row[:-1] for row in rows]).replace("?", np.nan).astype(float)
    paths = []
    for row in rows:
        parts = [label.split("/") for label in row[-1].split("@")]
        paths.append({"/".join(p[: i + 1]) for p in parts for i in range(len(p))})
    classes = sorted(set().union(*paths))
    Y = np.array([[(c in p) * 0.75 ** c.count("/") for c in classes] for p in paths])
    return X.to_numpy(), Y, Linear(), halves(len(Y))


def yeast_ppi(folder: Path):
    """Expression and localization of proteins → a diffusion kernel on their interactions."""
    names = pd.read_csv(folder / "yeast_ppi/nodes.csv.gz")["orf"]
    parts = ("expression_spellman", "expression_eisen", "localization")
    X = np.hstack(
        [
            pd.read_csv(folder / f"yeast_ppi/{part}.csv.gz", index_col=0).to_numpy(float)
            for part in parts
        ]
    )
    edges = pd.read_csv(folder / "yeast_ppi/edges.csv.gz")
    place = {name: i for i, name in enumerate(names)}
    a, b = (edges[column].map(place) for column in ("orf_a", "orf_b"))
    links = np.zeros((len(names), len(names)))
    links[a, b] = links[b, a] = 1.0
    diffusion = sla.expm(links - np.diag(links.sum(axis=0)))  # exp(−βL) with β = 1
    return X, links, Precomputed(diffusion), halves(len(X))


def halves(n: int):
    """Return five random halves for training, the other halves being for testing."""
    orders = [np.random.default_rng(f).permutation(n) for f in range(5)]
    return [(order[: n // 2], order[n // 2 :]) for order in orders]


def run(model, data) -> list[float]:
    """Return loss in H, loss of the pre-image or AUC, seconds to fit, rank and variance kept."""
    X, Y, kernel, folds = data
    results = []
    for train, test in folds:
        is_network = isinstance(kernel, Precomputed)
        y = np.arange(len(X)) if is_network else Y
        model.set_params(kernel=kernel)
        start = time.process_time()
        model.fit(X[train], y[train])
        seconds = time.process_time() - start
        if is_network:  # pairs of an unseen and a seen vertex
            predicted = model.predict_kernel(X[test], X[train])
            second = roc_auc_score(Y[np.ix_(test, train)].ravel(), predicted.ravel())
        else:
            second = output_loss(model.kernel_, y[test], model.predict(X[test]))
        loss = kernel_loss(model, X[test], y[test])
        results.append((loss, second, seconds, model.search_rank_, model.search_variance_))
    return np.mean(results, axis=0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", nargs="*", type=int, default=[32])
    options = parser.parse_args()
    folder = Path(os.environ["OKFOREST_DATA"])
    data_sets = {
        "USPS, N = 200": lambda folder: usps(folder, 20),
        "USPS, N = 800": lambda folder: usps(folder, 80),
        "spo": spo,
        "yeast": yeast,
        "cellcycle": cellcycle,
        "yeast_ppi": yeast_ppi,
    }
    print(
        "| data | search_rank | directions | variance kept | loss in H | difference | "
        "pre-image loss (or AUC) | difference | fit |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, load in data_sets.items():
        data = load(folder)
        exact = None
        for rank in (None, *options.ranks, "auto"):
            results = np.array(
                [
                    run(OKExtraTrees(search_rank=rank, random_state=seed), data)
                    for seed in range(options.seeds)
                ]
            )
            exact = results if exact is None else exact
            mean, change = results.mean(axis=0), results - exact
            shown = [
                f"± {results[:, column].std(ddof=1):.4f}"
                if rank is None
                else f"{change[:, column].mean():+.4f} ± {change[:, column].std(ddof=1):.4f}"
                for column in (0, 1)
            ]
            print(
                f"| {name} | {rank} | {mean[3]:.0f} | {mean[4]:.3f} | {mean[0]:.4f} | {shown[0]} | "
                f"{mean[1]:.4f} | {shown[1]} | {1e3 * mean[2]:.0f} ms |",
                flush=True,
            )


if __name__ == "__main__":
    main()
