"""Approximations of a Gram matrix by the book: dense, with full eigendecompositions."""

import numpy as np


def principal_gram(K, weight, rank):
    """Gram matrix of the outputs in their first principal directions, and the variance kept.

    Outputs are centred at their weighted mean; directions belong to the weighted covariance.
    """
    w = weight / weight.sum()
    centre = np.eye(len(K)) - np.outer(np.ones(len(K)), w)
    centred = centre @ K @ centre.T
    root = np.sqrt(w)
    variances, vectors = np.linalg.eigh(root[:, None] * centred * root)
    variances, vectors = variances[::-1], vectors[:, ::-1]
    coordinates = centred @ (root[:, None] * vectors[:, :rank]) / np.sqrt(variances[:rank])
    return coordinates @ coordinates.T, variances[:rank].sum() / variances.sum()


def greedy_cholesky(K, rank):
    """Gram matrix of the incomplete Cholesky decomposition that takes the largest residual."""
    residual = K.copy()
    for _ in range(rank):
        pivot = residual.diagonal().argmax()
        column = residual[:, pivot]
        residual = residual - np.outer(column, column) / column[pivot]
    return K - residual


def nystrom_gram(K, landmarks):
    """K_nm K_mm⁺ K_mn."""
    block = np.linalg.pinv(K[np.ix_(landmarks, landmarks)], rcond=1e-12, hermitian=True)
    return K[:, landmarks] @ block @ K[landmarks]
