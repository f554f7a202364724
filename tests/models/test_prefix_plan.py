"""The prefix tree holds every distinct token once; a plan covers it, parents first, within the budget."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prbench.models.local.prefix.plan import Cost, halves, plan
from prbench.models.local.prefix.tree import Tree

SEQUENCES = st.lists(st.lists(st.integers(0, 3), max_size=12), max_size=30)
COSTS = st.builds(Cost, st.floats(1e-6, 1.0), st.floats(1e-6, 100.0))


@given(SEQUENCES)
def test_tree_spells_every_sequence_and_holds_each_prefix_once(sequences):
    tree = Tree(sequences)
    for index, source in enumerate(tree.order):
        node, path = tree.last[index], []
        while node is not None:
            assert node.low <= index < node.high
            path = tree.arrays[node.low][node.start : node.end].tolist() + path
            node = node.parent
        assert path == sequences[source]
    assert tree.root.total == len({tuple(ids[: end + 1]) for ids in sequences for end in range(len(ids))})
    assert all(node.size for node in tree.nodes() if node is not tree.root)


@given(SEQUENCES.filter(any))
def test_node_at_finds_the_token(sequences):
    tree = Tree(sequences)
    for index, ids in enumerate(tree.arrays):
        for position in range(len(ids)):
            node = tree.node_at(index, position)
            assert node.start <= position < node.end
            assert node.low <= index < node.high


@given(SEQUENCES, COSTS, st.integers(1, 40), st.integers(1, 40))
def test_plan_computes_what_is_needed_parents_first(sequences, cost, pack_tokens, most_tokens):
    tree = Tree(sequences)
    work = plan(tree, cost, min(pack_tokens, most_tokens), most_tokens)
    done = {tree.root}
    kept = {0: tree.root}
    for step in work.steps:
        inside = set()
        for piece in step.pieces:
            assert piece.node not in done
            assert piece.node.parent in inside or piece.node.parent is kept[step.prefix]
            inside.add(piece.node)
        assert step.tokens <= most_tokens or len(step.pieces) == 1
        done |= inside
        if len(step.pieces) == 1:
            kept[step.pieces[0].end] = step.pieces[0].node
    plain = set(work.plain)
    assert len(plain) == len(work.plain)
    for index, ids in enumerate(tree.arrays):
        if len(ids):
            assert index in plain or tree.last[index] in done


def pair(profile: int) -> list[list[int]]:
    stem = list(range(profile))
    return [[*stem, 10_000 + side, *range(20_000, 20_129)] for side in range(2)]


def test_a_long_profile_is_run_once_and_kept():
    work = plan(Tree(pair(1500)), Cost(5e-4, 24), 256, 8192)
    assert [(step.prefix, step.tokens) for step in work.steps] == [(0, 1500), (1500, 260)]
    assert work.plain == []


def test_a_short_shared_beginning_has_no_pass_of_its_own():
    sequences = [[1, 2, 3, 10 + index, *range(100, 220)] for index in range(8)]
    work = plan(Tree(sequences), Cost(5e-4, 24), 256, 8192)
    assert all(step.tokens > 3 for step in work.steps)


def test_deep_trees_need_no_recursion():
    sequences = [[0] * length for length in range(1, 3000)]
    work = plan(Tree(sequences), Cost(5e-4, 24), 256, 8192)
    assert sum(step.tokens for step in work.steps) == 2999


@given(SEQUENCES.filter(any), st.integers(0, 3))
def test_halves_do_the_same_work_in_smaller_passes(sequences, times):
    work = plan(Tree(sequences), Cost(1e-6, 1e-6), 1000, 1000)
    assume(work.steps)
    step = work.steps[-1]
    steps = [step]
    for _ in range(times):
        steps = [half for one in steps for half in halves(one) or [one]]
    assert sum(one.tokens for one in steps) == step.tokens
    assert [piece.node for one in steps for piece in one.pieces] == [piece.node for piece in step.pieces]


def test_cost_of_a_pass():
    assert Cost(0.001, 10).plain(100) == pytest.approx(110)
    assert Cost(1e-4, 100).best_pack(8192) == 1000
