"""`prbench train`, from a suite on disk to a model that a run evaluates; and what it refuses before it embeds."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tiny_models
from prbench.cli import main
from prbench.errors import ConfigError, DataError
from prbench.train import TrainConfig, train
from prbench.types import Pair
from split_suite import SPLITS, split_pairs, write_suite


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"embed:{tiny_models.save_encoder(tmp_path_factory.mktemp('encoder'))}"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))


def _all() -> list[Pair]:
    return [pair for split in SPLITS for pair in split_pairs(split)]


Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """The command line as a user meets it: exit code, and all that was printed."""

    def typed(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["prbench", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capfd.readouterr()
        return int(end.value.code or 0), said.out + said.err

    return typed


def test_train_then_run_under_every_context(encoder: str, tmp_path: Path, call: Call) -> None:
    suite, model, out = write_suite(tmp_path / "suite.jsonl"), tmp_path / "model", tmp_path / "run"
    words = ("train", "user-bt", "--suite", suite, "--encoder", encoder, "--epochs", 2, "-o", model)
    code, said = call(*words, "--setting", "stances=3")
    assert code == 0, said
    assert "24 pairs of 6 users" in said
    assert f"prbench run --model personal:{model}" in said
    record = json.loads((model / "personal.json").read_text())
    assert record["settings"] == {"stances": 3}
    assert record["training"]["fingerprint"]
    contexts = "none,profile,other,opposite,oracle"
    code, said = call("run", "--suite", suite, "--model", f"personal:{model}", "--context", contexts, "-o", out)
    assert code == 0, said
    lines = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    records = [line.get("record", line) for line in lines]
    margins = {name: {r["pair"]: r["margin"] for r in records if r["context"] == name} for name in contexts.split(",")}
    assert all(len(of_context) == 24 for of_context in margins.values())
    assert all(record["status"] == "ok" for record in records)
    assert margins["profile"] != margins["other"]
    assert margins["oracle"] != margins["none"], "the plan is read"
    for pair in split_pairs("test"):  # a stranger: the two halves of a couple get opposite margins
        twin = next(p for p in split_pairs("test") if p.tags["mirror"] == pair.tags["mirror"] and p.id != pair.id)
        assert margins["none"][pair.id] == -margins["none"][twin.id]


def test_a_user_blind_model_reads_no_context_but_none(encoder: str, tmp_path: Path, call: Call) -> None:
    suite, model, out = write_suite(tmp_path / "suite.jsonl"), tmp_path / "model", tmp_path / "run"
    code, said = call("train", "bt", "--suite", suite, "--encoder", encoder, "--epochs", 1, "-o", model)
    assert code == 0, said
    assert "validation accuracy 50.0 %" in said
    code, said = call("run", "--suite", suite, "--model", f"personal:{model}", "--context", "none,profile", "-o", out)
    assert code == 0, said
    assert "unsupported" in said or "does not read" in said


def test_fewer_people(encoder: str, tmp_path: Path, call: Call) -> None:
    suite = write_suite(tmp_path / "suite.jsonl")
    words = ("train", "bt", "--suite", suite, "--encoder", encoder, "--epochs", 1, "--people")
    code, said = call(*words, 1, "-o", tmp_path / "model")
    assert code == 0, said
    assert "pairs of 2 users" in said
    code, said = call(*words, 5000, "-o", tmp_path / "none")
    assert code == 2, said
    assert "couples or users" in said


def _options(encoder: str = "embed:never-opened/x", **changes: object) -> TrainConfig:
    return TrainConfig.model_validate({"method": "user-bt", "encoder": encoder, **changes})


def test_one_user_can_only_teach_one_reward(tmp_path: Path) -> None:
    pairs = [pair for pair in split_pairs("train") if pair.user == "train-u0a"]
    alone = [pair.model_copy(update={"tags": {"split": "train"}}) for pair in pairs]
    suite = write_suite(tmp_path / "suite.jsonl", [*alone, *split_pairs("validation")])
    with pytest.raises(DataError, match=r"at least two users.*'train-u0a'") as error:
        train(_options(), tmp_path / "model", suite=str(suite))
    assert "train bt" in error.value.hint


def test_users_of_whom_nothing_is_shown_are_refused(tmp_path: Path) -> None:
    bare = [pair.model_copy(update={"profile": ()}) for pair in _all()]
    suite = write_suite(tmp_path / "suite.jsonl", bare)
    with pytest.raises(ConfigError, match="nothing to know users by"):
        train(_options(shots=0), tmp_path / "model", suite=str(suite))


def test_users_without_posts_are_known_by_judgments(encoder: str, tmp_path: Path) -> None:
    bare = [pair.model_copy(update={"profile": ()}) for pair in _all()]
    suite = write_suite(tmp_path / "suite.jsonl", bare)
    record = train(_options(encoder, epochs=1, shots=2), tmp_path / "model", suite=str(suite))
    assert record.training.pairs == 24


@pytest.mark.parametrize("split", ["validation", "test"])
@pytest.mark.parametrize("field", ["question", "chosen", "rejected", "profile"])
def test_a_held_out_text_in_the_training_split_is_refused_however_it_is_written(
    split: str, field: str, tmp_path: Path
) -> None:
    first, *others = _all()
    held = split_pairs(split)[0]
    if field == "profile":
        taken = (held.profile[0].model_copy(update={"text": held.profile[0].text.upper()}),)
    else:
        taken = getattr(held, field).upper().replace(".", " !")
    leaking = first.model_copy(update={field: taken, "tags": {"split": "train"}})
    others = [
        p if p.tags.get("mirror") != first.tags["mirror"] else p.model_copy(update={"tags": {"split": "train"}})
        for p in others
    ]
    suite = write_suite(tmp_path / "suite.jsonl", [leaking, *others])
    with pytest.raises(DataError, match=f"of the {split} split"):
        train(_options(), tmp_path / "model", suite=str(suite))
    assert not (tmp_path / "model").exists()


def test_a_split_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite.jsonl")
    with pytest.raises(DataError, match="no split 'dev'") as error:
        train(_options(), tmp_path / "model", suite=str(suite), validation="dev")
    assert "test, train, validation" in error.value.hint


def test_training_on_the_test_split_is_refused(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite.jsonl")
    with pytest.raises(DataError, match="of the test split"):
        train(_options(), tmp_path / "model", suite=str(suite), split="test")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("user-tb",), "did you mean 'user-bt'"),
        (("contrats",), "did you mean 'contrast'"),
        (("contrast", "--setting", "foo=1"), "there is no such setting"),
        (("user-bt", "--setting", "stances"), "is not NAME=VALUE"),
        (("user-bt", "--setting", "stence=3"), "stence"),
        (("user-bt", "--learning-rate", "-1"), "--learning-rate"),
        (("cross", "--setting", "badget=3"), "--badget"),
        (("cross", "--shots", "2"), "--shots means nothing to cross"),
        (("user-bt", "--pairs-per-epoch", "9"), "--pairs-per-epoch means nothing to user-bt"),
        (("encoder", "--learning-rate", "-1"), "--learning-rate"),
        (("encoder", "--setting", "rang=3"), "--rang"),
        (("encoder", "--aspects"), "--aspects means nothing to encoder"),
    ],
)
def test_mistakes_are_said_without_a_traceback(
    words: tuple[str, ...], says: str, encoder: str, tmp_path: Path, call: Call
) -> None:
    suite = write_suite(tmp_path / "suite.jsonl")
    code, said = call("train", *words, "--suite", suite, "--encoder", encoder, "-o", tmp_path / "model")
    assert code == 2, said
    assert says in said
    assert "Traceback" not in said


def test_an_encoder_that_cannot_be_tuned_is_named(encoder: str, tmp_path: Path, call: Call) -> None:
    suite, tuned = write_suite(tmp_path / "suite.jsonl"), tmp_path / "tuned"
    words = ("train", "encoder", "--suite", suite, "--epochs", 1, "--setting", "passages=false")
    code, said = call(*words, "--encoder", encoder, "--setting", "layers=2", "-o", tuned)
    assert code == 0, said
    assert json.loads((tuned / "tuning.json").read_text())["options"]["layers"] == 2, "settings are heard"
    code, said = call(*words, "--encoder", f"embed:{tuned}#stances", "-o", tmp_path / "again")
    assert code == 2, said
    assert "cannot be tuned" in said
    assert "Traceback" not in said


def test_cross_from_the_command_line(encoder: str, tmp_path: Path, call: Call) -> None:
    suite, model = write_suite(tmp_path / "suite.jsonl"), tmp_path / "model"
    words = (
        "train",
        "cross",
        "--suite",
        suite,
        "--encoder",
        encoder,
        "--epochs",
        1,
        "--pairs-per-epoch",
        4,
        "-o",
        model,
    )
    code, said = call(*words, "--setting", "budget=64")
    assert code == 0, said
    assert json.loads((model / "personal.json").read_text())["settings"]["budget"] == 64
    assert (model / "cross" / "model.safetensors").is_file()
