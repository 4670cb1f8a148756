"""Sparse matrices whose arrays do not fit together are refused before SciPy reads them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from okforest import OKBoost, OKExtraTrees, OKNeighbors, OKRandomForest, OKRidge
from okforest._utils.arrays import check_sparse
from okforest.decode.search import candidate_blocks
from okforest.kernels import Diffusion, Jaccard
from okforest.metrics import au_prc
from okforest.network import BipartiteCompletion, NetworkCompletion
from okforest.refit import knn_laplacian
from okforest.refit.laplacian import check_laplacian
from okforest.segments import Neighborhoods
from okforest.weights import as_weights

DENSE = np.array([[0.0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0]])
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dia", "dok")


def damaged(matrix_format="csr", dense=DENSE, **parts):
    """Return a sparse matrix with some of its arrays replaced."""
    matrix = sp.csr_array(dense).asformat(matrix_format)
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


def lists(*rows):
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


@pytest.mark.parametrize("matrix_format", FORMATS)
@pytest.mark.parametrize("dense", [DENSE, np.zeros((3, 2)), np.zeros((0, 3)), np.eye(6)])
def test_sound_matrices(matrix_format, dense):
    check_sparse(sp.csr_array(dense).asformat(matrix_format), "X")


def test_blocks():
    """Matrices of blocks have pointers to rows of blocks, and indices of columns of blocks."""
    matrix = sp.bsr_array(np.kron(DENSE, np.ones((2, 3))), blocksize=(2, 3))
    check_sparse(matrix, "X")
    matrix.indices[0] = 4
    with pytest.raises(ValueError, match="not all in 0…3"):
        check_sparse(matrix, "X")


def test_unused_entries_and_vectors():
    """SciPy allows entries after the last one that counts, and arrays with one axis."""
    unused = damaged(data=np.ones(9), indices=np.array([1, 3, 0, 3, 0, 2, 99, -1, 7]))
    check_sparse(unused, "X")
    check_sparse(sp.coo_array(np.arange(4.0)), "X")
    check_sparse(DENSE, "X")


@pytest.mark.parametrize("matrix_format", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"indices": np.array([1, 3, 0, 4, 0, 2])},
            "indices of a sparse matrix are not all in 0…3",
        ),
        ({"indices": np.array([1, 3, 0, -1, 0, 2])}, "are not all in 0…3"),
        ({"indices": np.array([1, 3, 0, 2**32, 0, 2])}, "are not all in 0…3"),
        ({"indices": np.zeros(6)}, "indices of a sparse matrix is not a 1-d array"),
        ({"indices": np.zeros(5, dtype=int)}, "6 values and 5 indices, but indptr counts 6"),
        ({"data": np.ones((6, 0))}, "data of a sparse matrix is not a [13]-d array"),
        ({"data": np.ones((3, 1, 1))}, "3 values and 6 indices, but indptr counts 6"),
        ({"indptr": np.array([0, 2, 3, 6])}, "indptr of a sparse matrix has 4 entries, not 5"),
        ({"indptr": np.array([], dtype=int)}, "index -1 is out of bounds"),
        ({"indptr": np.array([0, 9, 3, 4, 6])}, "indptr of a sparse matrix does not ascend from 0"),
        ({"indptr": np.array([0, 9, 9, 9, 0])}, "does not ascend from 0"),
        ({"indptr": np.array([0, 0, 0, 0, -1])}, "does not ascend from 0"),
        ({"indptr": np.array([1, 2, 3, 4, 6])}, "does not ascend from 0"),
        (  # differences overflow to positive numbers
            {"indptr": np.array([0, 2**31 - 1, -(2**31), -1, 6], dtype=np.int32)},
            "does not ascend from 0",
        ),
        ({"indptr": np.array([0, 2, 3, 4, 7])}, "6 values and 6 indices, but indptr counts 7"),
    ],
)
def test_compressed(matrix_format, parts, message):
    matrix = sp.csr_array(DENSE)
    matrix = sp.bsr_array(matrix, blocksize=(1, 1)) if matrix_format == "bsr" else matrix
    matrix = matrix.asformat(matrix_format)
    for name, value in parts.items():
        setattr(
            matrix, name, value[:, 0, 0] if value.ndim == 3 and matrix_format != "bsr" else value
        )
    with pytest.raises(
        ValueError, match=rf"X is a {matrix_format}_array of shape \(4, 4\).*{message}"
    ):
        check_sparse(matrix, "X")


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (damaged("coo", coords=(np.arange(6), np.zeros(6, dtype=int))), "not all in 0…3"),
        (damaged("coo", coords=(np.zeros(6, dtype=int), -np.arange(6))), "not all in 0…3"),
        (damaged("coo", coords=(np.zeros(6), np.zeros(6))), "coords of a sparse matrix is not"),
        (damaged("coo", coords=(np.zeros(5, dtype=int),) * 2), "values and coords differ"),
        (damaged("coo", coords=(np.zeros(6, dtype=int),)), "zip"),
        (damaged("bsr", data=np.ones((1, 3, 3))), r"blocks of shape \(3, 3\) do not fill"),
        (damaged("bsr", data=np.ones((1, 0, 2))), r"blocks of shape \(0, 2\) do not fill"),
        (damaged("dia", offsets=np.arange(9)), "diagonals and offsets differ"),
        (damaged("dia", data=np.ones(3)), "data of a sparse matrix is not a 2-d array"),
        (
            damaged("dia", offsets=damaged("dia").offsets + 2**20),
            "a diagonal of a sparse matrix lies",
        ),
        (
            damaged("dia", offsets=damaged("dia").offsets - 2**20),
            "a diagonal of a sparse matrix lies",
        ),
        (damaged("dia", offsets=np.array([0.5])), "offsets of a sparse matrix is not"),
        (damaged("lil", rows=lists([1, 9], [0], [3], [0, 2])), "not all in 0…3"),
        (damaged("lil", rows=lists([1, 3, 2], [0], [3], [0, 2])), "values and indices of rows"),
        (damaged("lil", rows=lists([1], [0])), "values and indices of rows differ"),
        (
            damaged("lil", rows=lists([1]), data=lists([1.0])),
            "lists of values and rows differ",
        ),
        (damaged("lil", rows=lists("ab", [0], [3], [0, 2])), "list"),
    ],
)
def test_other_formats(matrix, message):
    with pytest.raises(ValueError, match=message):
        check_sparse(matrix, "X")


def test_every_public_function_checks_its_inputs():
    """In a process of its own, which a function that does not check them would crash."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    script = Path(__file__).with_name("sparse_calls.py")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", script],
        capture_output=True,
        text=True,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
    calls = run.stdout.splitlines()
    assert run.returncode == 0, (calls[-1:], run.stderr[-2000:])
    assert not [call for call in calls if not call.endswith(" ok")]
    assert len(calls) > 1500


