"""Which embedding is chosen, whether it is exact, and which kernels are refused."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from okforest import OKBoost, OKExtraTrees, OKTree
from okforest.embedding import embed
from okforest.embedding.choice import factor_errors
from okforest.kernels import RBF, Dirac, FromCallable, Linear, Polynomial, Precomputed

rng = np.random.default_rng(0)
Y = rng.normal(size=(60, 3))


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


@pytest.mark.parametrize("kind", ["auto", "features", "gram", "factor"])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), RBF(1.0)], ids=repr)
def test_embeddings_are_exact(kernel, kind):
    """Every embedding has the inner products of the centred outputs."""
    if kind == "features" and kernel.feature_dim(Y) is None:
        with pytest.raises(ValueError, match="use 'auto', 'gram' or 'factor'"):
            embed(kernel, Y, kind)
        return
    embedding = embed(kernel, Y, kind)
    values = embedding.values
    assert values.flags.c_contiguous
    assert values.dtype == np.float64
    K = values if embedding.kind == "gram" else values @ values.T
    np.testing.assert_allclose(centred(K), centred(kernel(Y)), atol=1e-10)  # for any origin


@pytest.mark.parametrize(
    ("kernel", "y", "kind", "rank"),
    [
        (Linear(), Y, "features", 3),
        (Linear(), rng.normal(size=(20, 50)), "gram", 20),
        (Polynomial(2), Y, "features", 10),
        (Polynomial(5), Y, "factor", None),
        (Dirac(), rng.integers(0, 5, 60), "features", 5),
        (RBF(1.0), Y, "gram", 60),
        (Precomputed(Y @ Y.T), np.arange(60), "factor", 3),
        (Precomputed(np.eye(60)), np.arange(60), "gram", 60),
    ],
)
def test_auto_takes_the_cheapest(kernel, y, kind, rank):
    """Features of low dimension; else the Gram matrix, or its factor if its rank is low."""
    embedding = embed(kernel.resolve(y), y)
    if (kernel, rank) == ("factor", None):
        assert embedding.rank <= 15
    elif rank is not None:
        assert (embedding.kind, embedding.rank) == (kind, rank)


def test_no_square_matrix_where_features_exist():
    """A hundred thousand outputs with features embed without their Gram matrix (80 GB)."""
    y = rng.normal(size=(100_000, 2))
    for kind in ("auto", "features", "factor"):
        assert embed(Linear() + Polynomial(2), y, kind).values.shape == (100_000, 8)


def test_asymmetric_and_indefinite_functions_have_different_errors():
    """The error explains why a function is not a kernel."""
    a = np.arange(10.0)
    with pytest.raises(ValueError, match=r"asymmetric: entries \(.*\) differ by"):
        embed(FromCallable(lambda a, b: a[:, None] - b[None, :]), a)
    with pytest.raises(ValueError, match=r"indefinite: entry \(0, 9\) is too large for"):
        embed(FromCallable(lambda a, b: np.abs(a[:, None] - b[None, :])), a)
    with pytest.raises(ValueError, match=r"indefinite: its smallest eigenvalue is -4\.4"):
        embed(FromCallable(lambda a, b: 1.6 * np.equal.outer(a, b) - 0.6), a)
    with pytest.raises(ValueError, match="real numbers"):
        embed(FromCallable(lambda a, b: np.outer(a, b) * 1j), a)
    with pytest.raises(ValueError, match="NaN or infinite"):
        embed(FromCallable(lambda a, b: np.full((len(a), len(b)), np.inf)), a)
    with pytest.raises(ValueError, match="indefinite"):
        embed(Precomputed(-np.eye(10)), np.arange(10))


def test_indefinite_large_matrices_are_found():
    """Above 2,048 outputs a block of the matrix and every pair of outputs are tested."""
    K = np.eye(2500)
    K[3, 8] = K[8, 3] = 50.0
    with pytest.raises(ValueError, match=r"indefinite: entry \(3, 8\)"):
        embed(Precomputed(K), np.arange(2500))
    with pytest.raises(ValueError, match=r"indefinite: its smallest eigenvalue"):
        embed(Precomputed(1.6 * np.eye(2500) - 0.6), np.arange(2500))


def test_outputs_out_of_scale():
    """Outputs whose squares overflow or underflow are refused, not treated as constant."""
    for scale in (1e200, 1e145, 1e-200, 1e-145):
        for kind in ("features", "gram"):
            with pytest.raises(ValueError, match="rescale them"):
                embed(Linear(), Y * scale, kind)
    with pytest.raises(ValueError, match="rescale them"):
        embed(Linear(), Y * 1e145, "cholesky")
    with pytest.raises(ValueError, match="rescale them"):
        embed(Precomputed(np.eye(5) * 1e306), np.arange(5))
    embed(Linear(), np.zeros((5, 2)))


def test_outliers_do_not_move_the_centre():
    """Most outputs stay near the origin of the embedding."""
    y = Y.copy()
    y[0] = 1e9
    assert np.abs(np.median(embed(Linear(), y).values, axis=0)).max() < 1
    K = embed(Linear(), y, "gram").values
    assert np.median(np.abs(K)) < 10


@pytest.mark.parametrize("offset", [0.0, 20.0])
def test_the_origin_is_the_mean_of_the_central_half(offset):
    """Of features and of a Gram matrix: centred twice, at all outputs and at those nearby."""
    y = np.r_[Y, [[1e3, 0.0, 0.0]] * 3] + offset  # three outliers, which move the mean by 50
    squares = ((y - y.mean(axis=0)) ** 2).sum(axis=1)
    central = np.argsort(squares)[: len(y) // 2 + 1]
    around = y - y[central].mean(axis=0)
    np.testing.assert_allclose(embed(Linear(), y).values, around, atol=1e-9)
    for kernel in (Precomputed(y @ y.T), FromCallable(lambda a, b: y[a] @ y[b].T)):
        K = embed(kernel, np.arange(len(y)), "gram").values
        np.testing.assert_allclose(K, around @ around.T, atol=1e-6)
        assert np.median(np.diagonal(K)) < 10


@pytest.mark.parametrize("kind", ["features", "gram"])
@pytest.mark.parametrize("n", [129, 500, 3000])
def test_the_centre_of_many_outputs(n, kind):
    """It is computed from some outputs: squared norms are hardly larger than with all of them.

    Neither outliers nor outputs of weight zero move it.
    """
    y, weight = np.random.default_rng(n).normal(size=(n, 5)) + 20.0, np.ones(n)
    y[::7], y[3::5], weight[3::5] = 1e6, 1e9, 0.0
    usual = y[:, 0] < 100
    squares = ((y - y[weight > 0].mean(axis=0)) ** 2).sum(axis=1)
    central = squares <= np.median(squares[weight > 0])
    expected = ((y - y[central].mean(axis=0)) ** 2).sum(axis=1)
    values = embed(Linear(), y, kind, weight=weight).values
    found = values.diagonal() if kind == "gram" else (values**2).sum(axis=1)
    assert found[usual].mean() < 1.1 * expected[usual].mean()


@pytest.mark.parametrize("kind", ["features", "gram"])
def test_the_centre_of_sorted_outputs(kind):
    """It differs from the centre of the first outputs."""
    y = np.sort(np.random.default_rng(0).normal(size=(3000, 1)), axis=0)
    values = embed(Linear(), y, kind).values
    squares = values.diagonal() if kind == "gram" else (values**2).sum(axis=1)
    assert squares.mean() < 1.1 * y.var()


@pytest.mark.parametrize("kind", ["features", "gram"])
@pytest.mark.parametrize(("n", "period"), [(382, 3), (1271, 10), (2047, 3), (3070, 3)])
def test_outliers_at_regular_places(n, period, kind):
    """The centre is near the other outputs, wherever outliers are."""
    y = np.random.default_rng(0).normal(size=(n, 2))
    y[::period] += 1e7
    values = embed(Linear(), y, kind).values
    squares = values.diagonal() if kind == "gram" else (values**2).sum(axis=1)
    assert np.median(squares) < 10


@pytest.mark.parametrize("kernel", [Linear(), RBF(2.0), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("kind", ["auto", "gram"])
def test_the_order_in_memory_does_not_matter(kernel, kind):
    """Outputs in Fortran order have the same embedding, to the last bit."""
    y = np.random.default_rng(0).normal(size=(300, 7)) + 3.0
    expected = embed(kernel, y, kind).values
    np.testing.assert_array_equal(embed(kernel, np.asfortranarray(y), kind).values, expected)


@pytest.mark.parametrize(
    "y",
    [np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 1]]), np.diag([1.0, 2.0, 3.0]), Y[:, :1]],
    ids=["sets", "weights", "numbers"],
)
def test_only_indicators_of_classes_are_not_centred(y):
    """Neither sets of labels nor numbers are taken for classes."""
    classes = np.eye(3)[[0, 2, 1, 1]]
    np.testing.assert_array_equal(embed(Linear(), classes, "features").values, classes)
    values = embed(Linear(), y, "features").values
    squares = ((y - y.mean(axis=0)) ** 2).sum(axis=1)
    nearest = np.sort(squares)[: len(y) // 2 + 1]
    np.testing.assert_allclose(values[squares <= nearest[-1]].mean(axis=0), 0.0, atol=1e-12)


def test_equal_outputs_have_equal_rows():
    """Centring a Gram matrix does not tell equal outputs apart, nor rows from columns."""
    rng = np.random.default_rng(0)
    B = rng.normal(size=(3, 5))
    for n in (101, 1003):  # beyond the last full SIMD vector, too
        y = rng.integers(3, size=n)
        K = embed(Precomputed(B @ B.T + 1e4), y, "gram").values
        np.testing.assert_array_equal(K, K.T)
        for i in range(3):
            assert (K[y == i] == K[y.tolist().index(i)]).all()


def n_split_among_equals(kernel, y, group, weight=None, seed=0, model=None):
    """Return how many nodes are split whose rows are all of the same group."""
    rng = np.random.default_rng(seed)
    model = model or OKExtraTrees(5, embedding="gram")
    model.set_params(kernel=kernel, random_state=seed)
    trees = model.fit(rng.normal(size=(len(group), 4)), y, sample_weight=weight).trees_
    found = 0
    for tree in range(len(trees)):
        first, last = trees.node_offsets[tree : tree + 2]
        members = group[trees.members[trees.member_offsets[tree] :]]
        for node in first + np.flatnonzero(trees.left[first:last] >= 0):
            found += len(set(members[trees.begin[node] : trees.end[node]])) == 1
    return found


@pytest.mark.parametrize("most_equal", [False, True])
@pytest.mark.parametrize("sigma", [0.03, 1.0, 30.0])
def test_nodes_of_equal_outputs_are_not_split(sigma, most_equal):
    """Rounding errors of distances do not tell equal outputs apart, however narrow the kernel."""
    rng = np.random.default_rng(0)
    y, group = rng.normal(size=(30, 50)), rng.integers(30, size=400)
    if most_equal:  # the centre: their inner products are far smaller than those in K
        group[:300] = 0
    assert n_split_among_equals(RBF(sigma), y[group], group) == 0


@pytest.mark.parametrize("most_equal", [False, True])
@pytest.mark.parametrize("gamma", [0.01, 1e-4])
@pytest.mark.parametrize("other", [rbf_kernel, laplacian_kernel, polynomial_kernel])
def test_nodes_of_equal_rows_of_a_precomputed_matrix_are_not_split(other, gamma, most_equal):
    """Rounding errors of K are relative to K, not to what is left of it after centring."""
    rng = np.random.default_rng(0)
    y, group = rng.normal(size=(30, 50)), rng.integers(30, size=400)
    if most_equal:
        group[:300] = 0
    K = other(y[group], gamma=gamma)
    assert n_split_among_equals(Precomputed((K + K.T) / 2), np.arange(400), group) == 0


@pytest.mark.parametrize("offset", [10.0, 1e3, 1e5])
def test_nodes_of_equal_rows_of_a_factor_are_not_split(offset):
    """A factor, or a matrix, has the rounding errors of the matrix before it was centred."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        group = rng.integers(4, size=60)
        y = (rng.normal(size=(4, 33)) + offset)[group]
        kernel = Precomputed(y @ y.T)  # equal outputs differ in the last digit
        assert embed(kernel, np.arange(60)).kind == "factor"
        for kind in ("auto", "gram"):
            for model in (OKTree(embedding=kind), OKExtraTrees(5, embedding=kind)):
                assert n_split_among_equals(kernel, np.arange(60), group, None, seed, model) == 0


