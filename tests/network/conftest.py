"""A small network whose links can be predicted from its features."""

import pytest

from reference.network import make_network


@pytest.fixture
def network():
    return make_network()
