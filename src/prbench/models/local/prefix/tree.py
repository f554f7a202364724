"""A path-compressed prefix tree over token sequences: every distinct token stands in it once.

Sequences are put in lexicographic order, so that each node covers a contiguous range of them. A sequence ends where its
last node ends, never inside one; equal sequences share all their nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

_Ids = np.ndarray[tuple[int], np.dtype[np.uint32]]


@dataclass(eq=False)
class Node:
    """A run of tokens that all sequences of a range have in common, and where they part."""

    start: int
    """Position of its first token, which is the number of tokens on the way to it."""
    end: int
    low: int
    """The first of its sequences, in sorted order."""
    high: int = 0
    """One past the last of them."""
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    total: int = 0
    """Tokens of this node and all below it."""

    @property
    def size(self) -> int:
        """Tokens of this node alone."""
        return self.end - self.start


class Tree:
    """The prefix tree of some sequences.

    Example:
        >>> tree = Tree([[1, 2, 3], [1, 2, 4, 5], [1, 2]])
        >>> tree.root.total, [(node.start, node.end) for node in tree.nodes()]
        (5, [(0, 0), (0, 2), (2, 3), (2, 4)])
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        arrays: list[_Ids] = [np.asarray(ids, dtype=np.uint32) for ids in sequences]
        # Big-endian bytes sort as the numbers do, and a prefix sorts before what continues it.
        self.order = sorted(range(len(arrays)), key=lambda index: arrays[index].astype(">u4").tobytes())
        """Index of each sequence, in sorted order."""
        self.arrays = [arrays[index] for index in self.order]
        """The sequences, in sorted order."""
        self.root = Node(0, 0, 0)
        self.last: list[Node] = []
        """The node in which each sequence ends, in sorted order."""
        self._build()
        self._sum()

    def nodes(self) -> Iterator[Node]:
        """All nodes, parents before children, in sorted order; without recursion, for trees may be deep."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    def node_at(self, sequence: int, position: int) -> Node:
        """The node that holds a token of a sequence (numbered in sorted order)."""
        node = self.last[sequence]
        while node.start > position and node.parent is not None:
            node = node.parent
        return node

    def _build(self) -> None:
        tip = self.root
        for index, ids in enumerate(self.arrays):
            shared = _common_prefix(self.arrays[index - 1], ids) if index else 0
            while tip.parent is not None and tip.start >= shared:
                tip = tip.parent
            if tip.end > shared:
                tip = _split(tip, shared)
            if len(ids) > shared:
                leaf = Node(shared, len(ids), index, parent=tip)
                tip.children.append(leaf)
                tip = leaf
            self.last.append(tip)

    def _sum(self) -> None:
        for index, node in enumerate(self.last):
            node.high = index + 1
        for node in reversed(list(self.nodes())):
            node.total = node.size + sum(child.total for child in node.children)
            node.high = max([node.high, *(child.high for child in node.children)])


def _split(node: Node, position: int) -> Node:
    """Divide a node in two and return the upper part; what pointed to the node points to the lower one."""
    parent = node.parent
    upper = Node(node.start, position, node.low, parent=parent, children=[node])
    if parent is not None:
        parent.children[-1] = upper
    node.start, node.parent = position, upper
    return upper


def _common_prefix(left: _Ids, right: _Ids) -> int:
    size = min(len(left), len(right))
    differs = np.flatnonzero(left[:size] != right[:size])
    return int(differs[0]) if len(differs) else size
