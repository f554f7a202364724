"""Project files damaged in every way that comes to mind: each either still works or is refused by name.

Seeded, so that a case can be repeated. `make test` draws some hundreds of mutations, the long profile 10,000.
"""

import contextlib
import math
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import annotate_study
import tiny_models
from campaigns import Campaign, times, told
from mutations import damage
from prbench import evaluate
from prbench.annotate import export, find
from prbench.annotate.store import Store
from prbench.api.reward import calibrate, evaluate_personalized_reward
from prbench.audit import load_settings
from prbench.build.written.gate_replies import GateReplies
from prbench.build.written.journal import ReplyLine
from prbench.calls import CallCache, Journal
from prbench.data import load_pairs, write_pairs
from prbench.errors import PrbenchError
from prbench.files import Appender, append_line, write_whole
from prbench.models import load_model
from prbench.models.local.gguf import check_gguf
from prbench.models.personal.features import FeatureStore
from prbench.plan import Plan, StoredPlans
from prbench.report.finished import open_finished
from prbench.report.leaderboard import read_boards
from prbench.report.leaderboard.entry import read_names
from prbench.report.page import report_page
from prbench.report.view.pages import build_pages
from prbench.results import load_run, verify, versus
from prbench.scorecard.config import read_settings_file
from prbench.serve.feedback import FeedbackFile
from prbench.studies.best_of_n import BestOfNConfig, best_of_n, parse_model, read_settings
from prbench.studies.ppo import checkpoint as training
from prbench.studies.ppo.checkpoint import TrainingStep, read_history
from prbench.studies.sections import study_page
from prbench.studies.study import read_study
from prbench.train import TrainConfig, train
from prbench.types import AnswerView, Judgment, Outcome
from small_suite import Spy, mirrored
from split_suite import write_suite
from study_world import HashJudge, Scribe, world

SEED = 15
MUTATIONS = times(10_000)
WEIGHTS = torch.arange(3000, dtype=torch.float32)
Reader = Callable[[Path], object]


class ChangedError(Exception):
    """Something was read that is not what was written, although the file says what it should be."""


class Specimen(NamedTuple):
    """A sound example of one kind of project file, and everything that reads it."""

    make: Callable[[Path], None]
    """Fills a folder."""
    files: Sequence[str]
    """What is damaged."""
    readers: Sequence[Reader]
    share: int = 1
    """How many mutations it gets, relative to others."""
    names: Sequence[str] = ()
    """What else a message may name."""


def _make_suite(name: str) -> Callable[[Path], None]:
    return lambda folder: write_pairs(mirrored(couples=2, questions=3), folder / name)


def _make_run(folder: Path) -> None:
    pairs = write_pairs(mirrored(couples=2, questions=3), folder / "suite.jsonl")
    write_whole(folder / "suite.path", str(pairs))
    for name, model in (("run", Spy()), ("other", "shorter")):
        evaluate(model, pairs, contexts=["none", "profile"], resamples=100, out=folder / name, cache=False)


def _compare(folder: Path) -> None:
    versus(load_run(folder / "run"), load_run(folder / "other"))


def _resume(folder: Path) -> None:
    pairs = (folder / "suite.path").read_text()  # where it lay when the run was made: part of what the run is
    evaluate(Spy(), pairs, contexts=["none", "profile"], resamples=100, out=folder / "run", cache=False)


_RUN = ("config.toml", "run.json", "dataset.json", "pairs.jsonl", "baselines.jsonl", "records.jsonl", "records.parquet")


_STUDY = ("settings.json", "judge.json", "candidates.jsonl", "grades.jsonl", "scores/longer-2cb811.jsonl")


