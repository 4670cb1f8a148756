"""The colours of drawings."""

LINE = "#5b6770"
NEUTRAL = "#f2f2f2"
BAR = "#94b4ce"
CURVES = ("#4a7ba6", "#c8792f", "#4d8f5b", "#8a6aa8", "#9c9c9c")
PURE = (0x7F, 0xA8, 0xC9)


def shade(purity: float) -> str:
    """Return a colour from white (0: as mixed as the root) to blue (1: pure)."""
    return "#" + "".join(f"{round(255 + (part - 255) * purity):02x}" for part in PURE)
