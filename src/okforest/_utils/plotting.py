"""What every plot shares: matplotlib, imported when a plot is drawn; new axes; colours."""

from typing import TYPE_CHECKING, Any

from okforest._utils.errors import install_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = "#5b6770"
NEUTRAL = "#f2f2f2"
BAR = "#94b4ce"
CURVES = ("#4a7ba6", "#c8792f", "#4d8f5b", "#8a6aa8", "#9c9c9c")
DARKEST_SHADE = (0x7F, 0xA8, 0xC9)


def require_matplotlib() -> Any:
    """Return ``matplotlib.pyplot``, or raise an ImportError that names the extra to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"plotting needs matplotlib, which is not installed: {install_extra('plot')}"
        ) from error
    return plt


def new_axes(ax: "Axes | None" = None, figsize: tuple[float, float] | None = None) -> "Axes":
    """Return the given axes, or the axes of a new pyplot figure; ``figsize`` is in inches."""
    if ax is not None:
        if not hasattr(ax, "transData"):
            raise TypeError(
                f"ax is of type {type(ax).__name__}; expected one matplotlib Axes, such as "
                "plt.subplots()[1]."
            )
        return ax
    new: Axes = require_matplotlib().subplots(figsize=figsize, layout="constrained")[1]
    return new


def new_figure(figsize: tuple[float, float] | None = None) -> "Figure":
    """Return an empty figure unknown to pyplot: no window shows it, and it needs no closing."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=figsize, layout="constrained")


def shade(fraction: float) -> str:
    """Return a colour from white (0) to blue (1)."""
    return "#" + "".join(f"{round(255 + (part - 255) * fraction):02x}" for part in DARKEST_SHADE)
