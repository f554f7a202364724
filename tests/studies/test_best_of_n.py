"""`prbench study best-of-n`: one set of candidates for all, resumed at every stage, exact curves, honest refusals."""

import json
import re
from itertools import combinations, pairwise
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

import study_world
from fake_server import FakeServer, Fault
from pair_factory import make_pair
from prbench.config import ModelOptions
from prbench.data import Suite
from prbench.errors import ConfigError, RunError, StudyError
from prbench.models import load_generator, load_model
from prbench.stats.best_of import expected_best_of
from prbench.studies import read_study
from prbench.studies.best_of_n import (
    BestOfNConfig,
    RewardModelConfig,
    best_of_n,
    best_of_n_tables,
    parse_model,
    read_curves,
)
from prbench.studies.best_of_n.candidates import item_slots, read_candidates, suite_candidates, whole_sentences
from prbench.studies.best_of_n.grades import examine_judge
from prbench.studies.best_of_n.items import select_items, split_pairs, study_items
from prbench.studies.best_of_n.outcome import Entered, World, common_lines, model_curve
from prbench.studies.best_of_n.scores import read_scores
from prbench.studies.policy import STYLES
from prbench.studies.sections import study_page
from study_world import HashJudge, Scribe, world

MODELS = ["longer", "random", "py:small_suite:follows_posts", "noised-oracle:0", "noised-oracle:0.7"]


def settings(**changes):
    values = {
        "policy": "scribe",
        "n": 5,
        "judge_pairs": 24,
        "resamples": 100,
        "models": [parse_model(text) for text in MODELS],
    }
    return BestOfNConfig.of(**{**values, **changes})


def run(out: Path, *, judge=None, policy=None, until="study", suite=None, heard=None, **changes):
    return best_of_n(
        settings(**changes),
        out,
        until=until,
        suite=suite or world(),
        policy=policy or Scribe(),
        judge=judge or HashJudge(),
        say=(heard if heard is not None else []).append,
    )


def gains(found, name: str) -> list[float]:
    return [point.gain.value for point in found.models[name].points]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    return folder, run(folder)


def test_the_study_can_be_read_by_correlate_and_its_scores_are_the_means_of_its_items(finished):
    folder, found = finished
    study = read_study(folder)
    assert study.kind == "best-of-n"
    assert study.endpoint.startswith("best of 5")
    assert set(study.models) == set(MODELS)
    assert [name for name, model in study.models.items() if model.apart] == ["noised-oracle:0", "noised-oracle:0.7"]
    assert study.models["py:small_suite:follows_posts"].context == "profile"
    assert study.models["longer"].context == "none"
    follows = "py:small_suite:follows_posts"
    assert study.models[follows].revision == load_model(follows).card.revision != ""
    for name, model in study.models.items():
        assert model.score.value == pytest.approx(found.models[name].points[4].true.value)
        assert set(model.items) == set(study.items)
    assert study.items["u0a:" + next(iter(study.items)).split(":")[1]].unit == "c0"


def test_best_of_k_is_the_mean_over_all_subsets_of_what_each_would_choose(finished):
    """Brute force from the files alone, for every k and item."""
    folder, found = finished
    slug = next(path for path in (folder / "scores").iterdir() if "follows" in path.name)
    scores = {(row.item, row.candidate): row.score for row in read_scores(slug)}
    grades = {}
    for line in (folder / "grades.jsonl").read_text().splitlines():
        row = json.loads(line)
        grades[row["item"], row["candidate"]] = float(np.mean(row["grade"]["aspects"]))
    by_item: dict[str, list[tuple[float, float]]] = {}
    for place, score in scores.items():
        by_item.setdefault(place[0], []).append((score, grades[place]))
    for k in (1, 2, 3, 5):
        means = []
        for options in by_item.values():
            chosen = []
            for subset in combinations(options, k):
                top = max(score for score, _ in subset)
                chosen.append(np.mean([grade for score, grade in subset if score == top]))
            means.append(np.mean(chosen))
        told = found.models["py:small_suite:follows_posts"].points[k - 1].true.value
        assert told == pytest.approx(np.mean(means))


