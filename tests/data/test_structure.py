"""A suite that loads can be run to its end: what would break the measures is refused with file and line."""

import json

import pytest

from pair_factory import make_pair
from prbench import evaluate, load_pairs
from prbench.contexts import user_stances
from prbench.errors import DataError
from prbench.results import PairRow


def row(name, user, chosen="x", rejected="y", **tags):
    return {"id": name, "user": user, "question": "Tea?", "chosen": chosen, "rejected": rejected, "tags": tags}


BROKEN = {
    "a couple of three": (
        [row("1", "ann", couple="c"), row("2", "bob", couple="c"), row("3", "eve", couple="c")],
        r"line 3, '3': couple 'c' has 3 users \('ann', 'bob', 'eve'\)",
    ),
    "a user in two couples": (
        [row("1", "ann", couple="c"), row("2", "ann", couple="d")],
        r"line 2, '2': user 'ann' is in couple 'd', but in 'c' at pairs.jsonl, line 1, '1'",
    ),
    "more axes than poles": (
        [row("1", "ann", axis="risk+brevity", pole="caution")],
        r"line 1, '1': axis 'risk\+brevity' and pole 'caution' have not equally many parts",
    ),
    "a mirror of one user": (
        [row("1", "ann", mirror="m"), row("2", "ann", "y", "x", mirror="m")],
        "mirror tag 'm' is broken: pairs.jsonl, line 1, '1', pairs.jsonl, line 2, '2' are not",
    ),
    "half a mirror": ([row("1", "ann", mirror="m")], "pairs.jsonl, line 1, '1' has no other half"),
    "a mirror over two splits": (
        [row("1", "ann", mirror="m", split="a"), row("2", "bob", "y", "x", mirror="m", split="b")],
        "one split",
    ),
}


@pytest.mark.parametrize(("rows", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_structure_is_refused_at_load_with_file_and_line(tmp_path, monkeypatch, rows, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    with pytest.raises(DataError, match=says):
        load_pairs("pairs.jsonl")


def test_pairs_in_memory_are_checked_before_a_model_is_asked():
    pairs = [make_pair(**row(str(n), user, couple="c")) for n, user in enumerate(["ann", "bob", "eve"])]
    asked = []
    with pytest.raises(DataError, match="couple 'c' has 3 users"):
        evaluate(lambda answer: asked.append(answer) or 1.0, pairs, contexts=["none"])
    assert not asked


def test_every_room_reads_axes_and_poles_in_the_same_way():
    one = make_pair(**row("1", "ann", axis="risk+shape", pole="caution+steps"))
    two = make_pair(**row("2", "ann", axis="risk"))
    assert one.stances == {"risk": "caution", "shape": "steps"}
    assert PairRow.of(one).stances == one.stances
    assert user_stances([one]) == {one.user: one.stances}
    assert two.stances == {}  # an axis without a pole says nothing
    with pytest.raises(DataError, match="not equally many parts"):
        _ = make_pair(**row("3", "ann", axis="risk+shape", pole="caution")).stances
