"""Fixtures of the tests of segments."""

import inspect

import pytest


@pytest.fixture
def recorded(monkeypatch):
    """Replace a method by one that also records keep(its arguments by name, its result)."""

    def record(owner, name, keep):
        inner, seen = getattr(owner, name), []
        signature = inspect.signature(inner)

        def call(*args, **kwargs):
            result = inner(*args, **kwargs)
            seen.append(keep(signature.bind(*args, **kwargs).arguments, result))
            return result

        monkeypatch.setattr(owner, name, call)
        return seen

    return record
