"""Plan of the passes over a prefix tree: what is run first and kept, what is packed together, what is run plainly.

Each node is taken in the cheapest of three ways. *Descend*: run its tokens in a pass of their own, keep their keys and
values for all that continues them. *Pack*: run it with everything below it, beside its siblings, in one sequence with a
block mask. *Plain*: run the sequences below it in full, in padded batches, sharing nothing. Depth first, so that the
keys and values of only one path are alive at any time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prbench.models.local.prefix.tree import Node, Tree


@dataclass(frozen=True)
class Cost:
    """Cost of a pass, in units of one token through the model's matrices.

    Example:
        >>> Cost(per_key=0.001, per_pass=10).packed(100, keys=500)
        160.0
    """

    per_key: float
    """Cost of one token's attention to one key."""
    per_pass: float
    """Cost of beginning a pass: reading the weights, starting the kernels."""
    siblings: bool = True
    """Whether the tokens of a pack are held, in vain, against those beside them."""

    def packed(self, tokens: int, keys: int) -> float:
        """A pass in which every token is held against so many keys."""
        return self.per_pass + tokens * (1 + self.per_key * keys)

    def plain(self, tokens: int) -> float:
        """A whole sequence in a padded batch; its share of the pass is left out."""
        return tokens * (1 + self.per_key * tokens)

    def best_pack(self, most: int) -> int:
        """Tokens per pack at which the price of a pass and that of attending in vain to siblings balance."""
        if not self.siblings:
            return min(most, _LARGEST_PACK)
        return max(min(most, _SMALLEST_PACK), min(most, round(math.sqrt(self.per_pass / self.per_key))))


_SMALLEST_PACK = 256
"""Smallest pack: below it, matrix products lose speed on every machine seen."""
_LARGEST_PACK = 1024
"""Largest pack: above it, matrix products gain nothing, and what lies between them leaves the processor's caches."""


class Piece(NamedTuple):
    """Some tokens of a node."""

    node: Node
    start: int
    end: int


class PrefixStep(NamedTuple):
    """One pass: pieces of the tree, each after its parent, over the path that earlier steps have left."""

    prefix: int
    """Tokens of the path that all pieces see."""
    pieces: tuple[Piece, ...]

    @property
    def tokens(self) -> int:
        """Tokens that this pass computes."""
        return sum(piece.end - piece.start for piece in self.pieces)


class PrefixPlan(NamedTuple):
    """Steps in order, and sequences (numbered in sorted order) to be run plainly."""

    steps: list[PrefixStep]
    plain: list[int]


def plan(tree: Tree, cost: Cost, pack_tokens: int, most_tokens: int) -> PrefixPlan:
    """Choose the cheapest way for every node and put the passes in order.

    Args:
        tree: What there is to compute.
        cost: Cost of a pass.
        pack_tokens: Tokens to gather in one pack.
        most_tokens: Tokens that no pack may exceed, unless a sequence parts from the others and has more left alone.
    """
    ways = _Ways(tree, cost, pack_tokens, most_tokens)
    steps: list[PrefixStep] = []
    plain: list[int] = []
    waiting = [tree.root]
    while waiting:
        node = waiting.pop()
        if node.size:
            steps.append(PrefixStep(node.start, (Piece(node, node.start, node.end),)))
        packed = [child for child in node.children if ways.of[child] == "pack"]
        steps += (PrefixStep(node.end, tuple(_pieces(group))) for group in _groups(packed, pack_tokens, most_tokens))
        for child in node.children:
            if ways.of[child] == "plain":
                plain += range(child.low, child.high)
        waiting += [child for child in reversed(node.children) if ways.of[child] == "descend"]
    return PrefixPlan(steps, plain)


def halves(step: PrefixStep) -> list[PrefixStep] | None:
    """The same work in smaller passes; None where it cannot be made smaller.

    Example:
        >>> node = Node(0, 64, 0)
        >>> [(half.prefix, half.tokens) for half in halves(PrefixStep(0, (Piece(node, 0, 64),)))]
        [(0, 32), (32, 32)]
    """
    starts = [index for index, piece in enumerate(step.pieces) if piece.start == step.prefix]
    first = step.pieces[0]
    if len(starts) > 1:
        middle = starts[len(starts) // 2]
        return [PrefixStep(step.prefix, step.pieces[:middle]), PrefixStep(step.prefix, step.pieces[middle:])]
    if len(step.pieces) > 1:
        return [PrefixStep(step.prefix, (first,)), PrefixStep(first.end, step.pieces[1:])]
    if step.tokens < 2 * _SMALLEST_PIECE:
        return None
    middle = (first.start + first.end) // 2
    return [
        PrefixStep(step.prefix, (first._replace(end=middle),)),
        PrefixStep(middle, (first._replace(start=middle),)),
    ]


_SMALLEST_PIECE = 16


class _Ways:
    """The cheapest way to take each node, found from the leaves up."""

    def __init__(self, tree: Tree, cost: Cost, pack_tokens: int, most_tokens: int) -> None:
        self._cost = cost
        self._pack_tokens = pack_tokens
        self._most_tokens = most_tokens
        self.of: dict[Node, str] = {}
        plain = [0.0]
        for ids in tree.arrays:
            plain.append(plain[-1] + cost.plain(len(ids)))
        least: dict[Node, float] = {}
        for node in reversed(list(tree.nodes())):
            below = sum(least.pop(child) for child in node.children)
            prices = {"pack": self._pack(node), "plain": plain[node.high] - plain[node.low]}
            if node.children:
                prices["descend"] = self._descend(node) + below
            self.of[node] = min(prices, key=lambda way: prices[way])
            least[node] = prices[self.of[node]]

    def _pack(self, node: Node) -> float:
        if node.parent is None or (node.children and node.total > self._most_tokens):
            return math.inf
        siblings = node.parent.total - node.parent.size
        pack = max(node.total, min(siblings, self._pack_tokens))
        keys = node.start + (pack if self._cost.siblings else node.total)
        return self._cost.packed(pack, keys) * node.total / pack

    def _descend(self, node: Node) -> float:
        # Tokens that attend to each other causally pay about half the price of a mask.
        causal = not node.start or not self._cost.siblings
        keys = node.start + (node.size // 2 if causal else node.size)
        return self._cost.packed(node.size, keys)


def _groups(nodes: Sequence[Node], pack_tokens: int, most_tokens: int) -> Iterator[list[Node]]:
    """Divide siblings into packs of about equal size, none above the most unless a node alone is."""
    total = sum(node.total for node in nodes)
    share = total / max(1, round(total / pack_tokens))
    group: list[Node] = []
    size = 0
    for node in nodes:
        if group and (size + node.total > most_tokens or size + node.total / 2 > share):
            yield group
            group, size = [], 0
        group.append(node)
        size += node.total
    if group:
        yield group


def _pieces(group: Sequence[Node]) -> Iterator[Piece]:
    waiting = list(reversed(group))
    while waiting:
        node = waiting.pop()
        yield Piece(node, node.start, node.end)
        waiting += reversed(node.children)
