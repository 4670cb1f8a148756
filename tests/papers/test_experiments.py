"""Every experiment, small and on made-up data: its jobs run, and make its tables and figures."""

import numpy as np
import pytest
from sklearn.utils import Bunch

from okforest.network._graphs import Graph
from okforest.papers import (
    EXPERIMENTS,
    Cache,
    Figure,
    Table,
    _boosting_curves,
    _boosting_network,
    _digits,
    _network_reading,
    _proteins,
    boosting,
    friedman,
    image,
    network,
    run,
    save_figures,
)
from reference.network import make_network

SIZES = {
    "image": image.Size(trees=2, seeds=2, folds=2, grid=6),
    "boosting": boosting.Size(
        trees=2,
        rounds=3,
        splits=(1, 2),
        network_splits=(1, 2),
        fixed_splits=(1,),
        folds=2,
        seeds=2,
        image_rounds=10,
        network_rounds=10,
    ),
    "friedman": friedman.Size(trees=2, rounds=3, splits=(1, 2), samples=2),
    "network": network.Size(trees=2, folds=2),
}
N_BLOCKS = {"image": (2, 2), "boosting": (3, 2), "friedman": (1, 0), "network": (5, 4)}


@pytest.fixture
def made_up(monkeypatch):
    """Put images and proteins of no meaning in the place of the published ones."""
    rng = np.random.default_rng(0)
    digits = rng.uniform(-1, 1, (10, 1, 256)) + rng.normal(0, 0.2, (10, 100, 256))
    small = make_network(60)

    def proteins(features="all"):
        names = [f"x{i}" for i in range(12)]
        X = np.hstack([small.X] * 4)[:, :12]
        return _proteins.Proteins(X, Graph(small.graph, small.names), names)

    for module in (_digits, image, boosting):
        monkeypatch.setattr(module, "images", lambda: digits)
    for module in (_proteins, network, _network_reading):
        monkeypatch.setattr(module, "proteins", proteins)
    for module in (image, boosting):
        monkeypatch.setattr(module, "usps", lambda: Bunch(files=[]))
    for module in (network, boosting):
        monkeypatch.setattr(module, "yeast", lambda: Bunch(files=[]))
    for module in (_boosting_network, _boosting_curves):
        monkeypatch.setattr(module, "N_VERTICES", 30)
    _network_reading._clusters.cache_clear()
    yield
    _network_reading._clusters.cache_clear()


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment(tmp_path, name):
    """Tables are full, rectangular, and have a row for every published one; figures are drawn."""
    experiment, size = EXPERIMENTS[name], SIZES[name]
    experiment.load()
    jobs = experiment.jobs(size)
    results = run(jobs, Cache(tmp_path / "cache"))
    blocks = experiment.blocks(results, size)
    tables = [block for block in blocks if isinstance(block, Table)]
    figures = [block for block in blocks if isinstance(block, Figure)]
    assert (len(tables), len(figures)) == N_BLOCKS[name]
    for table in tables:
        assert table.rows
        assert all(len(row) == len(table.header) for row in table.rows)
        assert "nan" not in str(table.rows)
    save_figures(blocks, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == {figure.name for figure in figures}
    everything = run(jobs, Cache(tmp_path / "cache"))
    assert all(done.earlier for done in everything)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_is_less(name):
    """A quick run has fewer and cheaper jobs."""
    experiment = EXPERIMENTS[name]
    full, quick = experiment.jobs(experiment.FULL), experiment.jobs(experiment.QUICK)
    assert sum(job.cost for job in quick) < sum(job.cost for job in full) / 5
    assert {job.row for job in quick} <= {job.row for job in full}


def test_too_few_images(monkeypatch):
    """Images for the test do not take the place of those to learn from."""
    target = np.tile(np.arange(10), 110)
    data, split = np.zeros((1100, 256)), np.repeat(["train", "test"], [999, 101])
    digits = Bunch(data=data, target=target, split=split, files=["zip.train.gz"])
    monkeypatch.setattr(_digits, "usps", lambda: digits)
    with pytest.raises(ValueError, match=r"are 99 images of the digit 9 .* in zip.train.gz"):
        _digits.images.__wrapped__()
    digits.split = np.repeat(["test", "train"], [100, 1000])
    digits.data[100:] = 1.0
    assert (_digits.images.__wrapped__() == 1.0).all()


@pytest.mark.usefixtures("made_up")
def test_folds_of_images():
    """Blocks of 20 images of each digit: one is learnt from, or all but one."""
    for fold in range(5):
        few, many = _digits.halves(200, fold), _digits.halves(800, fold)
        assert few.X.shape == (200, 128)
        np.testing.assert_array_equal(few.X, many.X_test)
        np.testing.assert_array_equal(few.Y_test, many.Y)
    first = _digits.images()[3, 20:40, :128]
    np.testing.assert_array_equal(_digits.halves(200, 1).X[60:80], first)
    inner = _digits.inner_folds(800)
    for train, test in inner.split():
        assert len(test) == 160
        assert len(train) == 640
