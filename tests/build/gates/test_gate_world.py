"""Every gate catches what it says and spares the rest: precision and recall over a world with known users."""

import random

import pytest

from gate_raters import BlindRater, CueJudge
from gate_world import Builder
from prbench.build.gates import is_unmeasured, left_out, parse_gates, run_gates

SEEDS = (1, 2, 3)
GATES = [
    "couples",
    "length-ratio",
    "rubric-copying",
    "profile-leakage",
    "language",
    "near-duplicates",
    "quality",
    "rubric-margin",
    "agreement",
]


@pytest.fixture(scope="module", params=SEEDS)
def world(request):
    return Builder(request.param).build()


@pytest.fixture(scope="module")
def one_world():
    return Builder(SEEDS[0]).build()


def all_gates():
    judges = [CueJudge(), CueJudge("cues:two", contrary=True)]
    return parse_gates(judges=judges, generator=BlindRater())


def test_the_world_has_violations_of_every_kind_and_near_misses(world):
    assert sorted(world.planted) == sorted(GATES)
    assert all(len(found) >= 6 for found in world.planted.values())
    assert len(world.near_misses) > 100
    assert len(world.clean) > len(world.near_misses)
    assert left_out(all_gates()) == ()


@pytest.mark.parametrize("name", GATES)
def test_precision_and_recall_are_one(world, name, record_property):
    gate = next(gate for gate in all_gates() if gate.name == name)
    reasons = gate.check(world.drafts)
    refused, planted = set(reasons), world.planted[name]
    caught = len(refused & planted)
    precision, recall = caught / max(len(refused), 1), caught / len(planted)
    blank = {draft for draft, reason in reasons.items() if is_unmeasured(reason)}
    print(f"{name}: {len(world.drafts)} drafts, {len(planted)} planted, precision {precision:.3f}, recall {recall:.3f}")
    record_property(name, (precision, recall))
    missed, wrong = sorted(planted - refused), {draft: reasons[draft] for draft in sorted(refused - planted)}
    assert (precision, recall) == (1.0, 1.0), (missed, wrong)
    assert blank == world.blank.get(name, set())


def test_together_they_keep_exactly_the_clean_drafts(world):
    report = run_gates(world.drafts, all_gates())
    assert {draft.id for draft in report.kept} == world.clean
    assert [count.gate for count in report.counts] == GATES
    checked = len(world.drafts)
    for count in report.counts:
        assert count.checked == checked
        assert count.rejected >= 1
        checked = count.passed
    assert len(report.kept) == checked
    assert len(report.kept) + len(report.rejects) == len(world.drafts)
    assert sum(count.with_half for count in report.counts) == len(world.halves)


def test_the_order_of_the_drafts_makes_no_difference(one_world):
    before = run_gates(one_world.drafts, all_gates())
    shuffled = list(one_world.drafts)
    random.Random(0).shuffle(shuffled)
    after = run_gates(shuffled, all_gates())
    assert {draft.id for draft in after.kept} == {draft.id for draft in before.kept}
    assert after.counts == before.counts
    reasons = [{reject.draft.id: (reject.gate, reject.reason) for reject in found.rejects} for found in (before, after)]
    assert reasons[0] == reasons[1]
    assert [draft.id for draft in after.kept] == [draft.id for draft in shuffled if draft.id in one_world.clean]
    for gate_before, gate_after in zip(all_gates(), all_gates(), strict=True):
        assert gate_before.check(one_world.drafts) == gate_after.check(shuffled), gate_before.name


def test_what_free_gates_refuse_is_never_sent_to_a_model(one_world):
    judge, rater = CueJudge(), BlindRater()
    run_gates(one_world.drafts, parse_gates(judges=[judge], generator=rater))
    free = set().union(*(one_world.planted[name] for name in GATES[:6]))
    passed = {answer for draft in one_world.drafts if draft.id not in free for answer in (draft.chosen, draft.rejected)}
    assert {grading.answer for grading in judge.asked} <= passed
    assert len(judge.asked) == len(set(judge.asked)) > 100
    assert len(rater.shown) == len(set(rater.shown)) > 100


def test_the_blind_rater_sees_one_answer_and_nothing_of_the_user(one_world):
    rater = BlindRater()
    gate = next(gate for gate in parse_gates(generator=rater) if gate.name == "quality")
    gate.check(one_world.drafts)
    shown = "\n".join(rater.shown)
    answers = {answer for draft in one_world.drafts for answer in (draft.chosen, draft.rejected)}
    for draft in one_world.drafts:
        hidden = [*(post.text for post in draft.profile), *(aspect.reason for aspect in draft.aspects), draft.user]
        assert not [text for text in hidden if text in shown]
    for prompt in rater.shown:
        assert sum(answer in prompt for answer in answers) == 1
