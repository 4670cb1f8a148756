"""CPU time of predictions: many rows, one row, decoding, scores, files."""

import tempfile
from pathlib import Path
from time import process_time

import okforest
from okforest import OKExtraTrees, OKRandomForest
from okforest.kernels import RBF

from .data import digits, label_sets


class Predict:
    """A forest of 100 trees with the RBF kernel on 800 digits, and with label sets."""

    timer = process_time
    repeat, number, warmup_time = 5, 1, 0

    def setup(self):
        """Fit, and predict once, so that what every prediction needs is kept."""
        X, y = digits(1600)
        self.X = X[800:]
        self.y = y[800:]
        self.forest = OKExtraTrees(100, kernel=RBF(2.0), random_state=0).fit(X[:800], y[:800])
        self.forest.predict(self.X[:1])
        X, Y = label_sets(1200)
        self.sets = OKRandomForest(50, kernel="hamming", random_state=0).fit(X[:600], Y[:600])
        self.new = X[600:]

    def time_apply(self):
        """Follow the trees to the leaves."""
        self.forest.apply(self.X)

    def time_predict_weights(self):
        """Return weights over the training outputs."""
        self.forest.predict_weights(self.X)

    def time_predict(self):
        """Decode: search the nearest training output."""
        self.forest.predict(self.X)

    def time_predict_one_row(self):
        """Decode one row."""
        self.forest.predict(self.X[:1])

    def time_score(self):
        """Return the kernel R²."""
        self.forest.score(self.X, self.y)

    def time_expected_f1(self):
        """Find the sets of the largest expected F1 score."""
        self.sets.set_params(decoder="expected_f1").predict(self.new)


class Files:
    """A saved forest of 100 trees."""

    timer = process_time
    repeat, number, warmup_time = 5, 1, 0

    def setup(self):
        """Fit and save."""
        X, y = digits()
        self.forest = OKExtraTrees(100, kernel=RBF(2.0), random_state=0).fit(X, y)
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "forest.okforest"
        okforest.save(self.forest, self.path)

    def teardown(self):
        """Remove the file."""
        self.folder.cleanup()

    def time_save(self):
        """Save."""
        okforest.save(self.forest, self.path)

    def time_load(self):
        """Load."""
        okforest.load(self.path)

    def track_size(self):
        """Return the size of the file."""
        return self.path.stat().st_size

    track_size.unit = "bytes"


def timeraw_import():
    """Import okforest in a new process, after scikit-learn."""
    return "import okforest", "import sklearn.base"
