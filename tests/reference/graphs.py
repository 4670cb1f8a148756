"""Kernels on vertices, by dense matrices."""

import numpy as np
import scipy.linalg as sla


def laplacian(A):
    A = A - np.diag(np.diag(A))
    return np.diag(A.sum(axis=0)) - A


def normalized_laplacian(A):
    L = laplacian(A)
    for i, degree in enumerate(np.diag(L).copy()):
        if degree > 0:
            L[i] /= np.sqrt(degree)
            L[:, i] /= np.sqrt(degree)
    return L


def diffusion(A, beta):
    return sla.expm(-beta * laplacian(A))


def regularized_laplacian(A, beta):
    return np.linalg.inv(np.eye(len(A)) + beta * laplacian(A))


def commute_time(A):
    return np.linalg.pinv(laplacian(A), hermitian=True)


def random_walk(A, steps, a):
    return np.linalg.matrix_power(a * np.eye(len(A)) - normalized_laplacian(A), steps)


def normalized(K):
    """Return the cosines; 0 for a vertex that is like nothing."""
    diag = np.diag(K)
    scale = np.array([1 / np.sqrt(k) if k > 1e-12 * diag.max() else 0.0 for k in diag])
    return scale[:, None] * K * scale
