"""Loading where the user's classes are not imported, in a fresh interpreter."""

import subprocess
import sys

import numpy as np

import okforest
from extending.user_classes import CommonSubstrings, HeavyOutputs, KernelSmoother

PROGRAM = """
import sys
import numpy as np
import okforest
from okforest import OKModel
from okforest.decode import SearchDecoder
from okforest.kernels import OutputKernel

path, source = sys.argv[1:]
try:
    okforest.load(path)
except okforest.persistence.FileFormatError as error:
    print(error)
assert "extending" not in sys.modules
exec(open(source).read())  # the classes, now of __main__
try:
    okforest.load(path)
except okforest.persistence.FileFormatError as error:
    print(error)
model = okforest.load(path, types=[KernelSmoother, HeavyOutputs, CommonSubstrings])
print(*model.predict(np.zeros((1, 3))))
okforest.save(model, path)
print(*okforest.load(path).predict(np.zeros((1, 3))))
"""


def test_unknown_classes(tmp_path):
    """The error names the class and what to do; with types= the file is loaded."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    words = np.where(X[:, 0] > 0, "tree", "forest")
    model = KernelSmoother(kernel=CommonSubstrings(), decoder=HeavyOutputs(0.3)).fit(X, words)
    path = tmp_path / "model.okforest"
    okforest.save(model, path)
    source = sys.modules[KernelSmoother.__module__].__file__
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, source], capture_output=True, text=True, check=True
    )
    *messages, first, second = result.stdout.splitlines()
    expected = (
        f"{path} cannot be loaded: it needs the class KernelSmoother "
        "(extending.user_classes:KernelSmoother), and load does not import modules that a file "
        "names. Import extending.user_classes first, or pass types=[KernelSmoother] to load."
    )
    assert messages == [expected, expected]
    assert first == second == model.predict(np.zeros((1, 3)))[0]
    # Saved by a script, with classes of __main__, and loaded with classes of the module.
    types = [KernelSmoother, HeavyOutputs, CommonSubstrings]
    loaded = okforest.load(path, types=types)
    assert type(loaded) is KernelSmoother
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
