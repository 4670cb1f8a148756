"""Checks of Gram matrices: what they refuse, and how far rounding errors may go."""

import numpy as np
import pytest

from okforest.embedding.choice import embed
from okforest.kernels import RBF, Hamming, Linear, Polynomial, Precomputed, Tuples, precomputed
from okforest.kernels.base import describe_kernel
from okforest.kernels.precomputed import check_gram

rng = np.random.default_rng(0)
VECTORS = rng.normal(size=(300, 3))
GRAM = VECTORS @ VECTORS.T


def changed(*entries):
    """Return the Gram matrix with some numbers added to its entries."""
    K = GRAM.copy()
    for row, column, value in entries:
        K[row, column] += value
    return K


def test_rounding_errors_pass():
    """Asymmetries and negative eigenvalues up to 1e-8 of the largest entry are accepted."""
    scale = np.abs(GRAM).max()
    check_gram(GRAM, "K")
    check_gram(changed((270, 2, 0.9e-8 * scale)), "K")
    check_gram(GRAM - 0.9e-8 * scale * np.eye(300), "K")
    check_gram(np.zeros((3, 3)), "K")


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (
            changed((270, 2, 1e-6)),
            r"K is asymmetric: entries \(2, 270\) and \(270, 2\) differ by 1e-06\. .*use "
            r"\(K \+ K.T\) / 2",
        ),
        (changed((270, 2, np.nan)), "K has NaN or infinite entries; all entries must be finite"),
        (changed((270, 2, np.inf)), "K has NaN or infinite"),
        (
            changed((270, 270, -GRAM[270, 270] - 1e-3)),
            r"K is indefinite: entry \(270, 270\) is -0.001, below zero",
        ),
        (
            changed((270, 2, 20.0), (2, 270, 20.0)),
            r"K is indefinite: entry \((2, 270|270, 2)\) is too large for entries "
            r"\((2, 2|270, 270)\) and \((2, 2|270, 270)\); a kernel satisfies",
        ),
        (
            np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]),
            r"K is indefinite: its smallest eigenvalue is -0.273, .* Add 0.273 to the diagonal",
        ),
    ],
)
def test_what_is_refused(K, message):
    with pytest.raises(ValueError, match=message):
        check_gram(K, "K")


def test_large_matrices_are_tested_on_a_block(monkeypatch):
    """A factorisation of the whole matrix would cost too much; pairs are tested everywhere."""
    monkeypatch.setattr(precomputed, "LARGEST_TESTED", 20)
    sizes = []
    cholesky = precomputed.sla.cholesky
    monkeypatch.setattr(precomputed.sla, "cholesky", lambda K: sizes.append(len(K)) or cholesky(K))
    check_gram(GRAM, "K")
    assert sizes == [20]
    with pytest.raises(ValueError, match="below zero"):
        check_gram(changed((270, 270, -GRAM[270, 270] - 1e-3)), "K")
    negative = GRAM - 0.5 * np.diag(np.diagonal(GRAM))  # every block is indefinite
    with pytest.raises(ValueError, match="indefinite"):
        check_gram(negative, "K")


def test_errors_name_a_kernel_without_its_matrix():
    """The entries of a matrix would hide what is wrong; repr has them."""
    K = Precomputed(np.ones((4, 4)) - 2 * np.eye(4))
    assert describe_kernel(K) == "Precomputed(gram=<4 × 4 matrix>)"
    assert "array" in repr(K)
    with pytest.raises(ValueError, match=r"^the Gram matrix of Precomputed\(gram=<4 × 4 m"):
        embed(K, np.arange(4))


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(),
        RBF(2.0) + 0.5 * Linear(),
        RBF(base=Linear()),
        Polynomial(3, gamma=float(1)),  # equal to the default, and another object
        Hamming(),
    ],
)
def test_kernels_without_matrices_are_named_by_their_repr(kernel):
    """Only what is long is left out."""
    assert describe_kernel(kernel) == repr(kernel)


def test_long_parameters_are_named_by_their_type():
    """Lists of kernels are shown."""
    kernel = Tuples([RBF(1.0), Precomputed(np.eye(3))])
    assert describe_kernel(kernel).endswith("[RBF(sigma=1.0), Precomputed(gram=<3 × 3 matrix>)])")
    assert describe_kernel(Precomputed(np.eye(30).tolist())) == "Precomputed(gram=<list>)"
