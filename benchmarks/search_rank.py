"""A split search in few principal directions of the outputs: cost and accuracy.

Fit extra-trees of 100 trees, exact and with ``search_rank``, on the same training and test rows,
with several seeds. The table has means over seeds of the loss in feature space and of the pre-image
loss (for a network, the area under the ROC curve of its links instead, where larger is better). The
differences are to the exact search, with their standard deviation over seeds; the rows of the exact
search have the standard deviation of the losses. Data sets of more than 2,000 training rows, where
"auto" leaves the exact search, come with ``--many``: one split, 1,500 test rows. Reads the folder
named by OKFOREST_DATA; prints a Markdown table.
"""

import argparse
import time

import numpy as np
import scipy.linalg as sla
from benchmarks.compare.protocol import print_progress
from benchmarks.data import gene_functions, halves, label_ranks
from sklearn.metrics import roc_auc_score

from okforest import OKExtraTrees
from okforest._utils.report import Table
from okforest.datasets import fetch_usps, load_multilabel, load_ocr_letters, load_yeast_ppi
from okforest.kernels import RBF, Laplacian, Linear, Mallows, Precomputed
from okforest.metrics import kernel_loss, output_loss

HEADER = [
    "data",
    "search_rank",
    "directions",
    "variance kept",
    "loss in H",
    "difference",
    "pre-image loss (or AUC)",
    "difference",
    "fit",
]


def usps(images_per_fold: int):
    """Upper halves of digits → lower halves: five folds, training on one, testing on the others."""
    digits = fetch_usps()
    train = digits.split == "train"
    images, labels = digits.data[train], digits.target[train]
    rows = np.array(
        [
            np.flatnonzero(labels == digit)[: 5 * images_per_fold].reshape(5, images_per_fold)
            for digit in range(10)
        ]
    )
    folds = [(rows[:, f].ravel(), np.delete(rows, f, axis=1).ravel()) for f in range(5)]
    return images[:, :128], images[:, 128:], RBF(7.0711), folds


def spo():
    """Attributes of genes → rankings of 11 time points, as vectors of ranks."""
    X, Y = label_ranks("spo")
    return X, Y, RBF(), random_halves(len(Y))


def yeast():
    """Attributes of genes → sets of 14 labels, as binary vectors."""
    genes = load_multilabel("yeast")
    return genes.data, genes.target.astype(float), Laplacian(), random_halves(len(genes.data))


def cellcycle():
    """Expression of genes → their functions in a hierarchy."""
    X, Y = gene_functions()
    return X, Y, Linear(), random_halves(len(Y))


def yeast_ppi():
    """Expression and localization of proteins → a diffusion kernel on their interactions."""
    proteins = load_yeast_ppi()
    links = proteins.graph.toarray()
    diffusion = sla.expm(links - np.diag(links.sum(axis=0)))  # exp(−βL) with β = 1
    X = proteins.data.astype(float)
    return X, links, Precomputed(diffusion), random_halves(len(X))


def one_split(X, Y, kernel, n):
    """Return a data set with n training and at most 1,500 test rows, in random order."""
    order = np.random.default_rng(0).permutation(X.shape[0])
    return X, Y, kernel, [(order[:n], order[n : n + 1500])]


def letters():
    """Upper halves of handwritten letters → lower halves."""
    pixels = load_ocr_letters().data.astype(float)
    return pixels[:, :64], pixels[:, 64:]


def many_rankings(name, kernel):
    """Attributes of genes → rankings of time points, with ranks from 1 for Mallows."""
    X, Y = label_ranks(name)
    return one_split(X, Y + 1.0, kernel, 2100)


def bibtex():
    """Words of references → sets of 159 tags, as binary vectors."""
    entries = load_multilabel("bibtex")
    return one_split(entries.data, entries.target.astype(float), RBF(), 4880)


MANY = {
    "USPS, RBF, N = 4,000": lambda: one_split(*halves(6000), RBF(), 4000),
    "USPS, Laplacian, N = 2,500": lambda: one_split(*halves(4000), Laplacian(), 2500),
    "letters, RBF, N = 5,000": lambda: one_split(*letters(), RBF(), 5000),
    "letters, RBF(4), N = 5,000": lambda: one_split(*letters(), RBF(4.0), 5000),
    "spo, RBF, N = 2,100": lambda: many_rankings("spo", RBF()),
    "spo, Mallows, N = 2,100": lambda: many_rankings("spo", Mallows()),
    "heat, RBF, N = 2,100": lambda: many_rankings("heat", RBF()),
    "bibtex, RBF, N = 4,880": bibtex,
}
DATA_SETS = {
    "USPS, N = 200": lambda: usps(20),
    "USPS, N = 800": lambda: usps(80),
    "spo": spo,
    "yeast": yeast,
    "cellcycle": cellcycle,
    "yeast_ppi": yeast_ppi,
}


def random_halves(n: int):
    """Return five random splits into a training and a test half."""
    orders = [np.random.default_rng(f).permutation(n) for f in range(5)]
    return [(order[: n // 2], order[n // 2 :]) for order in orders]


def evaluate(model, data) -> np.ndarray:
    """Return loss in H, pre-image loss or AUC, seconds to fit, rank and variance kept."""
    X, Y, kernel, folds = data
    is_network = isinstance(kernel, Precomputed)
    y = np.arange(len(X)) if is_network else Y
    model.set_params(kernel=kernel)
    results = []
    for train, test in folds:
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


def table_row(name: str, rank, results: np.ndarray, exact: np.ndarray) -> list[str]:
    """Return a row of the table from the results of each seed."""
    mean, change = results.mean(axis=0), results - exact
    differences = [
        f"± {results[:, column].std(ddof=1):.4f}"
        if rank is None
        else f"{change[:, column].mean():+.4f} ± {change[:, column].std(ddof=1):.4f}"
        for column in (0, 1)
    ]
    return [
        name,
        rank,
        f"{mean[3]:.0f}",
        f"{mean[4]:.3f}",
        f"{mean[0]:.4f}",
        differences[0],
        f"{mean[1]:.4f}",
        differences[1],
        f"{1e3 * mean[2]:.0f} ms",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", nargs="*", type=int, default=[32])
    parser.add_argument("--many", action="store_true", help="data sets of more than 2,000 rows")
    parser.add_argument("--only", default="", help="data sets whose name contains this text")
    options = parser.parse_args()
    rows = []
    chosen = MANY if options.many else DATA_SETS
    for name, load in chosen.items():
        if options.only not in name:
            continue
        data = load()
        exact = None
        for rank in (None, *options.ranks, "auto" if options.many else 0.95):
            print_progress(f"{name}, search_rank={rank}")
            results = np.array(
                [
                    evaluate(OKExtraTrees(search_rank=rank, random_state=seed), data)
                    for seed in range(options.seeds)
                ]
            )
            exact = results if exact is None else exact
            rows.append(table_row(name, rank, results, exact))
    print("### Search in a few directions" + ", many outputs" * options.many + "\n")
    print(Table(HEADER, rows).markdown())


if __name__ == "__main__":
    main()
