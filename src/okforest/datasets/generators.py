"""Artificial data of the papers."""

from typing import Any

from sklearn.datasets import make_friedman1 as scikit_learn_friedman1

from okforest._typing import Floats


def make_friedman1(n: int = 300, seed: Any = None) -> tuple[Floats, Floats]:
    """Draw a sample of the Friedman1 problem, as the OKBoost paper has it.

    y = 10 sin(π x₁ x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅ + ε, with 10 inputs uniform on [0, 1], of
    which five do not matter, and Gaussian noise ε of variance 1. The paper learns from 300 draws
    and tests on 1,000.

    Parameters
    ----------
    n : int, default=300
        How many.
    seed : int, RandomState instance or None
        The seed.

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
