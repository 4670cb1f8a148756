"""Where the nodes of a drawn tree stand."""

from collections.abc import Iterable

from okforest.inspection._reading import Stop


def lay_out(stops: Iterable[Stop]) -> dict[int, tuple[float, int]]:
    """Return the column and row of each node.

    Ends stand in columns 0, 1, …, from left to right, parents in the middle of their children, and
    the root in row 0, so that neither edges nor columns of ends cross.
    """
    stops = list(stops)
    columns: dict[int, float] = {}
    for stop in stops:
        if stop.is_end:
            columns[stop.node] = float(len(columns))
    children: dict[int, list[int]] = {}
    for stop in stops:
        children.setdefault(stop.parent, []).append(stop.node)
    for stop in reversed(stops):  # children before their parent
        if not stop.is_end:
            left, right = children[stop.node]
            columns[stop.node] = (columns[left] + columns[right]) / 2
    return {stop.node: (columns[stop.node], stop.depth) for stop in stops}
