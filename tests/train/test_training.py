"""Trainings are repeatable, go on where they were stopped, and refuse what they cannot continue."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from planted_worlds import HashEncoder, World, reader, student, world
from prbench.errors import ConfigError, ModelError, RunError
from prbench.models.personal.artifact import TrainingFacts, read_weights
from prbench.models.personal.method import METHODS, Width, make
from prbench.models.personal.reader import Reader
from prbench.train import TrainConfig, checkpoint
from prbench.train.checkpoint import CHECKPOINT, alone
from prbench.train.method_training import Epoch, Training, measure, save

SMALL = {"users": 6, "each": 6}
EPOCHS = {"epochs": 5, "patience": 5, "shots": 3, "batch": 8, "strangers": 0.1, "keep_posts": 0.6}


def _training(folder: Path, name: str = "user-bt", **options: object) -> Training:
    train, validation = _small()
    return student(name, train, validation, folder, **(EPOCHS | options))


def _small() -> tuple[World, World]:
    return world("user-bt", "train", **SMALL), world("user-bt", "validation", users=3, each=6)


def _same(one: Training, other: Training) -> bool:
    pairs = zip(one.method.state_dict().values(), other.method.state_dict().values(), strict=True)
    return all(torch.equal(left, right) for left, right in pairs)


@pytest.mark.parametrize("name", METHODS)
def test_one_seed_gives_one_set_of_weights(name: str, tmp_path: Path) -> None:
    trainings = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        torch.manual_seed(ord(folder))  # what the caller has drawn before must not matter
        settings = {} if name == "stances" else {"dropout": 0.3}
        trainings.append(_training(tmp_path / folder, name, seed=seed, epochs=2, settings=settings))
        trainings[-1].run()
    assert _same(trainings[0], trainings[1])
    assert not _same(trainings[0], trainings[2])


class Stop(Exception):
    pass


@pytest.mark.parametrize("name", ["user-bt", "vpl"])
@pytest.mark.parametrize("after", [1, 4])
def test_a_training_stopped_by_an_exception_ends_with_the_same_weights(name: str, after: int, tmp_path: Path) -> None:
    def stop(epoch: Epoch) -> None:
        if epoch.number == after:
            raise Stop

    dropout = {"settings": {"dropout": 0.3}}
    whole = _training(tmp_path / "whole", name, **dropout)
    whole.run()
    with pytest.raises(Stop):
        _training(tmp_path / "stopped", name, **dropout).run(stop)
    heard: list[int] = []
    rest = _training(tmp_path / "stopped", name, **dropout)
    rest.run(lambda epoch: heard.append(epoch.number))
    assert _same(whole, rest)
    assert heard[0] == after + 1
    assert (rest.best, rest.steps, rest.epoch) == (whole.best, whole.steps, whole.epoch)


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from planted_worlds import student, world
train, validation = world("user-bt", "train", users=6, each=6), world("user-bt", "validation", users=3, each=6)
options = dict(epochs=5, patience=5, shots=3, batch=8, strangers=0.1, keep_posts=0.6)
def tell(epoch):
    print(epoch.number, flush=True)
    if epoch.number == 3:
        sys.stdin.read()  # until the end
student("user-bt", train, validation, Path(sys.argv[2]), **options).run(tell)
"""


def test_a_killed_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = _training(tmp_path / "whole")
    whole.run()
    support = str(Path(__file__).parents[1] / "support")
    command = [sys.executable, "-c", KILLED, support, str(tmp_path / "killed")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline().strip() for _ in range(3)] == ["1", "2", "3"]
        with pytest.raises(RunError, match="another process"):
            _training(tmp_path / "killed").run()
        process.kill()
        process.wait(timeout=60)
    rest = _training(tmp_path / "killed")
    rest.run()
    assert rest.epoch == 5
    assert _same(whole, rest)


def test_a_finished_training_is_not_trained_again(tmp_path: Path) -> None:
    first = _training(tmp_path)
    first.run()
    again, heard = _training(tmp_path), []
    again.run(heard.append)
    assert heard == []
    assert _same(first, again)


def test_training_stops_when_nothing_gets_better_and_keeps_the_best(tmp_path: Path) -> None:
    heard: list[Epoch] = []
    training = _training(tmp_path, epochs=40, patience=2, learning_rate=0.3)
    training.run(heard.append)
    best = max(heard, key=lambda epoch: (epoch.validation_accuracy, -epoch.validation_loss))
    assert len(heard) == best.number + 2 < 40
    assert training.best == best