def test_the_ladder_climbs_from_random_to_the_oracle(finished):
    _, found = finished
    ends = {name: found.models[name].points[4] for name in MODELS}
    assert ends["noised-oracle:0"].regret.value == pytest.approx(0)
    assert 0 < ends["noised-oracle:0.7"].gain.value < ends["noised-oracle:0"].gain.value
    assert found.lines.oracle[4].value == pytest.approx(ends["noised-oracle:0"].true.value)
    assert found.models["noised-oracle:0"].headroom.value == pytest.approx(1)


def test_a_user_blind_model_gains_exactly_nothing_on_a_mirrored_suite_with_shared_candidates(finished):
    """Both halves of a couple meet the same candidates and the judge's grades mirror, so whatever is chosen
    without a look at the user is worth the mean of both."""
    _, found = finished
    for name in ("longer", "random"):
        assert gains(found, name) == pytest.approx([0] * 5, abs=1e-12)
        assert any(abs(user.gain) > 0.01 for user in found.models[name].users.values())


@hypothesis.settings(deadline=None, max_examples=30)
@given(data=st.data(), n=st.integers(2, 6), couples=st.integers(1, 4))
def test_no_choice_that_ignores_the_user_gains_anything_where_grades_mirror(data, n, couples):
    """For whatever blind scores, ties and missing ones included, and whatever grades, exactly, at every k."""
    items = study_items(split_pairs(world(couples, 2), "test"))
    keys = {item.pair.question: [f"{item.question}-{number}" for number in range(n)] for item in items}
    score = st.one_of(st.none(), st.integers(-3, 3).map(float))
    blind = {key: data.draw(score) for listed in keys.values() for key in listed}
    worth = {key: data.draw(st.floats(0, 2)) for listed in keys.values() for key in listed}
    scores, grades = {}, {}
    for item in items:
        for key in keys[item.pair.question]:
            scores[item.id, key] = blind[key]
            grades[item.id, key] = worth[key] if item.tags["pole"] == "red" else 2 - worth[key]
    place = World(items, {item.id: keys[item.pair.question] for item in items}, grades, n, n, resamples=100)
    curve = model_curve(place, Entered("blind", "blind", "none", False, scores, {}))
    for point in curve.points:
        assert point.gain.value is None or abs(point.gain.value) < 1e-9


def test_intervals_of_true_scores_end_at_2():
    items = study_items(split_pairs(world(2, 2), "test"))
    keys = ["a", "b"]
    grades = {(item.id, key): 0.5 if item.unit == "c0" else 2.0 for item in items for key in keys}
    place = World(items, {item.id: keys for item in items}, grades, 2, 2, resamples=100)
    curve = model_curve(place, Entered("x", "x", "none", False, dict.fromkeys(grades, 1.0), {}))
    ends = [(line.low, line.high) for point in curve.points for line in (point.true, point.oracle)]
    ends += [(line.low, line.high) for line in common_lines(place).random]
    assert ends == [(0.0, 2.0)] * 6  # two couples bound nothing


def test_every_k_has_its_own_value_and_there_is_none_beyond_n(finished):
    _, found = finished
    assert found.ks == (1, 2, 3, 4, 5)
    curve = [point.true.value for point in found.models["noised-oracle:0"].points]
    assert all(low < high for low, high in pairwise(curve))
    with pytest.raises(ConfigError, match="best of 6 needs 6 candidates, there are 5"):
        settings(k=6)


def test_the_order_in_which_candidates_were_drawn_does_not_matter():
    proxy, true = [0.1, 0.9, 0.4, 0.4], [0.0, 2.0, 1.0, 0.5]
    for k in (1, 2, 3, 4):
        whole = {round(expected_best_of(np.roll(proxy, turn), np.roll(true, turn), k), 12) for turn in range(4)}
        assert len(whole) == 1


def test_candidates_are_shared_by_all_who_ask_and_their_style_is_kept(finished):
    folder, _ = finished
    candidates = read_candidates(folder / "candidates.jsonl")
    assert len(candidates) == 4 * 5  # questions × N, though six users ask each
    assert {one.style for one in candidates.values()} > {"plain"}
    assert sum(one.style == "plain" for one in candidates.values()) == 4 * 2


