"""A tree drawn by matplotlib."""

import textwrap
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from okforest.inspection._colours import LINE, NEUTRAL, shade
from okforest.inspection._layout import lay_out
from okforest.inspection._matplotlib import new_axes
from okforest.inspection._reading import Reading, Stop, check_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

LINE_LENGTH = 18  # characters in a box before a test is continued on the next line
LARGEST_FONT, SMALLEST_FONT = 10.0, 3.0
PAD, GAP = 0.5, 0.2  # in font sizes: from a text to its box, and outside the box
LONGEST_SIDE = 60.0  # of a new figure, in inches

# In rows, whose middle is 0: the height that boxes may take, the middle of the box of a leaf with a
# drawn output, and where that output is.
BOX_HEIGHT = 0.72
BOX_HEIGHT_OVER_OUTPUT = 0.4
BOX_RISE = 0.25
OUTPUT_BOTTOM, OUTPUT_HEIGHT, OUTPUT_WIDTH = -0.41, 0.44, 0.84


def plot_tree(
    model: Any,
    tree: int = 0,
    *,
    ax: "Axes | None" = None,
    max_depth: int | None = None,
    feature_names: Sequence[str] | None = None,
    decimals: int = 3,
    draw_output: Callable[["Axes", Any], object] | None = None,
) -> "Axes":
    """Draw a tree.

    A split shows its test, and its left branch is taken where that holds. A leaf shows its number
    (as ``apply`` has it), how many training rows are in it, the variance of their outputs in H,
    and the output nearest to their mean in H. Boxes are the bluer, the smaller that variance.
    Where a missing value goes is said only of tests that ask for nothing else.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest of okforest.
    tree : int, default=0
        Which tree of a forest.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure, as large as the tree needs.
    max_depth : int, optional
        Depth below which leaves are only counted; large trees are legible only with it.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in fitting, or x0, x1, …
    decimals : int, default=3
        Most decimals of a number.
    draw_output : callable, optional
        Called with small axes and an output, it draws the output of each leaf (an image, a curve),
        in place of its text.

    Returns
    -------
    ax : matplotlib Axes
        The drawing.

    See Also
    --------
    export_text : The same as text.
    export_graphviz : The same for Graphviz.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from okforest import OKTree
    >>> from okforest.inspection import plot_tree
    >>> digits = load_digits().data
    >>> tree = OKTree(kernel="rbf", max_depth=3).fit(digits[:300, :32], digits[:300, 32:])
    >>> def draw(ax, output):
    ...     ax.imshow(output.reshape(4, 8), cmap="gray_r")
    >>> ax = plot_tree(tree, draw_output=draw)
    """
    reading = Reading(model, tree, feature_names, decimals)
    if draw_output is not None:
        check_outputs(model, "draw_output")
    stops = list(reading.walk(max_depth))
    places = lay_out(stops)
    n_columns = sum(stop.is_end for stop in stops)
    n_rows = 1 + max(stop.depth for stop in stops)
    if ax is None:
        ax = new_axes(
            min(max(5.0, 1.5 * n_columns), LONGEST_SIDE),
            min(max(1.0, (1.1 if draw_output is None else 1.6) * n_rows), LONGEST_SIDE),
        )
    ax.set_axis_off()
    ax.set_xlim(-0.5, n_columns - 0.5)
    ax.set_ylim(0.5 - n_rows, 0.5 if n_rows == 1 else 0.4)  # row r is at height -r

    boxes = []
    for stop in stops:
        column, row = places[stop.node]
        drawn = draw_output is not None and reading.is_leaf(stop.node)
        height = -row + BOX_RISE if drawn else float(-row)
        if stop.depth > 0:
            _draw_edge(ax, places[stop.parent], column, height, stop)
        boxes.append(_draw_box(ax, column, height, reading, stop, not drawn))
        if draw_output is not None and drawn:
            output = model.outputs_[reading.prototype(stop.node)]
            _draw_inset(ax, column, row, draw_output, output)
    _fit_font(ax, boxes, BOX_HEIGHT if draw_output is None else BOX_HEIGHT_OVER_OUTPUT)
    return ax


