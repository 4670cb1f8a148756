"""A small network whose links its features foretell."""

import pytest

from reference.network import make_network


@pytest.fixture
def network():
    return make_network()
