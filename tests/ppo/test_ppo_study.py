"""A whole study on a tiny real policy: trained, continued, judged once, readable by what comes after it."""

import json
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from typer.testing import CliRunner

from ppo_world import PlantedJudge, tiny_policy, tiny_suite
from prbench.cli import app
from prbench.errors import ConfigError, ModelError, RunError, StudyError
from prbench.models import load_model
from prbench.show import render
from prbench.studies.best_of_n import parse_model
from prbench.studies.ppo.checkpoint import read_history
from prbench.studies.ppo.config import PPOConfig, PPOStudyConfig, keep_settings
from prbench.studies.ppo.held_out import divide
from prbench.studies.ppo.outcome import PPOStudy
from prbench.studies.ppo.policy_tables import ppo_tables
from prbench.studies.ppo.recipe import ppo_study
from prbench.studies.ppo.section import ppo_section
from prbench.studies.ppo.verl import write_verl
from prbench.studies.study import read_study
from split_suite import write_suite

OPTIONS = PPOConfig(steps=2, prompts=2, rollouts=2, new_tokens=6, posts=1, temperature=1)
REWARDS = [parse_model("py:ppo_world:e_share"), parse_model("shorter")]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> PPOStudyConfig:
    policy = tiny_policy(tmp_path_factory.mktemp("policy"), initializer_range=0.15)
    return PPOStudyConfig(policy=policy, items=8, answers=2, judge_pairs=20, options=OPTIONS)