@pytest.mark.parametrize("embedding", ["cholesky", "nystrom", "gram", "factor"])
@pytest.mark.parametrize("search_rank", [None, 2])
@pytest.mark.parametrize("sigma", [1.0, 10.0, 100.0, None])
def test_rounding_errors_of_approximate_factors(sigma, search_rank, embedding):
    """Along short directions, the rounding errors of K grow; they do not tell equal rows apart."""
    model = OKExtraTrees(5, embedding=embedding, search_rank=search_rank)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y, group = rng.normal(size=(25, 3)) + 30.0, rng.integers(25, size=120)
        K = y @ y.T if sigma is None else RBF(sigma)(y)
        K = K[group[:, None], group] * (1 + 2.0**-52 * rng.integers(-2, 3, size=(120, 120)))
        kernel = Precomputed((K + K.T) / 2)
        assert n_split_among_equals(kernel, np.arange(120), group, None, seed, model) == 0
        leaves = model.trees_.left[: model.trees_.node_offsets[1]] < 0
        assert leaves.sum() >= len(set(group))  # different ones are


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2)], ids=repr)
def test_nodes_of_equal_outputs_of_uneven_weights_are_not_split(kernel):
    """Equal outputs stay equal in blocks of the Gram matrix that are centred far from them."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rare = rng.random(300) < 0.1
        y = np.where(rare, rng.normal(size=300), 0.0)
        weight = np.where(rng.random(300) < 0.5, 1.0, 1e-6 * (1 + rng.random(300)))
        group = np.where(rare, np.arange(300) + 1, 0)
        assert n_split_among_equals(kernel, y, group, weight, seed) == 0


def test_close_outputs_are_told_apart():
    """The rounding errors of a kernel matrix do not hide differences that it has."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    for difference in (1e-3, 1e-5, 1e-6):
        y = 1.0 + difference * (X[:, 0] > 0)
        tree = OKTree(kernel=RBF(1.0), embedding="gram").fit(X, y)
        assert tree.trees_.feature.tolist() == [0, -1, -1]


