"""Fixtures and small data that several tests share."""

import os
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("okforest", deadline=None, max_examples=40)
hypothesis.settings.load_profile("okforest")


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of published data sets, named by OKFOREST_DATA."""
    folder = os.environ.get("OKFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("OKFOREST_DATA does not name a folder of data sets")
    return Path(folder)