def test_what_is_saved_is_the_best_epoch_and_scores_as_it_did_in_training(tmp_path: Path) -> None:
    training = _training(tmp_path, epochs=40, patience=2, learning_rate=0.3)
    training.run()
    last = checkpoint.read(tmp_path, training._identity)["method"]
    facts = TrainingFacts(suite="s", fingerprint="f", split="train", pairs=1, users=2, questions=1)
    record = save(training, reader(), facts, tmp_path, encoder="hash")
    opened = make(record.method, Width(record.width_post, record.width_item), dict(record.settings), seed=99)
    opened.load_state_dict(read_weights(tmp_path, "personal:x"))
    found = measure(opened, training._validation, shots=training.options.shots)
    assert found == (training.best.validation_accuracy, training.best.validation_loss)
    assert any(not torch.equal(last[name], value) for name, value in opened.state_dict().items())


@pytest.mark.parametrize("change", ["option", "text", "order", "encoder"])
def test_a_checkpoint_of_another_training_is_refused(change: str, tmp_path: Path) -> None:
    _training(tmp_path, epochs=1, patience=1).run()
    train, validation = _small()
    encoder = HashEncoder(name="hash@2" if change == "encoder" else "hash@1")
    if change == "text":
        train.pairs[0] = train.pairs[0].model_copy(update={"chosen": "another answer under the same id"})
    if change == "order":
        train.pairs.reverse()
    same = _training(tmp_path / "same", epochs=1, patience=1).options
    options = same.model_copy(update={"learning_rate": 0.5}) if change == "option" else same
    reader = Reader(encoder, post_window=0, answer_window=0)
    with pytest.raises(RunError, match="another training"):
        Training(options, train.pairs, validation.pairs, reader, tmp_path).run()


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", None])
def test_a_damaged_checkpoint_is_named(content: bytes | None, tmp_path: Path) -> None:
    if content is None:
        torch.save({"weights": torch.zeros(2)}, tmp_path / CHECKPOINT)
    else:
        (tmp_path / CHECKPOINT).write_bytes(content)
    with pytest.raises(RunError, match="not a checkpoint") as error:
        _training(tmp_path).run()
    assert "remove that file" in error.value.hint


def test_a_torn_checkpoint_is_named(tmp_path: Path) -> None:
    _training(tmp_path, epochs=1, patience=1).run()
    path = tmp_path / CHECKPOINT
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(RunError, match="not a checkpoint"):
        _training(tmp_path, epochs=1, patience=1).run()


def test_a_flipped_byte_inside_a_tensor_is_noticed(tmp_path: Path) -> None:
    weights = torch.arange(4000, dtype=torch.float32)
    checkpoint.keep(tmp_path, "mine", {"weights": weights})
    path = tmp_path / CHECKPOINT
    data = bytearray(path.read_bytes())
    place = data.find(weights[2000:2004].numpy().tobytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert not torch.equal(torch.load(path, weights_only=True)["weights"], weights)  # torch itself does not notice
    with pytest.raises(RunError, match="is damaged") as error:
        checkpoint.read(tmp_path, "mine")
    assert str(path) in error.value.message
    assert "remove that file to train from the start" in error.value.hint


def test_out_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file"), alone(tmp_path / "file"):
        pass


def test_a_loss_that_is_no_number_stops_the_training_and_keeps_what_was_good(tmp_path: Path) -> None:
    training = _training(tmp_path)

    def spoil(epoch: Epoch) -> None:
        with torch.no_grad():
            training.method.stance.weight.fill_(float("nan"))

    with pytest.raises(ModelError, match="loss of user-bt became nan in epoch 2") as error:
        training.run(spoil)
    assert "--learning-rate" in error.value.hint
    rest = _training(tmp_path)
    rest.run()
    assert rest.epoch == 5, "the checkpoint of epoch 1 was whole"


def test_a_validation_that_is_no_number_is_no_model(tmp_path: Path) -> None:
    training = _training(tmp_path)
    training._validation.items_N2F.fill_(float("nan"))
    with pytest.raises(ModelError, match="validation loss"):
        training.run()
    assert not (tmp_path / CHECKPOINT).exists()


def test_a_setting_that_does_not_exist_costs_no_embedding(tmp_path: Path) -> None:
    encoder = HashEncoder()
    train, validation = _small()
    options = TrainConfig(method="user-bt", settings={"stence": 3})
    with pytest.raises(ConfigError, match="stence"):
        Training(options, train.pairs, validation.pairs, Reader(encoder), tmp_path)
    assert encoder.asked == ["width"]


def test_early_stopping_shows_judgments_where_there_are_no_posts(tmp_path: Path) -> None:
    parts = [world("user-bt", part, users=users, each=12, hidden=True) for part, users in (("train", 40), ("val", 10))]
    training = student("user-bt", *parts, tmp_path, shots=8, epochs=6)
    training.run()
    assert training.best.validation_accuracy > 0.65, "without judgments every user is a stranger, and this is 0.5"
