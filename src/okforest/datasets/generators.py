"""Synthetic data of the papers."""

from typing import Any

from sklearn.datasets import make_friedman1 as scikit_learn_friedman1

from okforest._typing import Floats


def make_friedman1(n: int = 300, seed: Any = None) -> tuple[Floats, Floats]:
    """Generate the Friedman1 regression problem of the OKBoost paper.

    y = 10 sin(π x₁ x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅ + ε, with 10 inputs uniform on [0, 1], five
    of them irrelevant, and Gaussian noise ε of variance 1. The paper uses 300 rows for training and
    1,000 for testing.

    Parameters
    ----------
    n : int, default=300
        Number of rows.
    seed : int, RandomState instance or None
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (n, 10)
        Inputs.
    y : ndarray of shape (n,)
        Outputs.

    Examples
    --------
    >>> from okforest.datasets import make_friedman1
    >>> X, y = make_friedman1(300, seed=0)
    >>> X.shape, y.shape
    ((300, 10), (300,))
    """
    X, y = scikit_learn_friedman1(n, n_features=10, noise=1.0, random_state=seed)
    return X, y