@pytest.fixture(scope="module")
def study(settings: PPOStudyConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study") / "ppo"
    ppo_study(settings, REWARDS, out, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    return out


def copy_of(study: Path, out: Path) -> Path:
    """The study as it was before other tests added a seed."""
    shutil.copytree(study, out, ignore=shutil.ignore_patterns("*-s1"))
    return out


def test_study_json_is_a_study_of_every_reward_model(study: Path):
    found = read_study(study)
    assert found.kind == "ppo"
    assert sorted(found.models) == ["py:ppo_world:e_share", "shorter"]
    assert found.models["shorter"].context == "none"
    assert found.models["py:ppo_world:e_share"].context == "profile"
    assert found.models["py:ppo_world:e_share"].revision == load_model("py:ppo_world:e_share").card.revision != ""
    for outcome in found.models.values():
        assert set(outcome.items) <= set(found.items)
        assert len(outcome.items) >= 7  # an item all of whose answers are empty has no score
        assert set(outcome.details["seeds"]) == {"0"}
    assert found.judge.accuracy.value == 1.0
    assert found.details["untrained"]["score"]["n"] >= 7


def test_continuing_costs_nothing(settings: PPOStudyConfig, study: Path):
    judge = PlantedJudge()
    before = {path: path.read_bytes() for path in study.rglob("*.jsonl")}
    ppo_study(settings, REWARDS, study, suite=tiny_suite(), judge=judge, say=lambda line: None)
    assert judge.asked == 0
    assert {path: path.read_bytes() for path in study.rglob("*.jsonl")} == before


def test_seeds_of_one_reward_model_are_averaged(settings: PPOStudyConfig, study: Path):
    other = settings.model_copy(update={"options": OPTIONS.model_copy(update={"seed": 1})})
    found = ppo_study(other, REWARDS[1:], study, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    assert found is not None
    shorter = found.models["shorter"]
    seeds = shorter.details.seeds
    assert set(seeds) == {"0", "1"}
    assert set(found.models["py:ppo_world:e_share"].details.seeds) == {"0"}
    first, second = (graded_items(study, seeds[seed].folder) for seed in ("0", "1"))
    assert first != second
    common = first.keys() & second.keys()
    assert shorter.items == pytest.approx({item: (first[item] + second[item]) / 2 for item in common})
    assert shorter.score.value == pytest.approx(fmean((first[item] + second[item]) / 2 for item in common))
    assert [seeds[seed].score for seed in ("0", "1")] == pytest.approx([fmean(x.values()) for x in (first, second)])
    read_study(study)


def graded_items(study: Path, folder: str) -> dict[str, float]:
    """The mean grade of one training's answers to each item, from the files alone."""
    answers = (study / "trainings" / folder / "answers.jsonl").read_text().splitlines()
    keys = {json.loads(line)["key"] for line in answers}
    rows = [json.loads(line) for line in (study / "grades.jsonl").read_text().splitlines()]
    grades = {(row["item"], row["candidate"]): fmean(row["grade"]["aspects"]) for row in rows}
    items = {item for item, candidate in grades if candidate in keys}
    return {item: fmean(grades[place] for place in grades if place[0] == item and place[1] in keys) for item in items}


def test_two_revisions_of_a_reward_model_are_not_one(settings: PPOStudyConfig, study: Path, tmp_path: Path):
    """Retrained under the same name, a reward model is another one: its policies are not averaged with the old ones."""
    out = copy_of(study, tmp_path / "ppo")
    (file,) = (out / "trainings").glob("shorter-*-s0/training.json")
    record = json.loads(file.read_text())
    record["card"]["revision"] = "old"
    file.write_text(json.dumps(record))
    told: list[str] = []
    with pytest.raises(RunError, match=rf"'shorter'.* revision is 'old' in '{file.parent}', and '1' now"):
        ppo_study(settings, REWARDS[1:], out, suite=tiny_suite(), judge=PlantedJudge(), say=told.append)
    assert told == []  # before anything is trained
    other = file.parent.with_name("shorter-other-s1")
    shutil.copytree(file.parent, other)
    (other / "training.json").write_text(json.dumps(record | {"seed": 1, "card": record["card"] | {"revision": "1"}}))
    with pytest.raises(RunError, match=f"'old' in '{file.parent}', and '1' in '{other}'"):
        ppo_study(settings, (), out, suite=tiny_suite(), judge=PlantedJudge(), say=told.append)


def test_a_policy_that_fell_silent_is_left_out_and_named(settings: PPOStudyConfig, study: Path, tmp_path: Path):
    out = copy_of(study, tmp_path / "ppo")
    (file,) = (out / "trainings").glob("shorter-*-s0/answers.jsonl")
    silent = [json.loads(line)["key"] for line in file.read_text().splitlines()]
    file.write_text("".join(f'{{"key":"{key}","status":"invalid","reason":"empty"}}\n' for key in silent))
    found = ppo_study(settings, (), out, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    assert found is not None
    assert list(read_study(out).models) == ["py:ppo_world:e_share"]
    assert found.details.left_out["shorter"]["0"].empty == len(silent) == 16
    assert found.details.left_out["shorter"]["0"].degenerate == 16
    notes = render(ppo_tables(found), "md")
    assert "left out: shorter" in notes
    assert "16 of 16 empty" in notes
    assert ppo_section(out).body.count("<svg") == 4


def test_answers_that_say_nothing_are_graded_0_and_counted(settings: PPOStudyConfig, study: Path, tmp_path: Path):
    out = copy_of(study, tmp_path / "ppo")
    (file,) = (out / "trainings").glob("shorter-*-s0/answers.jsonl")
    keys = [json.loads(line)["key"] for line in file.read_text().splitlines()]
    file.write_text("".join(f'{{"key":"{key}","text":"..."}}\n' for key in keys))
    found = ppo_study(settings, (), out, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    assert found is not None
    seeds = found.models["shorter"].details.seeds
    assert (seeds["0"].degenerate, seeds["0"].empty, seeds["0"].score) == (16, 0, 0.0)
    (table,) = ppo_tables(found)
    told = {row[0]: row[table.columns.index("degenerate")] for row in table.rows}
    assert told == {
        name: str(sum(seed.degenerate for seed in model.details.seeds.values())) for name, model in found.models.items()
    }
    assert told["shorter"] != "0"


def test_tables_and_section_show_every_training(study: Path):
    found = PPOStudy.model_validate_json((study / "study.json").read_text())
    text = render(ppo_tables(found), "md")
    assert "py:ppo_world:e_share" in text
    assert "untrained policy" in text
    section = ppo_section(study)
    assert section.id == "ppo"
    assert section.body.count("<svg") == 4 * len(found.models)
    assert "KL to the base model" in section.body


def test_without_a_judge_nothing_is_concluded_until_there_is_one(settings: PPOStudyConfig, tmp_path: Path):
    told: list[str] = []
    out = tmp_path / "ppo"
    assert ppo_study(settings, REWARDS[1:], out, suite=tiny_suite(), say=told.append) is None
    assert not (out / "study.json").exists()
    assert "nothing is concluded" in told[-1]
    judge = PlantedJudge()
    assert ppo_study(settings, (), out, train_only=True, suite=tiny_suite(), judge=judge, say=told.append) is None
    assert judge.asked == 0
    found = ppo_study(settings, (), out, suite=tiny_suite(), judge=PlantedJudge(), say=told.append)
    assert found is not None
    assert list(found.models) == ["shorter"]


def test_a_judge_at_chance_ranks_nothing(settings: PPOStudyConfig, study: Path):
    with pytest.raises(StudyError, match="at chance"):
        ppo_study(
            settings, (), study, suite=tiny_suite(), judge=PlantedJudge("blind", blind=True), say=lambda line: None
        )


def test_a_judge_that_is_ranked_is_refused(settings: PPOStudyConfig, tmp_path: Path):
    judge = PlantedJudge("shorter")
    with pytest.raises(ConfigError, match="share"):
        ppo_study(settings, REWARDS[1:], tmp_path / "x", suite=tiny_suite(), judge=judge, say=lambda line: None)
    assert not (tmp_path / "x").exists()


def test_who_learnt_from_the_judges_own_split_is_said_stored_and_shown(settings: PPOStudyConfig, tmp_path: Path):
    told: list[str] = []
    judged = settings.model_copy(update={"judge": "stances:tfidf"})
    rewards = [parse_model("py:ppo_world:Taught"), REWARDS[1]]
    found = ppo_study(judged, rewards, tmp_path / "ppo", suite=tiny_suite(), say=told.append)
    assert found is not None
    notice = "the judge was trained on split 'train' of 'pairs', and so was py:ppo_world:Taught: "
    assert sum(line.startswith(notice) for line in told) == 1
    assert read_study(tmp_path / "ppo").details["taught_alike"] == {"py:ppo_world:Taught": "split 'train' of 'pairs'"}
    assert any(note.startswith(notice) for note in ppo_tables(found)[0].notes)
    assert "and so was py:ppo_world:Taught" in ppo_section(tmp_path / "ppo").body


def test_one_folder_one_study(settings: PPOStudyConfig, study: Path):
    longer = settings.model_copy(update={"options": OPTIONS.model_copy(update={"steps": 3})})
    with pytest.raises(RunError, match="steps 2, not 3"):
        ppo_study(longer, REWARDS, study, suite=tiny_suite(), say=lambda line: None)


def test_a_reward_model_that_never_answers_trains_nothing(settings: PPOStudyConfig, tmp_path: Path):
    many = settings.model_copy(update={"options": OPTIONS.model_copy(update={"steps": 9})})
    rewards = [parse_model("py:ppo_world:broken")]
    with pytest.raises(ModelError, match="no usable reward"):
        ppo_study(many, rewards, tmp_path / "ppo", suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    assert not (tmp_path / "ppo" / "study.json").exists()


def test_noised_oracles_cannot_pay_new_answers(settings: PPOStudyConfig, tmp_path: Path):
    with pytest.raises(ConfigError, match="stored answers only"):
        ppo_study(settings, [parse_model("noised-oracle:0.5")], tmp_path / "x", suite=tiny_suite())


def test_the_true_score_pays_what_the_judge_says_and_stands_apart(settings: PPOStudyConfig, tmp_path: Path):
    out, oracle = tmp_path / "x", [parse_model("noised-oracle:0")]
    with pytest.raises(ConfigError, match="pays what a judge says, and none is named"):
        ppo_study(settings, oracle, tmp_path / "y", suite=tiny_suite(), say=lambda line: None)
    ppo_study(settings, [*oracle, *REWARDS[1:]], out, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    found = read_study(out)
    assert found.models["noised-oracle:0"].apart
    assert found.models["noised-oracle:0"].context == "oracle"
    folder = next(path for path in (out / "trainings").iterdir() if "oracle" in path.name)
    steps = read_history(folder / "history.jsonl")
    assert all(0 <= step.reward <= 2 and step.spread is not None for step in steps)


def test_the_command_trains_and_says_what_is_missing(settings: PPOStudyConfig, tmp_path: Path):
    suite = write_suite(tmp_path / "suite.jsonl")
    sizes = ["--steps", "1", "--prompts", "1", "--rollouts", "2", "--new-tokens", "4", "--posts", "1", "--items", "4"]
    place = ["--suite", str(suite), "--policy", settings.policy, "-o", str(tmp_path / "ppo")]
    result = CliRunner().invoke(app, ["study", "ppo", "--reward", "shorter", "longer", *sizes, *place])
    assert result.exit_code == 0, result.output
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "ppo" / "trainings").iterdir()) == [
        "longer",
        "shorter",
    ]


@pytest.fixture(scope="module")
def own(settings: PPOStudyConfig) -> PPOStudyConfig:
    options = OPTIONS.model_copy(update={"posts": 0})
    return settings.model_copy(update={"people": 4, "options": options})


def own_study(
    own: PPOStudyConfig, out: Path, rewards=REWARDS[:1], judge: PlantedJudge | None = None
) -> PPOStudy | None:
    suite = tiny_suite(couples=3, questions=24)
    return ppo_study(own, rewards, out, suite=suite, judge=judge or PlantedJudge(), say=lambda line: None)


def test_people_get_policies_of_their_own_and_are_judged_on_other_questions(own: PPOStudyConfig, tmp_path: Path):
    division = divide(tiny_suite(couples=3, questions=24), own, PlantedJudge())
    people = {item.pair.user for item in division.items}
    assert len(people) == 4
    assert len({item.unit for item in division.items}) == 2  # whole couples
    assert {pair.user for pair in division.train} == people
    assert not {pair.question for pair in division.train} & {item.pair.question for item in division.items}
    found = own_study(own, tmp_path / "ppo")
    assert found is not None
    assert "held-out questions of its own person" in found.endpoint
    seed = found.models["py:ppo_world:e_share"].details.seeds["0"]
    folder = tmp_path / "ppo" / "trainings" / seed.folder
    parts = sorted((folder / "people").iterdir())
    assert len(parts) == 4
    histories = [read_history(part / "history.jsonl") for part in parts]
    together = read_history(folder / "history.jsonl")
    assert [step.step for step in together] == [1, 2]
    assert together[1].kl == pytest.approx(fmean(history[1].kl for history in histories))
    assert together[1].seconds == pytest.approx(sum(history[1].seconds for history in histories))
    assert "a policy for each of 4 people" in render(ppo_tables(found), "md")
    adapters = [(part / "checkpoint.pt").read_bytes() for part in parts]
    assert len(set(adapters)) == 4


def test_own_policies_continue_and_cost_nothing_once_they_are_there(own: PPOStudyConfig, tmp_path: Path):
    own_study(own, tmp_path / "ppo")
    before = {path: path.read_bytes() for path in (tmp_path / "ppo").rglob("*.jsonl")}
    (training,) = (tmp_path / "ppo" / "trainings").iterdir()
    lost = sorted((training / "people").iterdir())[-1]
    shutil.rmtree(lost)  # as if it had been stopped before the last person
    (training / "training.json").unlink()
    judge = PlantedJudge()
    own_study(own, tmp_path / "ppo", judge=judge)
    assert judge.asked == 0
    after = {path: path.read_bytes() for path in (tmp_path / "ppo").rglob("*.jsonl")}
    assert {path for path in before if before[path] != after[path]} <= {
        lost / "history.jsonl",
        training / "history.jsonl",
    }


def test_items_that_were_chosen_stay_whoever_judges_later(own: PPOStudyConfig):
    suite = tiny_suite(couples=3, questions=24)
    first = divide(suite, own, PlantedJudge())
    assert set(first.chosen) > {item.id for item in first.items}
    fewer = [one for one in first.chosen if one != first.items[0].id]
    again = divide(suite, own, None, fewer)
    assert again.chosen == fewer
    assert [pair.id for pair in again.train] == [pair.id for pair in first.train]


def test_a_study_of_own_policies_stays_one(own: PPOStudyConfig, tmp_path: Path):
    keep_settings(tmp_path / "own", own)
    with pytest.raises(RunError, match="with people 4, not None"):
        keep_settings(tmp_path / "own", own.model_copy(update={"people": 0}))
    keep_settings(tmp_path / "all", own.model_copy(update={"people": 0}))
    with pytest.raises(RunError, match="with people None, not 4"):
        keep_settings(tmp_path / "all", own)


def test_the_best_is_held_against_the_others_item_by_item(own: PPOStudyConfig, tmp_path: Path):
    found = own_study(own, tmp_path / "ppo", rewards=REWARDS[:2])
    assert found is not None
    best, other = sorted(found.models.values(), key=lambda one: -(one.score.value or 0))
    assert best.details.behind is None
    behind = other.details.behind
    assert behind is not None
    assert behind.value == pytest.approx(fmean(best.items[item] - other.items[item] for item in best.items))


def test_more_people_than_ask_enough_are_refused(own: PPOStudyConfig, tmp_path: Path):
    many = own.model_copy(update={"people": 60})
    with pytest.raises(ConfigError, match="--people 60: whole couples with 5 questions or more in either half make 6"):
        own_study(many, tmp_path / "ppo")
    with pytest.raises(ConfigError, match="verl trains one policy for all"):
        write_verl(own, REWARDS[:1], tmp_path / "verl", server="http://127.0.0.1:1")