def test_the_style_is_told_to_the_policy_alone(tmp_path):
    judge = HashJudge()
    run(tmp_path, judge=judge, models=[])
    seen = "\n".join(f"{one.question} {one.answer} {one.aspects}" for one in judge.asked)
    assert not any(style.instruction in seen for style in STYLES if style.instruction)


def test_with_posts_each_user_has_candidates_of_their_own(tmp_path):
    policy = Scribe()
    run(tmp_path, policy=policy, posts=1, until="candidates")
    assert len(read_candidates(tmp_path / "candidates.jsonl")) == 6 * 4 * 5
    assert "Some things I wrote before" in policy.prompts[0].messages[1].content


def killed_while_drawing(out: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(out, policy=Scribe(stop_after=9))


def killed_while_scoring(out: Path) -> None:
    run(out, until="scores")
    for path in (out / "scores").iterdir():
        path.write_bytes(path.read_bytes()[:-40])


def killed_while_judging(out: Path) -> None:
    judge = HashJudge()
    judge.stop_after = 60
    with pytest.raises(KeyboardInterrupt):
        run(out, judge=judge)


def torn_everywhere(out: Path) -> None:
    run(out)
    for name in ("candidates.jsonl", "grades.jsonl"):
        (out / name).write_bytes((out / name).read_bytes()[:-30])
    (out / "study.json").unlink()


@pytest.mark.parametrize("kill", [killed_while_drawing, killed_while_scoring, killed_while_judging, torn_everywhere])
def test_a_study_that_was_killed_continues_and_ends_in_the_same_files(tmp_path, kill, finished):
    whole, _ = finished
    kill(tmp_path)
    assert not (tmp_path / "study.json").exists()
    run(tmp_path)
    for name in ("study.json", "curves.json"):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()


def test_a_finished_study_costs_no_call_and_a_new_model_only_its_own(finished, tmp_path):
    run(tmp_path)
    judge, policy = HashJudge(), Scribe()
    before = {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()}
    found = run(tmp_path, judge=judge, policy=policy, models=[*settings().models, RewardModelConfig(address="shorter")])
    assert (judge.asked, policy.written) == ([], 0)
    assert "shorter" in found.models
    assert all((tmp_path / "scores" / name).read_bytes() == text for name, text in before.items())


def test_a_larger_n_keeps_what_is_drawn(tmp_path):
    run(tmp_path, until="candidates")
    first = read_candidates(tmp_path / "candidates.jsonl")
    run(tmp_path, until="candidates", n=8)
    more = read_candidates(tmp_path / "candidates.jsonl")
    assert len(more) == 4 * 8
    assert {key: more[key] for key in first} == first


def test_another_policy_in_the_same_folder_is_refused(tmp_path):
    run(tmp_path, until="candidates")
    with pytest.raises(RunError, match="policy 'scribe', not 'other'"):
        best_of_n(settings(policy="other"), tmp_path, suite=world(), judge=HashJudge(), say=lambda line: None)


def test_empty_texts_are_invalid_counted_and_reduce_n(tmp_path):
    suite = world()
    asked = study_items(split_pairs(suite, "test"))[0]
    styled = next(slot for slot in item_slots(asked, settings(), Scribe().card) if slot.style != "plain")
    instruction = next(style.instruction for style in STYLES if style.name == styled.style)
    found = run(tmp_path, policy=Scribe(empty=instruction), suite=suite)
    candidates = read_candidates(tmp_path / "candidates.jsonl")
    empty = [one for one in candidates.values() if one.status == "invalid"]
    assert empty
    assert {(one.reason, one.attempt, one.text) for one in empty} == {("empty", 2, "")}
    points = found.models["longer"].points
    assert points[4].dropped > 0
    assert points[3].dropped == 0
    assert points[4].true.n + points[4].dropped == 24
    assert found.details.candidates.valid == len(candidates) - len(empty)
    assert found.details.candidates.degenerate == len(empty)


def test_candidates_of_punctuation_alone_are_graded_0_and_counted(tmp_path):
    judge, instruction = HashJudge(), STYLES[1].instruction
    found = run(tmp_path, judge=judge, policy=Scribe(empty=instruction, nothing="...!"))
    candidates = read_candidates(tmp_path / "candidates.jsonl").values()
    silent = {one.key for one in candidates if one.text == "...!"}
    assert found.details.candidates.degenerate == len(silent) > 0
    assert f"{len(silent)} degenerate (empty or punctuation alone)" in "\n".join(best_of_n_tables(found)[0].notes)
    grades = [json.loads(line) for line in (tmp_path / "grades.jsonl").read_text().splitlines()]
    assert {tuple(row["grade"]["aspects"]) for row in grades if row["candidate"] in silent} == {(0.0,)}
    assert "...!" not in {grading.answer for grading in judge.asked}


def test_where_no_item_reaches_the_endpoint_there_is_no_number(tmp_path):
    found = run(tmp_path, policy=Scribe(empty="You give advice"))
    assert found.models["longer"].points[4].true.value is None
    assert found.details.left_out == tuple(sorted(MODELS))
    assert json.loads((tmp_path / "study.json").read_text())["models"] == {}
    assert best_of_n_tables(found)[0].rows


def test_a_cut_off_text_ends_with_its_last_whole_sentence(tmp_path):
    run(tmp_path, policy=Scribe(cut="You give advice"), until="candidates")
    for one in read_candidates(tmp_path / "candidates.jsonl").values():
        assert one.cut
        assert one.text.endswith(".")
        assert "And then" not in one.text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Yes! He said “no.” And", "Yes! He said “no.”"),
        ("1. Walk. 2. Re", "1. Walk."),
        ("1. Wal", ""),
        ("It costs 3.5 pounds. Pay", "It costs 3.5 pounds."),
        ("It began in 1999. Then", "It began in 1999."),
        ("Do this:\n\n1. Walk far.\n2. Rest", "Do this:\n\n1. Walk far."),
        ("", ""),
    ],
)
def test_whole_sentences(text, kept):
    assert whole_sentences(text) == kept


