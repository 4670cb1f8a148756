"""A kernel, a decoder and a model as users write them, in a module of their own."""

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from okforest import OKModel
from okforest.decode import SearchDecoder
from okforest.kernels import OutputKernel
from okforest.weights import DenseWeights


class CommonSubstrings(OutputKernel):
    """Counts the common substrings of a given length of two words."""

    known_psd = True

    def __init__(self, length=2):
        self.length = length

    def check(self, y):
        words = np.asarray(y)
        if words.ndim != 1 or words.dtype.kind != "U":
            raise ValueError(f"y has type {words.dtype}; it must be a list of words.")
        return words

    def __call__(self, y, z=None):
        z = y if z is None else z
        return np.array([[self._common(u, v) for v in z] for u in y], dtype=float)

    def _common(self, u, v):
        parts = [[w[i : i + self.length] for i in range(len(w))] for w in (u, v)]
        return sum(parts[0].count(part) * parts[1].count(part) for part in set(parts[0]))


class HeavyOutputs(SearchDecoder):
    """Searches the training outputs with at least a share of the largest weight."""

    def __init__(self, share=0.5):
        self.share = share

    def candidates(self, span):
        return span.training

    def allowed(self, W):
        weights = W.tocsr().toarray()
        return sp.csr_array((weights >= self.share * weights.max(axis=1, keepdims=True)) * 1.0)


class KernelSmoother(OKModel):
    """Weights training outputs by a Gaussian of the distance between inputs."""

    def __init__(self, bandwidth=1.0, kernel="linear", decoder="auto"):
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.decoder = decoder

    def fit(self, X, y, sample_weight=None):
        X = validate_data(self, X, dtype=np.float64)
        weight = np.ones(len(X))
        if sample_weight is not None:
            weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64)
        if weight.shape != (len(X),) or not weight.any():
            raise ValueError(f"sample_weight must hold {len(X)} weights, at least one not zero.")
        kernel, outputs = self.validate_outputs(X, y, weight)
        self.inputs_, self.row_weight_ = X.copy(), weight
        self.store_outputs(kernel, outputs)
        return self

    def weight_matrix(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        distances = euclidean_distances(X, self.inputs_, squared=True)
        distances[:, self.row_weight_ == 0] = np.inf
        nearest = distances.min(axis=1, keepdims=True)
        weights = self.row_weight_ * np.exp((nearest - distances) / (2 * self.bandwidth**2))
        return DenseWeights(weights / weights.sum(axis=1, keepdims=True))

    def check_state(self):
        super().check_state()
        shape = (len(self.outputs_), self.n_features_in_)
        if self.inputs_.shape != shape or self.row_weight_.shape != shape[:1]:
            raise ValueError("inputs_ and row_weight_ do not fit outputs_")
