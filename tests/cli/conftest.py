"""A small network in files; a folder of pictures, and an index of it."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from commands import SMALL, run
from reference.network import make_network
from reference.retrieval import make_images


@pytest.fixture
def files(tmp_path):
    """Write features.csv and links.csv; return their folder, the features and the links."""
    network = make_network()
    columns = ["a: one", "a: two", "a: three", "b: one", "b: two"]
    features = pd.DataFrame(network.X, index=network.names, columns=columns)
    features.iloc[::9, 3] = np.nan
    links = np.argwhere(np.triu(network.graph.toarray()))
    links = pd.DataFrame(network.names[links], columns=["from", "to"])
    features.to_csv(tmp_path / "features.csv")
    links.to_csv(tmp_path / "links.csv", index=False)
    return tmp_path, features, links


@pytest.fixture
def folder(tmp_path):
    """Write pictures in folders by class; return their folder."""
    images, labels = make_images(8)
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        path = tmp_path / "pictures" / label / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return tmp_path / "pictures"


@pytest.fixture
def index(folder):
    """Build an index of the pictures; return its folder."""
    path = folder.parent / "index"
    run("build", path, folder, *SMALL)
    return path
