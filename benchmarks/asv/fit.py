"""CPU time and peak memory of fit."""

from time import process_time

from okforest import OKBoost, OKExtraTrees, OKRandomForest, OKRidge, OKTree
from okforest.kernels import RBF
from okforest.segments import RandomSubwindows, SegmentClassifier

from .data import digits, label_sets, labels, numbers

CASES = {
    "extra-trees, RBF": (OKExtraTrees(50, kernel=RBF(2.0), random_state=0), digits),
    "extra-trees, linear": (OKExtraTrees(50, random_state=0), digits),
    "extra-trees, classes": (OKExtraTrees(50, kernel="dirac", random_state=0), labels),
    "random forest, label sets": (
        OKRandomForest(30, kernel="hamming", random_state=0),
        label_sets,
    ),
    "random forest, one output": (OKRandomForest(10, random_state=0), numbers),
    "tree, RBF": (OKTree(kernel=RBF(2.0), random_state=0), digits),
    "boosting, RBF": (
        OKBoost(30, kernel=RBF(2.0), splitter="random", max_splits=20, random_state=0),
        digits,
    ),
    "ridge, RBF": (OKRidge(1e-2, kernel=RBF(2.0), input_kernel="rbf"), digits),
}


class Fit:
    """Models of several kinds, with one thread."""

    timer = process_time
    repeat, number, warmup_time = 3, 1, 0
    params = tuple(CASES)
    param_names = ("model",)

    def setup(self, name):
        """Make the data."""
        self.model, make = CASES[name]
        self.X, self.y = make()

    def time_fit(self, name):
        """Fit."""
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, name):
        """Fit, and measure the memory of the process."""
        self.model.fit(self.X, self.y)


class FitSegments:
    """Images cut into random windows."""

    timer = process_time
    repeat, number, warmup_time = 3, 1, 0

    def setup(self):
        """Make images of bytes."""
        X, self.y = labels(400)
        self.images = (X.reshape(-1, 8, 8) * 15).astype("uint8")
        self.model = SegmentClassifier(RandomSubwindows(30), random_state=0)

    def time_fit(self):
        """Cut windows and grow trees on them."""
        self.model.fit(self.images, self.y)
