"""A small network in files."""

import numpy as np
import pandas as pd
import pytest

from reference.network import make_network


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
