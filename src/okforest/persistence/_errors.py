"""The error raised when a file cannot be loaded."""


class FileFormatError(ValueError):
    """A file that :func:`okforest.load` cannot load; the message says why and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import okforest
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.okforest")
    ...     size = path.write_bytes(b"something else")
    ...     try:
    ...         okforest.load(path)
    ...     except okforest.persistence.FileFormatError as error:
    ...         print(type(error).__name__)
    FileFormatError
    """