@pytest.mark.parametrize("difference", [1e-3, 1e-5, 1e-6])
def test_a_factor_keeps_small_differences(difference):
    """The rank of a Gram matrix counts directions that are larger than its rounding errors."""
    y = np.c_[np.sign(Y[:, 0]), difference * np.sign(Y[:, 1])]
    embedding = embed(Precomputed(y @ y.T), np.arange(60))
    assert (embedding.kind, embedding.rank) == ("factor", 2)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("degree", [1, 3])
def test_a_large_output_does_not_hide_the_others(size, degree):
    """All rows count for the rank of a Gram matrix, however small beside the largest."""
    y = Y[:, :2].copy()
    y[3] *= size ** (1 / degree)
    K = (y @ y.T) ** degree
    embedding = embed(Precomputed(K), np.arange(60))
    assert (embedding.kind, embedding.rank) == ("factor", degree + 1)
    others = np.delete(embedding.values, 3, axis=0)
    found = ((others[:, None] - others) ** 2).sum(axis=2)
    squares, K = np.delete(K.diagonal(), 3), np.delete(np.delete(K, 3, 0), 3, 1)
    np.testing.assert_allclose(found, squares[:, None] + squares - 2 * K, rtol=1e-6, atol=1e-9)


def test_a_factor_of_rows_of_unequal_scales_in_blocks(monkeypatch):
    """Each block of rows has its own units."""
    monkeypatch.setattr("okforest._utils.resources.BLOCK_BYTES", 7 * 60 * 8)
    y = Y[:, :2] * np.repeat([1.0, 1e4], 30)[:, None]
    embedding = embed(Precomputed(y @ y.T), np.arange(60))
    assert (embedding.kind, embedding.rank) == ("factor", 2)
    found, expected = (((v[:, None] - v) ** 2).sum(axis=2) for v in (embedding.values, y))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_a_large_output_does_not_make_the_rank_low():
    """Of outputs with more columns than rows."""
    wide = np.random.default_rng(0).normal(size=(60, 120))
    wide[0] *= 1e8
    assert embed(Linear(), wide).kind == "gram"
    assert embed(Linear(), wide, "factor").rank >= 59


