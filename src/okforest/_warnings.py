"""Warnings that point at the line of the user's code that calls okforest."""

import sys
import warnings

INSIDE = ("okforest", "sklearn", "joblib")  # packages whose frames are not the user's


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is outside of these packages."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
