"""Positions of the nodes in a plotted tree."""

from collections.abc import Iterable

from okforest.inspection._tree_view import Node


def node_positions(nodes: Iterable[Node]) -> dict[int, tuple[float, int]]:
    """Return the column and row of each node.

    Ends are in columns 0, 1, …, from left to right; parents are centred above their children; the
    root is in row 0. Edges therefore never cross.
    """
    nodes = list(nodes)
    columns: dict[int, float] = {}
    for node in nodes:
        if node.is_end:
            columns[node.number] = float(len(columns))
    children: dict[int, list[int]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node.number)
    for node in reversed(nodes):  # children before their parent
        if not node.is_end:
            left, right = children[node.number]
            columns[node.number] = (columns[left] + columns[right]) / 2
    return {node.number: (columns[node.number], node.depth) for node in nodes}