@pytest.mark.parametrize("kind", ["features", "gram", "factor", "cholesky"])
def test_far_outputs_of_weight_zero_do_not_move_the_centre(kind):
    """Even if most outputs are far away, those that matter are near the origin."""
    far = np.arange(60) < 40
    y = np.where(far[:, None], Y + 1e6, Y)
    values = embed(Linear(), y, kind, weight=np.where(far, 0.0, 1.0)).values
    squares = np.diagonal(values) if kind == "gram" else (values**2).sum(axis=1)
    assert squares[~far].max() < 50
    assert squares[far].min() > 1e12


@pytest.mark.parametrize("kind", ["gram", "factor"])
def test_far_outputs_of_weight_zero_do_not_move_the_centre_of_a_matrix(kind):
    """Nor if only the matrix of inner products is known."""
    far = np.arange(60) < 40
    y = np.where(far[:, None], Y + 1e4, Y)
    values = embed(Precomputed(y @ y.T), np.arange(60), kind, weight=np.where(far, 0.0, 1.0)).values
    squares = np.diagonal(values) if kind == "gram" else (values**2).sum(axis=1)
    assert squares[~far].max() < 50
    assert squares[far].min() > 1e7


@pytest.mark.parametrize(("kernel", "kind"), [(Linear(), "features"), (RBF(1.0), "gram")])
def test_outputs_of_weight_zero_do_not_move_the_centre(kernel, kind):
    """Even if they are near it, they might as well not be there."""
    used = np.arange(60) % 3 > 0
    found = embed(kernel, Y, kind, weight=used.astype(float)).values[used]
    expected = embed(kernel, Y[used], kind).values
    np.testing.assert_allclose(found[:, used] if kind == "gram" else found, expected, atol=1e-12)


