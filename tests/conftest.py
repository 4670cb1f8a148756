"""Settings and fixtures that several tests share."""

import os
import signal
import sys
from pathlib import Path

import hypothesis
import pytest

# Processes started in the background ignore Ctrl-C; tests of it need it here and in subprocesses.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("fast", deadline=None, max_examples=10)
hypothesis.settings.register_profile("full", deadline=None, max_examples=40)
hypothesis.settings.load_profile("fast")  # make test-all takes the other


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of published data sets, given by OKFOREST_DATA, or skip the test."""
    folder = os.environ.get("OKFOREST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("OKFOREST_DATA does not name a folder of data sets")
    return Path(folder)


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.cuda)])
def device(request, monkeypatch):
    """Return a device on which models grow trees and predict: an emulated one, and a GPU."""
    import cuda_host
    from okforest.engine import cuda, devices

    if request.param == "gpu":
        try:
            found = cuda.Device()
        except cuda.NoDeviceError as error:
            pytest.skip(str(error))
    else:
        if not cuda_host.available:
            pytest.skip("g++ is not installed")
        found = cuda_host.ArrayDevice()
        monkeypatch.setitem(sys.modules, "cupy", found.xp)
        monkeypatch.setattr(cuda, "Device", lambda: found)
    monkeypatch.setattr(devices, "gpu", lambda: found)
    return found


def pytest_runtest_setup():
    """Use the instruction set that OKFOREST_SIMD_LEVEL names, if any."""
    if level := os.environ.get("OKFOREST_SIMD_LEVEL"):
        from okforest.engine.cpu import choose_simd_level

        assert choose_simd_level(level), f"this machine does not have {level}"