def _make_stored(suffix: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        pairs = mirrored(couples=2, questions=3)
        write_pairs(pairs, folder / "suite.jsonl")
        if suffix == ".jsonl":
            rows = [f'{{"id": "{pair.id}", "chosen_score": 1.5, "rejected_score": -0.5}}\n' for pair in pairs]
        else:
            rows = ["id,chosen_score,rejected_score\n", *(f'"{pair.id}",1.5,-0.5\n' for pair in pairs)]
        write_whole(folder / f"scores{suffix}", "".join(rows))

    return make


def _replay(folder: Path, name: str) -> None:
    evaluate(f"stored:{folder / name}", folder / "suite.jsonl", contexts=["profile"], resamples=100, cache=False)


def _make_plans(folder: Path) -> None:
    with Appender(folder / "plans.jsonl") as lines:
        for number in range(6):
            need = f"need{number}"
            lines.append(Plan(key=f"key{number}", status="ok", plan=("Short.", "Red."), need=need, user="ann"))


def _make_feedback(folder: Path) -> None:
    with FeedbackFile(folder / "judged.jsonl") as file:
        for number in range(8):
            file.add(f"user{number % 2}", Judgment(question=f"Tea {number}?", chosen="Green.", rejected="Black."))


def _open_feedback(folder: Path) -> None:
    with FeedbackFile(folder / "judged.jsonl") as file:
        file.add("user0", Judgment(question="Coffee?", chosen="Black.", rejected="White."))
        file.forget("user1")


def _make_personal(folder: Path) -> None:
    encoder = tiny_models.save_encoder(folder / "encoder")
    suite = write_suite(folder / "suite.jsonl")
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        patch.setenv("PRBENCH_CACHE", str(folder / "cache"))
        options = TrainConfig(method="user-bt", encoder=f"embed:{encoder}", epochs=1, batch=8, shots=2)
        train(options, folder / "model", suite=str(suite))
        calibrate("personal:model", suite, limit=8)  # a scale knows the address of its model
        [(_, outcome)] = load_model("personal:model").rate([AnswerView("Which hat?", "The red hat.")])
        write_whole(folder / "score", str(outcome.score))


def _rate(folder: Path) -> None:
    model = load_model(f"personal:{folder / 'model'}")
    [(_, outcome)] = model.rate([AnswerView("Which hat?", "The red hat.")])
    if str(outcome.score) != (folder / "score").read_text():
        raise ChangedError(f"score {outcome.score}")


def _reward(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        patch.setenv("PRBENCH_CACHE", str(folder / "cache"))
        evaluate_personalized_reward("The red hat.", ["I like red."], 0.5, model="personal:model")


class Lengths:
    """An encoder that needs no weights."""

    name = "lengths"

    def encode(self, texts: Sequence[str]) -> object:
        import numpy as np

        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def _embed(folder: Path) -> None:
    FeatureStore(Lengths(), folder / "vectors").encode(["tea", "green tea", "black tea"])


def _make_annotations(folder: Path) -> None:
    opened = annotate_study.study(folder)
    for annotator in (1, 2):
        annotate_study.fill(opened.store, annotator, annotate_study.prefer_green)
    opened.store.settle()
    for left in ("-wal", "-shm"):
        (folder / f"annotations.sqlite{left}").unlink(missing_ok=True)


def _found(folder: Path) -> None:
    find(Store.existing(folder / "annotations.sqlite"), resamples=50)


def _exported(folder: Path) -> None:
    export(Store.existing(folder / "annotations.sqlite"), folder / "out")


def _continued(folder: Path) -> None:
    annotate_study.study(folder)


def _settings() -> object:
    models = [parse_model(text) for text in ("longer", "py:small_suite:follows_posts")]
    return BestOfNConfig.of(**{"policy": "scribe", "n": 3, "judge_pairs": 24, "resamples": 100, "models": models})


def _study(folder: Path) -> None:
    suite = world(couples=2, questions=3)
    out = folder / "study"
    best_of_n(_settings(), out, suite=suite, policy=Scribe(), judge=HashJudge(), say=lambda line: None)


def _make_training(folder: Path) -> None:
    training.claim(folder / "training", {"seed": 1, "policy": {"address": "lm:tiny"}})
    training.keep(folder / "training", {"seed": 1, "policy": {"address": "lm:tiny"}}, {"step": 3, "weights": WEIGHTS})
    with Appender(folder / "training" / "history.jsonl") as lines:
        for number in range(4):
            lines.append(TrainingStep(step=number, reward=0.5, kl=0.1, entropy=None, length=3.0, ended=1.0, dropped=0))


def _go_on(folder: Path) -> None:
    found = training.read(folder / "training", {"seed": 1, "policy": {"address": "lm:tiny"}})
    if found is not None and not (found["step"] == 3 and torch.equal(found["weights"], WEIGHTS)):
        raise ChangedError(f"step {found['step']}, weights {found['weights']}")


def _make_build(folder: Path) -> None:
    for number in range(5):
        append_line(folder / "answers.jsonl", ReplyLine(key=f"k{number}", status="ok", text="Tea.").model_dump_json())
        kept = f'{{"key":"k{number}","outcome":{{"status":"ok","raw":"yes"}}}}'
        append_line(folder / "gate_calls.jsonl", kept)


def _remember(folder: Path) -> None:
    with GateReplies(folder / "gate_calls.jsonl") as memory:
        memory.lines()


def _make_cache(folder: Path) -> None:
    cache = CallCache(folder / "calls.sqlite")
    for number in range(20):
        cache.keep(f"key{number}", Outcome.scored(number / 2))
    cache.close()
    for left in ("-wal", "-shm"):
        (folder / f"calls.sqlite{left}").unlink(missing_ok=True)


def _look_up(folder: Path) -> None:
    cache = CallCache(folder / "calls.sqlite")
    try:
        cache.find([f"key{number}" for number in range(20)])
        cache.keep("new", Outcome.scored(1.0), at_once=True)
    finally:
        cache._database.close()


def _make_tables(folder: Path) -> None:
    write_whole(folder / "models.toml", '["hf:org/rm"]\nname = "RM"\nweights = "open"\n')
    write_whole(folder / "settings.toml", "exempt = {}\n\n[thresholds]\nlength = 0.5\n")
    write_whole(folder / "card.toml", 'suite = "mirror"\nlimit = 10\n\n[[models]]\naddress = "longer"\n')


def _make_gguf(folder: Path) -> None:
    tiny_models.write_gguf(folder / "tiny.gguf")


SPECIMENS: Mapping[str, Specimen] = {
    "suite JSONL": Specimen(_make_suite("a.jsonl"), ["a.jsonl"], [lambda folder: load_pairs(folder / "a.jsonl")], 4),
    "suite CSV": Specimen(_make_suite("a.csv"), ["a.csv"], [lambda folder: load_pairs(folder / "a.csv")], 2),
    "suite Parquet": Specimen(
        _make_suite("a.parquet"), ["a.parquet"], [lambda folder: load_pairs(folder / "a.parquet")], 2
    ),
    "suite gzip": Specimen(
        _make_suite("a.jsonl.gz"), ["a.jsonl.gz"], [lambda folder: load_pairs(folder / "a.jsonl.gz")]
    ),
    "run folder": Specimen(
        _make_run,
        [f"run/{name}" for name in (*_RUN, "result.json")],
        [
            lambda folder: verify(folder / "run"),
            lambda folder: report_page([folder / "run", folder / "other"]),
            lambda folder: open_finished(folder / "run"),
            lambda folder: read_boards([folder / "run"]),
            lambda folder: build_pages([folder / "run"]),
            _compare,
            _resume,
            lambda folder: _replay(folder, "run/records.jsonl"),
        ],
        8,
    ),
    "stored JSONL": Specimen(
        _make_stored(".jsonl"), ["scores.jsonl"], [lambda folder: _replay(folder, "scores.jsonl")], 2
    ),
    "stored CSV": Specimen(_make_stored(".csv"), ["scores.csv"], [lambda folder: _replay(folder, "scores.csv")]),
    "plans": Specimen(_make_plans, ["plans.jsonl"], [lambda folder: StoredPlans(folder / "plans.jsonl")]),
    "feedback": Specimen(_make_feedback, ["judged.jsonl"], [_open_feedback]),
    "personal model": Specimen(_make_personal, ["model/personal.json", "model/weights.safetensors"], [_rate], 3),
    "scale": Specimen(_make_personal, ["model/prbench_scale.json"], [_reward]),
    "vectors": Specimen(_embed, ["vectors/width", "vectors/keys.bin", "vectors/vectors.f32"], [_embed]),
    "GGUF header": Specimen(_make_gguf, ["tiny.gguf"], [lambda folder: check_gguf(folder / "tiny.gguf")], 2),
    "annotations": Specimen(_make_annotations, ["annotations.sqlite"], [_found, _exported, _continued], 3),
    "study": Specimen(
        _study,
        ["study/study.json", "study/curves.json"],
        [lambda folder: study_page([folder / "study"]), lambda folder: read_study(folder / "study")],
        3,
    ),
    "study in progress": Specimen(
        _study, [f"study/{name}" for name in _STUDY], [_study], names=["hash-judge is at chance"]
    ),
    "training": Specimen(
        _make_training,
        ["training/key.json", "training/checkpoint.pt", "training/history.jsonl"],
        [_go_on, lambda folder: read_history(folder / "training" / "history.jsonl")],
        2,
    ),
    "build": Specimen(
        _make_build,
        ["answers.jsonl", "gate_calls.jsonl"],
        [lambda folder: Journal(folder / "answers.jsonl", ReplyLine, lambda line: line.key), _remember],
    ),
    "cache": Specimen(_make_cache, ["calls.sqlite"], [_look_up], 2),
    "settings": Specimen(
        _make_tables,
        ["models.toml", "settings.toml", "card.toml"],
        [
            read_names,
            lambda folder: load_settings(folder / "settings.toml"),
            lambda folder: read_settings_file(folder / "card.toml"),
            lambda folder: read_settings(folder / "card.toml"),
        ],
    ),
}
_SHARES = sum(specimen.share for specimen in SPECIMENS.values())


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The sound example of each kind, made once."""
    made: dict[str, Path] = {}

    def find_or_make(name: str) -> Path:
        make = SPECIMENS[name].make
        if name not in made:
            same = next((path for other, path in made.items() if SPECIMENS[other].make is make), None)
            made[name] = same or tmp_path_factory.mktemp("sound")
            if same is None:
                make(made[name])
        return made[name]

    return find_or_make


@pytest.mark.parametrize("name", SPECIMENS)
def test_the_sound_example_is_read(name: str, sound: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(sound(name), folder)
    assert all((folder / file).is_file() for file in SPECIMENS[name].files)
    for read in SPECIMENS[name].readers:
        try:
            read(folder)
        except PrbenchError:
            assert name == "settings"  # each reader knows one of the files


@pytest.mark.parametrize("name", SPECIMENS)
def test_damaged_files_work_or_are_named(name: str, sound: Callable[[str], Path], tmp_path: Path, attack: Any) -> None:
    specimen = SPECIMENS[name]
    with attack(f"mutated files: {name}") as campaign:
        for number in range(max(3, math.ceil(MUTATIONS * specimen.share / _SHARES))):
            chance = random.Random(f"{SEED} {name} {number}")
            folder = tmp_path / str(number)
            shutil.copytree(sound(name), folder)
            done = damage(folder, specimen.files, chance)
            read = chance.choice(list(specimen.readers))
            what = f"{number}: {done.kind} of {done.file}, reader {specimen.readers.index(read)}"
            campaign.tried += 1
            _read(campaign, what, read, folder, specimen)
            shutil.rmtree(folder)


def _read(campaign: Campaign, what: str, read: Reader, folder: Path, specimen: Specimen) -> None:
    """It works, or is refused in words that name the file; anything else is wrong."""
    try:
        read(folder)
    except PrbenchError as error:
        named = [*(Path(name).name for name in (*specimen.files, *specimen.names)), str(folder)]
        if not any(name in error.message for name in named):
            campaign.tracebacks.append(f"{what}: no name in {type(error).__name__}: {error.message}")
    except ChangedError as error:
        campaign.changed.append(f"{what}: {error}")
    except Exception as error:
        campaign.tracebacks.append(f"{what}: {told(error)}")