def test_scores_that_cannot_be_had_are_statuses_and_never_numbers(tmp_path):
    found = run(
        tmp_path, models=[RewardModelConfig(address="py:study_world:sometimes"), RewardModelConfig(address="longer")]
    )
    model = found.models["py:study_world:sometimes"]
    assert sum(model.invalid.values()) > 0
    assert model.points[4].dropped > 0
    assert model.scored + sum(model.invalid.values()) == 24 * 5
    table = best_of_n_tables(found)[0]
    row = next(row for row in table.rows if row[0] == "py:study_world:sometimes")
    assert row[-1].value == sum(model.invalid.values())


def test_a_comparer_is_refused_before_anything_is_written(tmp_path):
    policy = Scribe()
    with pytest.raises(ConfigError, match="compares two answers") as caught:
        run(tmp_path, policy=policy, models=[RewardModelConfig(address="py:small_suite:likes_first")])
    assert "#rate" in caught.value.hint
    assert policy.written == 0


def test_a_model_that_does_not_read_the_context_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="does not read what context 'profile'") as caught:
        run(tmp_path, models=[parse_model("profile=longer")])
    assert caught.value.hint == "none=longer"


def test_the_same_model_twice_is_refused_but_not_in_two_contexts(tmp_path):
    personal = "py:small_suite:follows_posts"
    with pytest.raises(ConfigError, match="stands twice"):
        run(tmp_path / "a", models=[parse_model(personal), parse_model(f"profile={personal}")])
    found = run(tmp_path / "b", models=[parse_model(personal), parse_model(f"opposite={personal}")])
    assert gains(found, personal)[4] > 0
    assert gains(found, f"{personal}, opposite")[4] == pytest.approx(-gains(found, personal)[4])


def test_a_judge_at_chance_ranks_nothing(tmp_path):
    policy = Scribe()
    with pytest.raises(StudyError, match="hash-judge is at chance"):
        run(tmp_path, judge=HashJudge(able=False), policy=policy)
    assert policy.written == 0
    assert not (tmp_path / "study.json").exists()


def on_a_second_axis(pair):
    """The same user and question, decided by another line of the rubric."""
    tags = {**pair.tags, "axis": "size", "pole": f"{pair.tags['pole']}-size", "mirror": f"{pair.tags['mirror']}:size"}
    answers = {"chosen": f"{pair.chosen} A big one.", "rejected": f"{pair.rejected} A small one."}
    return pair.model_copy(update={"id": f"{pair.id}:size", "tags": tags, **answers})


