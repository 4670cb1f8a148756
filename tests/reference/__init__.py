"""Slow and obvious NumPy versions of what okforest computes: the oracles of the tests."""
