"""Small images with parts in common."""

import time
from contextlib import contextmanager
from threading import Thread

import pytest
from PIL import Image

from okforest.retrieval import SubwindowIndex, Vocabulary
from okforest.segments import RandomSubwindows
from reference.retrieval import make_images

SEGMENTER = RandomSubwindows(20, size=8)


@pytest.fixture(scope="session")
def images():
    return make_images()[0]


@pytest.fixture(scope="session")
def labels():
    return make_images()[1]


@pytest.fixture(scope="session")
def vocabulary(images):
    return Vocabulary.grow(images, segmenter=SEGMENTER, n_trees=4, min_samples_split=12)


@pytest.fixture
def build(tmp_path, images, labels, vocabulary):
    """Return a function that builds an index of some of the images, named by their numbers."""

    def build_index(which=range(12), name="index", **options):
        which = list(which)
        return SubwindowIndex.build(
            tmp_path / name,
            images[which],
            names=[str(i) for i in which],
            labels=[labels[i] for i in which],
            **{"vocabulary": vocabulary, "thumbnail_side": 0} | options,
        )

    return build_index


@contextmanager
def servers():
    """Yield a function that serves an index in a thread, and returns the address."""
    uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    from okforest.retrieval import web

    running = []

    def start(index, **settings):
        application = web.create_app(index, web.ServerSettings(**settings))
        config = uvicorn.Config(application, port=0, log_level="error", http="h11", ws="none")
        one = uvicorn.Server(config)
        thread = Thread(target=one.run, daemon=True)
        thread.start()
        running.append((one, thread))
        while not one.started:
            assert thread.is_alive(), "the server has not started"
            time.sleep(0.01)
        return f"http://127.0.0.1:{one.servers[0].sockets[0].getsockname()[1]}"

    yield start
    for one, _ in running:
        one.should_exit = True
    for _, thread in running:
        thread.join(10)


@pytest.fixture
def serving():
    """Return a function that serves an index until the test ends."""
    with servers() as start:
        yield start


@pytest.fixture(scope="module")
def shared_serving():
    """Return a function that serves an index for all tests of a module, which do not change it."""
    with servers() as start:
        yield start


@pytest.fixture(scope="session")
def shared_index(tmp_path_factory, images, labels, vocabulary):
    """Return an index that tests do not change."""
    path = tmp_path_factory.mktemp("shared") / "index"
    return SubwindowIndex.build(path, images, labels=labels, vocabulary=vocabulary)


@pytest.fixture
def index_files(tmp_path, vocabulary):
    """Return a function that writes images in folders by class, and indexes them."""

    def build_index(images, labels, **options):
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            (tmp_path / "pictures" / label).mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(tmp_path / "pictures" / label / f"{i}.png")
        return SubwindowIndex.build(
            tmp_path / "index", tmp_path / "pictures", vocabulary=vocabulary, **options
        )

    return build_index


@pytest.fixture
def files(index_files):
    """Return an index of eight files, and the images."""
    images, labels = make_images(8)
    return index_files(images, labels), images