def two_axes():
    pairs = world()
    return Suite.of([*pairs, *(on_a_second_axis(pair) for pair in pairs if pair.tags["split"] == "test")], name="wide")


def test_the_judge_is_examined_under_the_rubrics_of_the_study(tmp_path):
    judge = HashJudge()
    with pytest.raises(StudyError, match="at chance"):  # it knows nothing of sizes; only what it is asked matters here
        run(tmp_path, judge=judge, suite=two_axes(), judge_pairs=20)
    assert 20 < len(judge.asked) <= 40
    assert {grading.tags["axis"] for grading in judge.asked} == {"colour+size"}


def test_an_examination_is_of_one_judge_one_sample_and_its_rubrics():
    pairs = split_pairs(two_axes(), "test")
    judge = HashJudge()
    exam = examine_judge(judge, pairs, 20)
    known, asked = exam.model_dump(mode="json"), len(judge.asked)
    assert examine_judge(judge, pairs, 20, known) == exam
    assert len(judge.asked) == asked
    sample = {pair.id for pair in Suite.of(pairs).limit(20)}
    place = next(n for n, pair in enumerate(pairs) if pair.id not in sample and pair.id.removesuffix(":size") in sample)
    other = pairs[place].model_copy(update={"tags": {**pairs[place].tags, "pole": "another"}})
    changed = [*pairs[:place], other, *pairs[place + 1 :]]
    assert {pair.id for pair in Suite.of(changed).limit(20)} == sample
    assert examine_judge(judge, changed, 20, known).key != exam.key
    assert examine_judge(judge, pairs, 20, {"key": "of an older release"}).judge == exam.judge


def test_a_judge_that_is_ranked_or_shares_weights_is_refused_before_anything_is_spent(tmp_path):
    policy = Scribe()
    with pytest.raises(ConfigError, match="share the address 'longer'"):
        run(tmp_path, judge=HashJudge(address="longer"), policy=policy)
    assert policy.written == 0


def test_who_learnt_from_the_judges_own_split_is_said_stored_and_shown(tmp_path):
    taught = "py:study_world:Taught"
    models = [
        parse_model(taught),
        RewardModelConfig(address=taught, label="beside", apart=True),
        RewardModelConfig(address="longer"),
    ]
    chosen = settings(judge="stances:tfidf", models=models)
    heard: list[str] = []
    best_of_n(chosen, tmp_path, suite=world(), policy=Scribe(), say=heard.append)
    notice = f"the judge was trained on split 'train' of 'small', and so was {taught}: "
    assert sum(line.startswith(notice) for line in heard) == 1
    assert read_study(tmp_path).details["taught_alike"] == {taught: "split 'train' of 'small'"}
    (told,) = [note for note in best_of_n_tables(read_curves(tmp_path))[0].notes if note.startswith(notice)]
    assert escape(told) in study_page([tmp_path])
    best_of_n(settings(judge="stances:tfidf", models=models[1:]), tmp_path, suite=world(), policy=Scribe(), say=str)
    assert read_study(tmp_path).details["taught_alike"] == {}
    assert not any(
        note.startswith("the judge was trained") for note in best_of_n_tables(read_curves(tmp_path))[0].notes
    )


def test_items_that_the_judge_cannot_grade_are_left_out_at_once_couple_by_couple(tmp_path):
    heard: list[str] = []
    found = run(tmp_path, judge=HashJudge(refused="tea"), heard=heard)
    assert found.details.items == 18
    assert found.details.items_refused == {"no tea here": 6}
    assert any("no tea here" in line for line in heard)
    assert len(read_candidates(tmp_path / "candidates.jsonl")) == 3 * 5


def test_the_budget_of_the_judge_is_said_before_its_first_grade_on_candidates(tmp_path):
    heard: list[str] = []
    judge = HashJudge()
    run(tmp_path, judge=judge, heard=heard)
    budget = next(line for line in heard if line.startswith("judging:"))
    assert "120 calls" in budget
    assert "tokens to read" in budget
    assert any("labelled pairs right" in line for line in heard[: heard.index(budget)])
    assert len(judge.asked) == 120 + 2 * 24


