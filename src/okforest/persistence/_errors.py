"""What is raised when a file cannot be loaded."""


class FileFormatError(ValueError):
    """A file that is no saved model: foreign, truncated, corrupted, or of a newer format."""
