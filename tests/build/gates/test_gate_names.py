"""Gates as typed: names, thresholds, what is left out and what cannot run."""

import pytest

from gate_raters import BlindRater, CueJudge
from prbench.build.gates import KINDS, left_out, parse_gates
from prbench.errors import ConfigError

FREE = ["couples", "length-ratio", "rubric-copying", "profile-leakage", "language", "near-duplicates"]


def names(gates):
    return [gate.name for gate in gates]


def test_what_runs_depends_on_who_was_given():
    one, two = CueJudge("a:1"), CueJudge("b:2")
    assert names(parse_gates()) == FREE
    assert names(parse_gates(generator=BlindRater())) == [*FREE, "quality"]
    assert names(parse_gates(judges=[one])) == [*FREE, "rubric-margin"]
    assert names(parse_gates(judges=[one, two])) == [*FREE, "rubric-margin", "agreement"]
    assert names(parse_gates(judges=[one, two], generator=BlindRater())) == ["couples", *KINDS]


def test_what_does_not_run_can_be_named_in_a_report():
    assert left_out(parse_gates(["no:language"], judges=[CueJudge()])) == ("language", "quality", "agreement")


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ("length-ratio=1.25", "≤ 1.25"),
        ("rubric-copying=9", "< 9 words"),
        ("profile-leakage=11", "< 11 words"),
        ("near-duplicates=0.75", "< 0.75"),
        ("language=0.1", "≤ 10%"),
        ("rubric-margin=0.5", "≥ 0.50"),
        ("quality=1.5", "≤ 1.5"),
        (" length-ratio = 2 ", "≤ 2.00"),
    ],
)
def test_thresholds_reach_their_gate(spec, rule):
    gates = parse_gates([spec.strip()], judges=[CueJudge()], generator=BlindRater())
    name = spec.split("=")[0].strip()
    assert rule in next(gate.rule for gate in gates if gate.name == name)
    default = parse_gates(judges=[CueJudge()], generator=BlindRater())
    assert [gate.rule for gate in gates if gate.name != name] == [gate.rule for gate in default if gate.name != name]


def test_every_gate_but_the_couples_can_be_left_out():
    assert names(parse_gates([f"no:{name}" for name in KINDS])) == ["couples"]


@pytest.mark.parametrize(
    ("specs", "message", "hint"),
    [
        (["lenght-ratio"], "unknown gate 'lenght-ratio'", "did you mean 'length-ratio'?"),
        (["no:languages"], "unknown gate 'languages'", "did you mean 'language'?"),
        (["no:couples"], "unknown gate 'couples'", "known: length-ratio"),
        (["length-ratio=0.9"], "the threshold cannot be 0.9", "from 1 to 100, for example length-ratio=1.5"),
        (["length-ratio=nan"], "the threshold cannot be nan", "from 1 to 100"),
        (["length-ratio=wide"], "'wide' is not a number", "length-ratio=1.5"),
        (["length-ratio="], "'' is not a number", "length-ratio=1.5"),
        (["rubric-copying=6.5"], "the threshold cannot be 6.5", "a whole number from 2 to 60"),
        (["near-duplicates=1.1"], "the threshold cannot be 1.1", "from 0.05 to 1"),
        (["agreement=2"], "takes no threshold, got '2'", "write agreement"),
        (["no:length-ratio=2"], "has a threshold and is left out", "write no:length-ratio"),
        (["language", "no:language"], "'language' is named twice", "name it once"),
        (["rubric-margin"], "'rubric-margin' needs a judge", "no:rubric-margin"),
        (["quality=1"], "'quality' needs a model that rates", "no:quality"),
    ],
)
def test_mistakes_come_with_a_way_out(specs, message, hint):
    with pytest.raises(ConfigError) as caught:
        parse_gates(specs)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_one_judge_cannot_agree_with_itself():
    with pytest.raises(ConfigError, match="'agreement' needs 2 judges, got 1") as caught:
        parse_gates(["agreement"], judges=[CueJudge()])
    assert "--judge" in caught.value.hint
    with pytest.raises(ConfigError, match="both judges are") as caught:
        parse_gates(["agreement"], judges=[CueJudge(), CueJudge()])
    assert "two different judges" in caught.value.hint
    assert "agreement" not in names(parse_gates(judges=[CueJudge(), CueJudge()]))