def test_a_limit_keeps_couples_whole_and_lies_within_a_larger_one():
    pairs = split_pairs(world(6, 6), "test")
    small, large = ({item.id for item in select_items(pairs, limit=n, seed=3).items} for n in (13, 30))
    assert (len(small), len(large)) == (12, 30)
    assert small < large
    halves = {f"{item.unit} {item.question}" for item in select_items(pairs, limit=13, seed=3).items}
    assert len(halves) == 6


def test_fewer_of_the_suites_own_answers_are_drawn_by_seed():
    pairs = [make_pair(str(number), chosen=f"{number:02} yes", rejected=f"{number:02} no") for number in range(12)]
    drawn = {seed: [one.text for one in suite_candidates(pairs, seed)["Tea?"]] for seed in range(3)}
    assert drawn[0] == [one.text for one in suite_candidates(pairs[::-1], 0)["Tea?"]]
    assert all(sorted(texts) == sorted(drawn[0]) for texts in drawn.values())
    assert len({tuple(texts[:8]) for texts in drawn.values()}) == 3
    assert all(texts[:8] != sorted(texts)[:8] for texts in drawn.values())


def test_the_suites_own_answers_are_a_check_that_correlate_refuses(tmp_path):
    found = run(tmp_path, candidates="suite")
    assert found.ks == (1, 2)
    assert found.models["py:small_suite:follows_posts"].points[1].regret.value == pytest.approx(0)
    assert gains(found, "longer") == pytest.approx([0, 0])
    with pytest.raises(StudyError, match="the suite's own answers"):
        read_study(tmp_path)


@pytest.mark.parametrize(
    ("text", "address", "context"),
    [
        ("longer", "longer", None),
        ("none=lm:a#rate", "lm:a#rate", "none"),
        ("retrieved@5=hf:org/rm@main", "hf:org/rm@main", "retrieved@5"),
        ("chat:m@http://127.0.0.1:1/v1?x=y#rate", "chat:m@http://127.0.0.1:1/v1?x=y#rate", None),
    ],
)
def test_models_are_written_with_their_context_before_them(text, address, context):
    assert (parse_model(text).address, parse_model(text).context) == (address, context)


def test_what_is_typed_wrongly_is_said_in_the_users_words():
    with pytest.raises(ConfigError, match="this study has no plans"):
        parse_model("plan=longer")
    with pytest.raises(ConfigError, match="the noise 'x' is not a number"):
        settings(models=[{"address": "noised-oracle:x"}])
    with pytest.raises(ConfigError, match="no policy writes the candidates"):
        settings(policy="")
    with pytest.raises(ConfigError, match=r"models\.0\.address"):
        settings(models=[{"address": ""}])


def test_a_study_that_is_not_finished_has_no_curves(tmp_path):
    with pytest.raises(StudyError, match=r"no curves\.json"):
        read_curves(tmp_path)


def test_a_real_language_model_writes_and_real_models_choose(tmp_path, tiny_policy, tiny_reward_model):
    """Everything real but small: policy, sequence classifier, likelihood rater, a stance probe trained on the spot."""
    values = {
        "policy": f"lm:{tiny_policy}",
        "judge": "stances:tfidf",
        "n": 4,
        "max_tokens": 12,
        "limit": 8,
        "judge_pairs": 24,
        "resamples": 100,
        "models": [
            RewardModelConfig(address=f"hf:{tiny_reward_model}", options={"window": 400}),
            RewardModelConfig(address="longer"),
        ],
    }
    heard: list[str] = []
    found = best_of_n(BestOfNConfig.of(**values), tmp_path, suite=world(), say=heard.append)
    candidates = read_candidates(tmp_path / "candidates.jsonl")
    assert any(one.tokens_out > 0 for one in candidates.values())
    assert load_generator(f"lm:{tiny_policy}").card.revision
    assert set(found.models) == {f"hf:{tiny_reward_model}", "longer"}
    again = best_of_n(BestOfNConfig.of(**values), tmp_path, suite=world(), say=heard.append)
    assert again == found


def _likes_red_first(body):
    """A listwise judge that follows posts, and likes early places among equals."""
    text = body["messages"][-1]["content"]
    shown = re.findall(r"<<< ANSWER (\d+)\n(.*?)\nANSWER \1 >>>", text, re.DOTALL)
    wanted = "red" if "red" in text.partition("The question:")[0] else "blue"
    return "Ranking: " + " > ".join(number for number, answer in sorted(shown, key=lambda one: wanted not in one[1]))


