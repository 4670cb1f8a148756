"""A thousand randomly corrupted files: an error or a model that predicts, never a crash or hang."""

import collections
import subprocess
import sys
from pathlib import Path

import numpy as np

N_FILES = 1000


def corrupt(content, header_size, rng):
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


def main(folder):
    """Load files of all kinds of faults, both ways, and print how it went."""
    import okforest
    from okforest.persistence import FileFormatError

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    path = Path(folder) / "model.okforest"
    okforest.save(okforest.OKExtraTrees(3, kernel="rbf", random_state=0).fit(X, X), path)
    content = path.read_bytes()
    header_size = 32 + int.from_bytes(content[12:20], "little")
    expected = okforest.load(path).predict(X)
    counts = collections.Counter()
    for _ in range(N_FILES):
        path.write_bytes(corrupt(content, header_size, rng))
        for mmap in (False, True):
            try:
                model = okforest.load(path, mmap=mmap)
            except FileFormatError:
                counts["refused", mmap] += 1
            else:
                with np.errstate(all="ignore"):  # mapped outputs may be any numbers
                    predicted = model.predict(X)
                    model.predict_weights(X)
                    model.predict_kernel(X)
                counts["loaded", mmap] += 1
                assert mmap or (predicted == expected).all()
    print(*(counts[key, mmap] for mmap in (False, True) for key in ("refused", "loaded")))


def test_a_thousand_corrupted_files(tmp_path):
    """In a process of their own, so that a crash or a hang is seen, and is a failure."""
    result = subprocess.run(
        [sys.executable, __file__, tmp_path],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    refused, loaded, refused_mapped, loaded_mapped = map(int, result.stdout.split())
    assert refused + loaded == refused_mapped + loaded_mapped == N_FILES
    assert loaded < 20  # faults in the zeros between arrays alone
    assert refused_mapped > N_FILES // 2


if __name__ == "__main__":
    main(sys.argv[1])