@pytest.mark.parametrize(
    "model",
    [OKExtraTrees(3), OKRandomForest(3), OKBoost(n_estimators=3), OKRidge(), OKNeighbors(2)],
)
@pytest.mark.parametrize("matrix_format", ["csr", "csc", "coo"])
def test_models(model, matrix_format):
    y = np.arange(4.0)
    fitted = clone(model).fit(DENSE, y)
    X = damaged(matrix_format)
    if matrix_format == "coo":
        X.coords = (X.coords[0], X.coords[1] + 2)
    else:
        X.indices = X.indices + 2
    for call in (lambda: model.fit(X, y), lambda: fitted.predict(X), lambda: fitted.score(X, y)):
        with pytest.raises(ValueError, match=r"X is a .*_array of shape \(4, 4\) whose"):
            call()


OUT_OF_RANGE = damaged(indices=np.array([1, 3, 0, 4, 0, 2]))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda A: Jaccard().check(A), "y"),
        (lambda A: Diffusion(A).check([0, 1]), "the adjacency matrix"),
        (lambda A: au_prc(A, DENSE), "y_true"),
        (lambda A: list(candidate_blocks(A, None)), "candidates"),
        (lambda A: as_weights(A), "W"),
        (lambda A: check_laplacian(A, DENSE, 4), "laplacian"),
        (lambda A: knn_laplacian(A, 2), "X"),
        (lambda A: NetworkCompletion().fit(DENSE, A), "the adjacency matrix"),
        (lambda A: NetworkCompletion().fit(A, DENSE + DENSE.T > 0), "X"),
        (lambda A: BipartiteCompletion().fit(DENSE, DENSE, A), "links"),
        (lambda A: Neighborhoods().check([A]), "the adjacency matrix of"),
        (lambda A: Neighborhoods().check([(np.eye(4), A)]), "the feature matrix of"),
    ],
)
def test_everything_else(call, name, monkeypatch):
    monkeypatch.setattr("okforest.decode.search.BLOCK", 2)
    with pytest.raises(ValueError, match=f"{name}.* is a csr_array of shape"):
        call(OUT_OF_RANGE)