def test_a_listwise_judge_scores_all_candidates_of_an_item_together(tmp_path):
    with FakeServer(answer=_likes_red_first) as server:
        address = f"chat:judge@{server.url}#rank"
        found = run(tmp_path, models=[RewardModelConfig(address=address), RewardModelConfig(address="longer")])
        asked = len(server.requests)
        assert found.models[address].scored == 24 * 5
        assert gains(found, address)[4] > 0
        run(tmp_path, models=[RewardModelConfig(address=address), RewardModelConfig(address="longer")])
        assert len(server.requests) == asked, "every list was kept"
    (kept,) = (tmp_path / "scores").glob("*.lists.jsonl")
    assert len(kept.read_text().splitlines()) == asked <= 24 * 5, "one request for each item and rotation"
    scores = read_scores(next(path for path in (tmp_path / "scores").glob("chat*.jsonl") if ".lists" not in path.name))
    by_item: dict[str, float] = {}
    for row in scores:
        by_item[row.item] = by_item.get(row.item, 0.0) + row.score
    assert len(by_item) == 24


def test_an_unreadable_list_has_no_scores_and_a_failed_one_is_asked_again(tmp_path):
    broken = Fault("status", 500)
    with FakeServer(answer=lambda body: "Ranking: 1 > 2") as server:
        address = f"chat:judge@{server.url}#rank"
        found = run(tmp_path / "a", models=[RewardModelConfig(address=address), RewardModelConfig(address="longer")])
        assert found.models[address].scored == 0
        assert all("leaves out answer" in reason for reason in found.models[address].invalid)
    with FakeServer(answer=_likes_red_first, plan=lambda seen: broken if seen.number % 7 == 0 else None) as server:
        address, options = f"chat:judge@{server.url}#rank", ModelOptions(retries=0)
        models = [RewardModelConfig(address=address, options=options), RewardModelConfig(address="longer")]
        assert run(tmp_path / "b", models=models).models[address].scored < 24 * 5
        server.plan = lambda seen: None
        before = len(server.requests)
        assert run(tmp_path / "b", models=models).models[address].scored == 24 * 5
        assert 0 < len(server.requests) - before < before, "only what failed"


def test_a_model_that_can_rank_sees_the_candidates_together(tmp_path):
    found = run(
        tmp_path, models=[RewardModelConfig(address="py:study_world:NEAREST"), RewardModelConfig(address="longer")]
    )
    assert found.models["py:study_world:NEAREST"].scored == 24 * 5
    assert study_world.NEAREST.lists
    assert all(len(view.answers) > 1 for view in study_world.NEAREST.lists)


def test_more_candidates_than_a_list_may_have_are_refused_before_anything_is_written(tmp_path, tiny_policy):
    policy = Scribe()
    with pytest.raises(ConfigError, match="ranks at most 26 answers, and there are 27 candidates"):
        run(tmp_path, policy=policy, n=27, models=[RewardModelConfig(address=f"lm:{tiny_policy}#rank")])
    assert policy.written == 0


def test_a_judge_with_a_reserve_refuses_models_that_learned_from_it():
    from prbench.models import ModelCard
    from prbench.studies.best_of_n import RewardModelConfig
    from prbench.studies.best_of_n.reward_models import RewardModel, told_alike

    judge = HashJudge()
    training = {"suite": "small", "split": "train"}
    judge.card = judge.card.model_copy(update={"parameters": {"training": {**training, "reserve": 0.3}}})

    def entered(portion):
        card = ModelCard(address="personal:a", parameters={"training": {**training, **portion}})
        return [RewardModel("a", RewardModelConfig(address="personal:a"), card, None, False)]

    assert told_alike(judge, entered({"portion": {"reserve": 0.4}}), 0.3) == {}
    with pytest.raises(ConfigError, match=r"'a' learned from the share .* reserved for the judge"):
        told_alike(judge, entered({"portion": {"reserve": 0.2}}), 0.3)
    with pytest.raises(ConfigError, match=r"--reserve 0\.3"):
        told_alike(judge, entered({}), 0.3)
