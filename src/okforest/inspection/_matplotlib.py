"""matplotlib, imported when something is drawn and not before."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes(width: float, height: float) -> "Axes":
    """Return the axes of a new figure, sizes in inches."""
    require("drawing")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def require(purpose: str) -> None:
    """Raise an error that says what to install if there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs matplotlib, which is not installed; pip install okforest[plot]"
        ) from error