def test_a_heavy_output_does_not_move_the_centre():
    """Most outputs keep their digits, even if one far away has most of the weight."""
    y, weight = np.r_[Y, [[1e7] * 3]], np.r_[np.ones(60), 100.0]
    np.testing.assert_array_equal(
        embed(Linear(), y, weight=weight).values, embed(Linear(), y).values
    )


@pytest.mark.parametrize("offset", [1e3, 3e4])
def test_a_factor_has_smaller_errors_than_its_matrix(offset):
    """Boosting goes on where the errors of inner products would hide what is left."""
    y = Y[:, :2] + offset
    model = OKBoost(150, kernel=Precomputed(y @ y.T), learning_rate=0.5, random_state=0)
    model.fit(Y, np.arange(60))
    assert model.embedding_ == "factor"
    assert model.train_loss_[-1] < 1e-7 * model.train_loss_[0]


def test_the_order_of_outputs_in_memory_does_not_matter():
    """The centre is the same to the last digit."""
    y = np.random.default_rng(0).normal(size=(1000, 20))
    found = embed(Linear(), np.asfortranarray(y)).values
    np.testing.assert_array_equal(found, embed(Linear(), y).values)


def test_digits_are_kept():
    """Neither an outlier nor a large offset costs digits of the differences between outputs."""
    y = np.round(Y * 8)
    far = embed(Linear(), np.r_[y, [[1e12] * y.shape[1]]]).values[:-1]
    np.testing.assert_allclose(far - far[0], y - y[0], rtol=0, atol=1e-12)
    wide = np.random.default_rng(0).integers(0, 9, size=(30, 90)).astype(float)
    for kind in ("auto", "gram"):
        expected = embed(Linear(), wide, kind).values
        shifted = embed(Linear(), wide + 2.0**40, kind).values
        np.testing.assert_allclose(shifted, expected, rtol=0, atol=1e-3)


def test_functions_keep_their_arrays():
    """Centring does not modify an array that the kernel function owns."""
    K = Y @ Y.T
    before = K.copy()
    embed(FromCallable(lambda a, b: K), np.arange(60))
    np.testing.assert_array_equal(K, before)


def test_errors_of_a_factor_do_not_depend_on_repetitions():
    """They are relative to the mean square of a direction, not to its sum."""
    factor = rng.normal(size=(30, 3))
    scales = (factor**2).sum(axis=1) + 1.0
    repeated = factor_errors(np.tile(factor, (20, 1)), np.tile(scales, 20))
    np.testing.assert_allclose(repeated, np.tile(factor_errors(factor, scales), 20))