def _draw_box(
    ax: "Axes", x: float, y: float, reading: Reading, stop: Stop, show_prototype: bool
) -> "Text":
    if stop.is_end:
        words = "\n".join(reading.facts(stop.node, show_prototype))
    else:
        # A sign stays with its number, which is what a non-breaking space is for.
        test = str(reading.test(stop.node)).replace("≤ ", "≤\xa0").replace("in {", "in\xa0{")
        words = textwrap.fill(test, LINE_LENGTH, break_long_words=False, break_on_hyphens=False)
    return ax.text(
        x,
        y,
        words,
        ha="center",
        va="center",
        fontsize=LARGEST_FONT,
        linespacing=1.25,
        parse_math=False,  # a name may have a dollar sign
        zorder=2,
        in_layout=False,  # or a layout engine would make room for it, by smaller axes
        bbox={
            "boxstyle": f"round,pad={PAD},rounding_size=0.3",
            "facecolor": shade(reading.purity(stop.node)) if reading.has_outputs else NEUTRAL,
            "edgecolor": LINE,
            "linewidth": 0.8,
        },
    )


def _draw_edge(ax: "Axes", parent: tuple[float, int], x: float, y: float, stop: Stop) -> None:
    """Draw an edge down, across and down, between rows: it meets no box on its way."""
    parent_x, row = parent
    middle = -row - 0.5
    ax.plot([parent_x, parent_x, x, x], [-row, middle, middle, y], color=LINE, lw=0.9, zorder=1)
    if stop.depth == 1:
        ax.text(
            (parent_x + x) / 2,
            middle,
            "yes" if stop.is_left else "no",
            ha="center",
            va="center",
            fontsize=LARGEST_FONT - 1,
            color=LINE,
            bbox={"facecolor": ax.figure.get_facecolor(), "edgecolor": "none", "pad": 1.5},
        )


def _draw_inset(
    ax: "Axes", column: float, row: int, draw: Callable[["Axes", Any], object], output: Any
) -> None:
    bounds = (column - OUTPUT_WIDTH / 2, -row + OUTPUT_BOTTOM, OUTPUT_WIDTH, OUTPUT_HEIGHT)
    inset = ax.inset_axes(bounds, transform=ax.transData, zorder=3)
    draw(inset, output)
    inset.set_anchor("N")
    inset.set_xticks([])
    inset.set_yticks([])
    for spine in inset.spines.values():
        spine.set(color=LINE, linewidth=0.8)


def _fit_font(ax: "Axes", boxes: list["Text"], box_height: float) -> None:
    """Shrink the font of all boxes until none overlaps another in its row, or leaves the row."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # for a layout engine to give the axes their final size
    font = LARGEST_FONT
    for _ in range(4):  # widths are not quite in proportion to the font: letters fill whole pixels
        room = _room(ax, boxes, box_height, 2 * (PAD + GAP) * font * figure.dpi / 72)
        if room >= 1.0 or font <= SMALLEST_FONT:
            break
        font = max(SMALLEST_FONT, font * room)
        for box in boxes:
            box.set_fontsize(font)


def _room(ax: "Axes", boxes: list["Text"], box_height: float, margin: float) -> float:
    """Return how many times larger boxes could be; sizes in pixels, a margin around their texts."""
    zero, one = ax.transData.transform([(0.0, 0.0), (1.0, 1.0)])
    column, row = one - zero
    left, right = ax.get_xlim()
    extents = [box.get_window_extent() for box in boxes]
    rooms = [row * box_height / (extent.height + margin) for extent in extents]
    by_row: dict[int, list[tuple[float, float]]] = {}
    for box, extent in zip(boxes, extents, strict=True):
        x, y = box.get_position()
        by_row.setdefault(round(y), []).append((x, extent.width + margin))
    for in_row in by_row.values():
        in_row.sort()
        for (x, width), (next_x, next_width) in pairwise(in_row):
            rooms.append(2 * column * (next_x - x) / (width + next_width))
        for x, width in (in_row[0], in_row[-1]):
            rooms.append(2 * column * min(x - left, right - x) / width)
    return float(min(rooms))
