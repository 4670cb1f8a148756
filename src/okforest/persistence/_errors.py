"""The error raised when a file cannot be loaded."""


class FileFormatError(ValueError):
    """A file that :func:`okforest.load` cannot load; the message says why and what to do."""
