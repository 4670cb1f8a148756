"""A thousand randomly damaged files: an error or a model that predicts, never a crash or a hang."""

import collections
import multiprocessing
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import okforest
from okforest.persistence import FileFormatError

FILES_PER_MODEL = 500
SECONDS = 200

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
SPARSE = sp.csr_array(np.where(X > 0, X, 0.0))
MODELS = {
    "forest": (okforest.OKExtraTrees(3, kernel="rbf", random_state=0), X),
    "sparse neighbours": (okforest.OKNeighbors(3), SPARSE),
}


def damage(content, header_size, rng):
    """Return bytes with a random fault, in the header as often as anywhere."""
    content = bytearray(content)
    size = header_size if rng.random() < 0.5 else len(content)
    at = int(rng.integers(size))
    run = int(rng.integers(1, 64))
    fault = rng.integers(5)
    if fault == 0:
        for place in (at, *rng.integers(size, size=rng.integers(3))):
            content[place] ^= 1 << int(rng.integers(8))
    elif fault == 1:
        content[at : at + run] = rng.bytes(len(content[at : at + run]))
    elif fault == 2:
        del content[at:]
    elif fault == 3:
        content[at:at] = rng.bytes(run)
    else:
        del content[at : at + run]
    return bytes(content)


def load_damaged(counts, path, inputs):
    """Load damaged files, in memory and mapped, and report how many were refused or loaded."""
    rng = np.random.default_rng(0)
    content = path.read_bytes()
    header_size = 32 + int.from_bytes(content[12:20], "little")
    expected = okforest.load(path).predict(inputs)
    found = collections.Counter()
    for _ in range(FILES_PER_MODEL):
        path.write_bytes(damage(content, header_size, rng))
        for mmap in (False, True):
            try:
                model = okforest.load(path, mmap=mmap)
            except FileFormatError:
                found["refused", mmap] += 1
            else:
                with np.errstate(all="ignore"):  # mapped outputs may be any numbers
                    predicted = model.predict(inputs)
                    model.predict_weights(inputs)
                    model.predict_kernel(inputs)
                found["loaded", mmap] += 1
                assert mmap or (predicted == expected).all()
    counts.put(found)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize(("model", "inputs"), MODELS.values(), ids=MODELS)
def test_damaged_files(tmp_path, model, inputs):
    """In a separate process, so that a crash or a hang is a failure of this test."""
    okforest.save(model.fit(inputs, X), tmp_path / "model")
    context = multiprocessing.get_context("fork")
    counts = context.Queue()
    process = context.Process(target=load_damaged, args=(counts, tmp_path / "model", inputs))
    process.start()
    process.join(SECONDS)
    process.kill()
    assert process.exitcode == 0
    found = counts.get()
    assert found["refused", False] + found["loaded", False] == FILES_PER_MODEL
    assert found["refused", True] + found["loaded", True] == FILES_PER_MODEL
    assert found["loaded", False] < FILES_PER_MODEL // 50  # faults in the zeros between arrays only
    assert found["refused", True] > FILES_PER_MODEL // 2
