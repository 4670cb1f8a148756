"""Every experiment, small and on synthetic data: its jobs run and give its tables and figures."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import Bunch

from okforest._utils.report import Figure, Table, save_figures
from okforest.datasets import make_textures
from okforest.network.graphs import Graph
from papers import (
    EXPERIMENTS,
    boosting,
    boosting_curves,
    boosting_network,
    data,
    friedman,
    image,
    irma,
    network,
    network_interpretation,
)
from papers.jobs import Cache, run
from reference.network import make_network

SIZES = {
    "image": image.Size(trees=2, seeds=2, folds=2, grid_step=6),
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
    "friedman": friedman.Size(trees=2, rounds=3, splits=(1, 2), samples=2, tests=2),
    "network": network.Size(trees=2, folds=2),
    "irma": irma.Size(trees=2, subwindows=10),
}
N_BLOCKS = {
    "image": (2, 2),
    "boosting": (3, 2),
    "friedman": (1, 0),
    "network": (5, 4),
    "irma": (1, 0),
}


@pytest.fixture
def own_copies(monkeypatch, tmp_path):
    """Write small stand-ins of the data that users may have, and are not available to us."""
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    rng = np.random.default_rng(0)
    textures, _ = make_textures(16, size=32, seed=0)
    for i, texture in enumerate(textures):
        texture = texture // 2 if i % 2 else 255 - texture // 2  # dark and bright ones
        folder = tmp_path / "irma" / ("train" if i < 10 else "test") / ("dark", "bright")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pillow.fromarray(texture).save(folder / f"{i}.png")
    small = make_network(60)
    folder = tmp_path / "enzymes"
    folder.mkdir()
    for group in data.ENZYME_GROUPS:
        columns = ",".join(f"{group} {j}" for j in range(small.X.shape[1]))
        rows = [
            ",".join([f"e{i}", *map(str, row + rng.normal(0, 0.1, len(row)))])
            for i, row in enumerate(small.X)
        ]
        (folder / f"{group}.csv").write_text("\n".join([f"name,{columns}", *rows]))
    links = zip(*sp.triu(sp.csr_array(small.graph)).nonzero(), strict=True)
    lines = ["a,b", *(f"e{i},e{j}" for i, j in links)]
    (folder / "edges.csv").write_text("\n".join(lines))
    monkeypatch.setenv("OKFOREST_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def synthetic(monkeypatch):
    """Replace the published images and proteins by synthetic ones."""
    rng = np.random.default_rng(0)
    images = rng.uniform(-1, 1, (10, 1, 256)) + rng.normal(0, 0.2, (10, 100, 256))
    small = make_network(60)

    def load_network(features="all", network="proteins"):
        names = [f"x{i}" for i in range(12)]
        X = np.hstack([small.X] * 4)[:, :12]
        return data.ProteinNetwork(X, Graph(small.graph, small.names), names)

    for module in (data, image, boosting):
        monkeypatch.setattr(module, "load_images", lambda: images)
    for module in (data, network, network_interpretation):
        monkeypatch.setattr(module, "load_network", load_network)
    for module in (image, boosting):
        monkeypatch.setattr(module, "load_usps", lambda: Bunch(files=[]))
    for module in (network, boosting):
        monkeypatch.setattr(module, "load_yeast", lambda: Bunch(files=[]))
    for module in (boosting_network, boosting_curves):
        monkeypatch.setattr(module, "N_VERTICES", 30)
    network_interpretation._clusters.cache_clear()
    yield
    network_interpretation._clusters.cache_clear()


@pytest.mark.usefixtures("synthetic")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "image" else name
        for name in EXPERIMENTS
    ],
)
def test_experiment(tmp_path, name, request):
    """Tables are complete, with a row for every published one; figures are drawn."""
    if name == "irma":
        request.getfixturevalue("own_copies")
    experiment, size = EXPERIMENTS[name], SIZES[name]
    experiment.load()
    jobs = experiment.jobs(size)
    cache = Cache(tmp_path / "cache", name, experiment.VERSION)
    results = run(jobs, cache)
    blocks = experiment.blocks(results, size)
    tables = [block for block in blocks if isinstance(block, Table)]
    figures = [block for block in blocks if isinstance(block, Figure)]
    assert (len(tables), len(figures)) == N_BLOCKS[name]
    for table in tables:
        assert table.rows
        assert "nan" not in str(table.rows)
    save_figures(blocks, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == {figure.name for figure in figures}
    assert all(done.cached for done in run(jobs, cache))


def test_own_copy_of_the_enzymes(tmp_path, own_copies, monkeypatch):
    """A folder with the enzymes adds their jobs, and a table with the published values."""
    assert len(data.load_enzymes().files) == 4
    monkeypatch.setattr(network, "load_yeast", lambda: Bunch(files=["yeast"]))
    assert len(network.load()) == 5
    jobs = [job for job in network.jobs(SIZES["network"]) if "network" in job.arguments]
    results = run(jobs, Cache(tmp_path / "cache", "network", network.VERSION))
    table = network._enzyme_blocks(results)[-1]
    assert [row[1] for row in table.rows[:3]] == ["0.648 ± 0.046", "0.779 ± 0.030", "0.845 ± 0.022"]
    assert len(table.rows) == 9
    assert "nan" not in str(table.rows)
    monkeypatch.setenv("OKFOREST_DATA", str(tmp_path / "cache"))
    assert not any("network" in job.arguments for job in network.jobs(SIZES["network"]))


def test_own_copy_of_irma(own_copies, monkeypatch):
    """Dark and bright images are told apart; without the folders, the error has the layout."""
    assert irma.evaluate_subwindows(trees=2, subwindows=10)["rate"] == 100.0
    assert irma.evaluate_naive() == {"rate": 50.0, "train": 10, "test": 6, "classes": 2}
    monkeypatch.setenv("OKFOREST_DATA", str(own_copies / "irma"))
    with pytest.raises(FileNotFoundError, match=r"irma/train/CLASS/IMAGE\.png"):
        irma.load()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_is_smaller(name):
    """A quick run has fewer and cheaper jobs."""
    experiment = EXPERIMENTS[name]
    full, quick = experiment.jobs(experiment.FULL), experiment.jobs(experiment.QUICK)
    assert sum(job.cost for job in quick) < sum(job.cost for job in full) / 5
    assert {job.row for job in quick} <= {job.row for job in full}


def test_too_few_images(monkeypatch):
    """Test images do not replace missing training images."""
    target = np.tile(np.arange(10), 110)
    split = np.repeat(["train", "test"], [999, 101])
    usps = Bunch(data=np.zeros((1100, 256)), target=target, split=split, files=["zip.train.gz"])
    monkeypatch.setattr(data, "load_usps", lambda: usps)
    with pytest.raises(ValueError, match=r"zip.train.gz has 99 training images of the digit 9"):
        data.load_images.__wrapped__()
    usps.split = np.repeat(["test", "train"], [100, 1000])
    usps.data[100:] = 1.0
    assert (data.load_images.__wrapped__() == 1.0).all()


@pytest.mark.usefixtures("synthetic")
def test_folds_of_images():
    """One block of 20 images of each digit is for training, or all but one."""
    for fold in range(5):
        few, many = data.image_fold(200, fold), data.image_fold(800, fold)
        assert few.X.shape == (200, 128)
        np.testing.assert_array_equal(few.X, many.X_test)
        np.testing.assert_array_equal(few.Y_test, many.Y)
    block = data.load_images()[3, 20:40, :128]
    np.testing.assert_array_equal(data.image_fold(200, 1).X[60:80], block)
    for train, test in data.inner_folds(800).split():
        assert len(test) == 160
        assert len(train) == 640
