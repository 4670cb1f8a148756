"""Saving models to one file and loading them, without executing code from the file."""

from okforest.persistence.container import FileFormatError
from okforest.persistence.description import FileDescription, describe
from okforest.persistence.saving import load, save

__all__ = ["FileDescription", "FileFormatError", "describe", "load", "save"]
