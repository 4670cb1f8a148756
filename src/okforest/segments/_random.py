"""Random numbers of an object: they depend on its content and the seed, on nothing else.

The same object is cut into the same segments in every call, at every place in X, by any number of
threads. Two equal objects have equal segments, so that a row of weight two equals two equal rows.
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from okforest._typing import Floats

Seeds = npt.NDArray[np.uint64]

GAMMA = 0x9E3779B97F4A7C15


def content_seed(seed: int, parts: Iterable[npt.NDArray[np.generic] | bytes]) -> int:
    """Return a hash of the seed and the content of an object, 64 bits."""
    digest = blake2b(digest_size=8, key=int(seed).to_bytes(8, "little"))
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(part)
    return int.from_bytes(digest.digest(), "little")


def uniforms(seeds: Seeds, n_segments: int, n_draws: int) -> Floats:
    """Return numbers in [0, 1), shape (n_objects, n_segments, n_draws), by SplitMix64.

    The first segments of an object are the same for any number of segments.
    """
    counter = np.arange(1, n_segments * n_draws + 1, dtype=np.uint64)
    z = seeds[:, None] + counter * np.uint64(GAMMA)  # wraps around, as it should
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    z >>= np.uint64(11)
    return (z * 2.0**-53).reshape(len(seeds), n_segments, n_draws)


def below(u: Floats, n: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Turn numbers u in [0, 1) into integers from 0 to n − 1."""
    return (u * n).astype(np.intp)
