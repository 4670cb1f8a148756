"""The checks of a restored state: every damaged attribute is named."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from okforest import OKExtraTrees, OKRidge
from okforest.network import BipartiteCompletion, NetworkCompletion
from okforest.network.links import check_matrix
from reference.network import make_network


def fit_network(**parameters):
    network = make_network(30)
    model = NetworkCompletion(OKExtraTrees(4, random_state=0), **parameters)
    return model.fit(network.X, network.graph, network.names)


def fit_bipartite():
    network = make_network(30)
    links = network.graph[:, :20].toarray()
    return BipartiteCompletion(OKExtraTrees(4, random_state=0)).fit(
        network.X, network.X[:20], links
    )


def csr(data=(1.0, 1.0), indices=(0, 2), indptr=(0, 1, 2), shape=(2, 3), dtype=np.int32):
    """Return a CSR matrix of parts that SciPy would refuse."""
    matrix = sp.csr_array((2, 3))
    matrix.data = np.array(data)
    matrix.indices, matrix.indptr = np.array(indices, dtype), np.array(indptr, dtype)
    matrix._shape = shape
    return matrix


def test_parts_of_a_csr_matrix():
    check_matrix(csr(), "W", (2, 3))
    check_matrix(csr((), (), (0, 0, 0)), "W", (2, 3))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(2), "W is not a sparse matrix of floats"),
        (None, "W is not a sparse matrix of floats"),
        (csr(data=(1, 1)), "W is not a sparse matrix of floats"),
        (csr(shape=(3, 3)), r"W has shape \(3, 3\), not \(2, 3\)"),
        (
            csr(data=((1.0, 1.0),)),
            "W is not a valid sparse matrix: data of a sparse matrix is not a 1-d array",
        ),
        (
            csr(dtype=np.float64),
            "W is not a valid sparse matrix: indices of a sparse matrix is not a 1-d array",
        ),
        (csr(indptr=(0, 2)), "indptr of a sparse matrix has 2 entries, not 3"),
        (csr(indptr=(1, 1, 2)), "indptr of a sparse matrix does not ascend from 0"),
        (csr(indptr=(0, 3, 2)), "indptr of a sparse matrix does not ascend from 0"),
        (csr(indptr=(0, 0, 0)), "a sparse matrix has . values and . indices, but indptr counts"),
        (csr(indptr=(0, 1, 9)), "a sparse matrix has . values and . indices, but indptr counts"),
        (csr(data=(1.0,)), "a sparse matrix has . values and . indices, but indptr counts"),
        (csr(indices=(0, 3)), "indices of a sparse matrix are not all in 0…2"),
        (csr(indices=(-1, 0)), "indices of a sparse matrix are not all in 0…2"),
    ],
)
def test_damaged_csr_matrices(matrix, message):
    with pytest.raises(ValueError, match=message):
        check_matrix(matrix, "W", (2, 3))


@pytest.mark.parametrize(
    "parameters", [{}, {"scheme": "average"}, {"known": "links"}, {"calibrate": True, "cv": 2}]
)
def test_fitted_networks_are_valid(parameters):
    fit_network(**parameters).check_state()


def test_pipelines_are_valid():
    network = make_network(30)
    pipeline = make_pipeline(StandardScaler(), OKRidge(0.1))
    NetworkCompletion(pipeline).fit(network.X, network.graph).check_state()


CURVE = (np.array([0.0, 1.0]), np.array([0.1, 0.2]))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model_", StandardScaler(), "model_ is of type StandardScaler, not a model of okforest"),
        ("model_", OKRidge(), "model_ has no training outputs"),
        ("names_", np.arange(29), "names_ is not an array of 30 names"),
        ("names_", ["a"] * 30, "names_ is .*, not an array"),
        ("adjacency_", sp.csr_array((29, 30)), r"adjacency_ has shape \(29, 30\), not \(30, 30\)"),
        ("known_weights_", [], "known_weights_ is not a list of 1 matrices"),
        ("known_weights_", [sp.csr_array((30, 30))] * 2, "known_weights_ is not a list of 1 matr"),
        ("known_weights_", [sp.csr_array((30, 31))], r"known_weights_\[0\] has shape \(30, 31\)"),
        ("calibration_", {}, "calibration_ does not have the kinds"),
        (
            "calibration_",
            {"known-new": CURVE, "new-new": (CURVE[0],)},
            "calibration_.'new-new'. is not a pair of arrays",
        ),
        (
            "calibration_",
            {"known-new": CURVE, "new-new": (np.empty(0), np.empty(0))},
            "calibration_.'new-new'. is not a pair of arrays",
        ),
        (
            "calibration_",
            {"known-new": (CURVE[0][::-1], CURVE[1]), "new-new": CURVE},
            "calibration_.'known-new'. is not a curve over increasing scores",
        ),
        (
            "calibration_",
            {"known-new": (CURVE[0], CURVE[1][:1]), "new-new": CURVE},
            "calibration_.'known-new'. is not a curve over increasing scores",
        ),
    ],
)
def test_damaged_networks(name, value, message):
    model = fit_network()
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        model.check_state()


@pytest.mark.parametrize("name", ["model_", "names_", "adjacency_", "known_weights_"])
def test_missing_attributes_of_a_network(name):
    model = fit_network()
    delattr(model, name)
    with pytest.raises(ValueError, match=f"{name} missing"):
        model.check_state()


def test_damaged_weights_of_a_network():
    model = fit_network()
    model.known_weights_[0].indptr[-1] = 0
    with pytest.raises(
        ValueError, match=r"known_weights_\[0\] is not a valid sparse matrix: indptr"
    ):
        model.check_state()


def test_fewer_weights_than_trees():
    model = fit_network(scheme="average")
    del model.known_weights_[-1]
    with pytest.raises(ValueError, match="known_weights_ is not a list of 4 matrices"):
        model.check_state()
    model.model_ = OKRidge().fit(np.eye(30), np.eye(30))
    model.known_weights_ = []
    with pytest.raises(ValueError, match="known_weights_ is not a list of 0 matrices"):
        model.check_state()


def test_the_inner_model_is_checked(monkeypatch):
    """A model within the model checks its own state."""
    model = fit_network()

    def fail(self):
        raise ValueError("damaged trees")

    monkeypatch.setattr(type(model.model_), "check_state", fail)
    with pytest.raises(ValueError, match="damaged trees"):
        model.check_state()


def test_fitted_bipartite_models_are_valid():
    fit_bipartite().check_state()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("row_model_", None, "row_model_ is of type NoneType, not a model of okforest"),
        ("column_model_", OKRidge(), "column_model_ has no training outputs"),
        ("links_", sp.csr_array((30, 30)), r"links_ has shape \(30, 30\), not \(30, 20\)"),
        (
            "known_rows_",
            sp.csr_array((20, 20)),
            r"known_rows_ has shape \(20, 20\), not \(30, 30\)",
        ),
        ("known_columns_", np.eye(20), "known_columns_ is an array of float64, not a csr_array"),
        ("row_names_", np.arange(20), "row_names_ is not an array of 30 names"),
        ("column_names_", np.arange(30), "column_names_ is not an array of 20 names"),
    ],
)
def test_damaged_bipartite_models(name, value, message):
    model = fit_bipartite()
    setattr(model, name, value)
    with pytest.raises(ValueError, match=message):
        model.check_state()
    delattr(model, name)
    with pytest.raises(ValueError, match=f"{name} missing"):
        model.check_state()
