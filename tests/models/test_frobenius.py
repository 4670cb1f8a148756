"""The Frobenius rule, as models have it."""

import numpy as np
import pandas as pd
import pytest

from okforest import OKBagging, OKExtraTrees, OKTotallyRandomTrees, OKTree, _core
from okforest.kernels import RBF


def problem(seed, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = np.c_[np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]] + 0.1 * rng.normal(size=(n, 2))
    return X, Y


def kernel_error(model, X, Y):
    """Σ_ij (k_ij − k̂_ij)² over the training inputs."""
    return ((model.kernel_(model.outputs_) - model.predict_kernel(X)) ** 2).sum()


@pytest.mark.parametrize("seed", range(5))
def test_the_predicted_kernel_is_nearer(seed):
    """No single split has a smaller error of the kernel than the one that the rule takes."""
    X, Y = problem(seed)
    small = {"kernel": RBF(1.0), "max_depth": 1, "random_state": 0}
    frobenius = OKTree(criterion="frobenius", **small).fit(X, Y)
    variance = OKTree(**small).fit(X, Y)
    assert kernel_error(frobenius, X, Y) <= kernel_error(variance, X, Y) * (1 + 1e-9)


@pytest.mark.parametrize("Model", [OKExtraTrees, OKBagging])
def test_forests(Model):
    """Forests grow by the rule, the same for any number of threads."""
    X, Y = problem(0)
    one, two = (
        Model(10, kernel=RBF(1.0), criterion="frobenius", random_state=0, n_jobs=n).fit(X, Y)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.apply(X), two.apply(X))
    assert one.score(X, Y) > 0.5


def test_what_it_does_not_have():
    """Other embeddings, a search embedding and categories are refused, with what to do instead."""
    X, Y = problem(0)
    for wrong in ({"search_rank": 2}, {"embedding": "factor"}):
        with pytest.raises(ValueError, match="works on the Gram matrix"):
            OKTree(criterion="frobenius", **wrong).fit(X, Y)
    frame = pd.DataFrame(X)
    frame[0] = pd.Categorical(np.where(X[:, 0] > 0, "a", "b"))
    with pytest.raises(ValueError, match="does not split categorical features"):
        OKTree(criterion="frobenius").fit(frame, Y)
    with pytest.raises(TypeError, match="no parameter 'criterion'"):
        OKTotallyRandomTrees(criterion="frobenius")


def test_threads_share_the_memory(monkeypatch):
    """Fewer threads grow the same trees if not all of them fit in memory; one must fit."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    X, Y = problem(0)
    started, grow = [], _core.grow

    def count(**arguments):
        started.append(arguments["n_threads"])
        return grow(**arguments)

    model = OKBagging(10, kernel=RBF(1.0), criterion="frobenius", random_state=0, n_jobs=8)
    expected = model.fit(X, Y).apply(X)
    monkeypatch.setattr(_core, "grow", count)
    per_matrix = 8 * len(X) ** 2
    monkeypatch.setattr("okforest._utils.resources.machine_memory", lambda: 2 * 4 * per_matrix)
    np.testing.assert_array_equal(model.fit(X, Y).apply(X), expected)
    model.set_params(max_leaf_nodes=len(X) // 2).fit(X, Y)
    model.set_params(max_leaf_nodes=None, min_samples_leaf=40).fit(X, Y)
    model.set_params(min_samples_leaf=1, max_depth=5).fit(X, Y)
    model.set_params(max_depth=None, max_samples=0.5).fit(X, Y)
    assert started == [3, 6, 8, 8, 8]  # beside the Gram matrix
    monkeypatch.setattr("okforest._utils.resources.machine_memory", lambda: per_matrix)
    monkeypatch.setattr("okforest.embedding.choice.check_memory", lambda *arguments: None)
    model.set_params(max_samples=None)
    with pytest.raises(MemoryError, match=r"criterion='frobenius' takes .* Limit the leaves"):
        model.fit(X, Y)


def test_few_leaves():
    """Trees whose leaves are limited by any rule are the same without rows of weight zero."""
    X, Y = problem(1)
    plain = {"kernel": RBF(1.0), "criterion": "frobenius", "random_state": 0}
    weight = np.random.default_rng(0).integers(0, 3, size=len(X)).astype(float)
    for limits in ({"max_depth": 3}, {"max_leaf_nodes": 9}, {"min_samples_leaf": 7}):
        model = OKExtraTrees(3, **plain, **limits).fit(X, Y, weight)
        repeated = OKExtraTrees(3, **plain, **limits).fit(
            X[weight > 0], Y[weight > 0], weight[weight > 0]
        )
        np.testing.assert_array_equal(model.apply(X), repeated.apply(X))
        if "max_leaf_nodes" in limits:
            assert (np.diff(model.trees_.node_offsets) == 17).all()
