"""`personal:DIR`: what was trained is what scores; users are read, adapted to and forgotten."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import tiny_models
from prbench.config import ModelOptions
from prbench.errors import ConfigError, ModelError
from prbench.models import load_model
from prbench.models.personal import rater as room
from prbench.models.personal.artifact import RECORD, SUMS, WEIGHTS
from prbench.models.personal.method import METHODS
from prbench.models.personal.rater import PersonalRater
from prbench.models.protocols import Adaptive
from prbench.scorecard.curves import points_of
from prbench.train import TrainConfig, train
from prbench.types import AnswerView, Channel, Judgment, Post
from split_suite import split_pairs, write_suite

NAMES = tuple(name for name in METHODS if name != "stances")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[dict[str, Path]]:
    """Every method, trained for two epochs on a tiny encoder's vectors."""
    root = tmp_path_factory.mktemp("trained")
    suite = write_suite(root / "suite.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRBENCH_CACHE", str(root / "cache"))
        for name in NAMES:
            options = TrainConfig(method=name, encoder=f"embed:{encoder}", epochs=2, batch=8, shots=2)
            train(options, root / name, suite=str(suite))
        yield {name: root / name for name in NAMES}


def _views() -> list[AnswerView]:
    pairs = split_pairs("test")[:4]
    return [
        AnswerView(pair.question, answer, posts, plan, user)
        for pair in pairs
        for answer in (pair.chosen, pair.rejected)
        for posts, plan, user in (
            ((), (), None),
            (pair.profile, (), pair.user),
            ((), ("Short and red.",), pair.user),
        )
    ]


def _scores(model: PersonalRater, views: list[AnswerView]) -> list[float]:
    found = dict(model.rate(views))
    assert all(outcome.status == "ok" for outcome in found.values())
    return [found[place].score or 0.0 for place in range(len(views))]


JUDGED = Judgment(question="Which hat?", chosen="The red hat.", rejected="The blue hat.")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_scores_the_same_when_opened(name: str, trained: dict[str, Path]) -> None:
    first, again = (_scores(load_model(f"personal:{trained[name]}"), _views()) for _ in range(2))
    assert first == again
    assert len(set(first)) > 2


@pytest.mark.parametrize("name", NAMES)
def test_a_score_does_not_depend_on_what_else_is_asked(name: str, trained: dict[str, Path]) -> None:
    views = _views()
    together = _scores(load_model(f"personal:{trained[name]}"), views)
    backwards = _scores(load_model(f"personal:{trained[name]}"), views[::-1])[::-1]
    alone = [_scores(load_model(f"personal:{trained[name]}"), [view])[0] for view in views[:3]]
    assert together == backwards
    assert together[:3] == alone


def test_only_the_last_users_are_kept(trained: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_KEPT", 2)
    model = load_model(f"personal:{trained['user-bt']}")
    scores = _scores(model, _views())
    assert len(model._states) == 2
    assert scores == _scores(model, _views())


@pytest.mark.parametrize("name", NAMES)
def test_posts_and_plans_are_read_by_who_reads_users(name: str, trained: dict[str, Path]) -> None:
    model = load_model(f"personal:{trained[name]}")
    stranger, known, planned = _scores(model, _views()[:3])
    if name == "bt":
        assert model.card.reads == frozenset()
        assert stranger == known == planned
    else:
        assert model.card.reads == {Channel.POSTS, Channel.PLAN}
        assert len({stranger, known, planned}) == 3


def test_a_plan_is_read_as_if_the_user_had_written_it(trained: dict[str, Path]) -> None:
    model = load_model(f"personal:{trained['user-bt']}")
    text = "Short and red."
    written = AnswerView("Tea?", "Green.", (Post(id="1", text=text),), (), "ann")
    one, other = _scores(model, [written, AnswerView("Tea?", "Green.", (), (text,), "ann")])
    assert one == other


def test_an_unknown_user_without_posts_is_a_stranger(trained: dict[str, Path]) -> None:
    for name in NAMES:
        model = load_model(f"personal:{trained[name]}")
        one, other = _scores(model, [AnswerView("Tea?", "Green.", user=user) for user in (None, "never seen")])
        assert one == other


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bt"])
def test_judgments_change_scores_and_calls_of_that_user_alone_and_can_be_forgotten(
    name: str, trained: dict[str, Path]
) -> None:
    model = load_model(f"personal:{trained[name]}")
    assert isinstance(model, Adaptive)
    views = [AnswerView("Which tea?", "The red tea.", user=user) for user in ("ann", "bob", None)]
    before, prompts = _scores(model, views), [model.render(view) for view in views]
    model.fit_user("ann", [JUDGED])
    after, asked = _scores(model, views), [model.render(view) for view in views]
    assert after[0] != before[0]
    assert asked[0] != prompts[0], "another prompt is another call key: no old answer is taken for the new one"
    assert (after[1:], asked[1:]) == (before[1:], prompts[1:])
    model.fit_user("ann", [])
    assert (_scores(model, views), [model.render(view) for view in views]) == (before, prompts)


def test_the_other_judgment_moves_the_score_the_other_way(trained: dict[str, Path]) -> None:
    model = load_model(f"personal:{trained['user-bt']}")
    red, blue = (AnswerView("Which hat?", f"The {colour} hat.", user="ann") for colour in ("red", "blue"))
    swapped = Judgment(question="Which hat?", chosen=JUDGED.rejected, rejected=JUDGED.chosen)
    margins = []
    for judgment in (JUDGED, swapped):
        model.fit_user("ann", [judgment])
        one, other = _scores(model, [red, blue])
        margins.append(one - other)
    assert margins[0] > margins[1]


def test_one_reward_for_all_cannot_adapt(trained: dict[str, Path]) -> None:
    model = load_model(f"personal:{trained['bt']}")
    with pytest.raises(ModelError, match="one reward for all"):
        model.fit_user("ann", [JUDGED])
    model.fit_user("ann", [])  # there is nothing to forget
    assert points_of(model) == {}, "no curve is begun that must fail"
    assert "shots_without_posts" in points_of(load_model(f"personal:{trained['user-bt']}"))


def test_options_that_would_change_the_vectors_change_nothing(trained: dict[str, Path]) -> None:
    address = f"personal:{trained['user-bt']}"
    options = ModelOptions(window=8)
    assert _scores(load_model(address, options), _views()) == _scores(load_model(address), _views())


def test_precision_moves_scores_a_little_and_stands_on_the_card(trained: dict[str, Path]) -> None:
    address = f"personal:{trained['user-bt']}"
    plain, half = load_model(address), load_model(address, ModelOptions(dtype="bfloat16"))
    full, rounded = np.array(_scores(plain, _views())), np.array(_scores(half, _views()))
    assert 0 < np.abs(full - rounded).max() < 0.2 * full.std()  # three digits of eight
    assert (half.card.parameters["dtype"], half.card.identity != plain.card.identity) == ("bfloat16", True)
    assert "dtype" not in plain.card.parameters, "runs of before continue"


def test_the_card_says_what_it_was_trained_on(trained: dict[str, Path]) -> None:
    card = load_model(f"personal:{trained['lore']}").card
    assert card.parameters["method"] == "lore"
    assert card.parameters["training"]["users"] == 6
    assert card.units == "log-odds"
    assert card.revision


def _copy(source: Path, target: Path) -> Path:
    """A model that may be changed: one without checksums, as older ones are."""
    shutil.copytree(source, target)
    (target / SUMS).unlink()
    return target


@pytest.mark.parametrize("name", [RECORD, WEIGHTS])
def test_a_number_that_changed_on_disk_is_found_by_its_checksum(
    name: str, trained: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained["user-bt"], folder)
    assert load_model(f"personal:{folder}").card.revision
    data = bytearray((folder / name).read_bytes())
    place = data.index(b'"pairs": ') + 9 if name == RECORD else len(data) - 2
    data[place] = data[place] ^ 1
    (folder / name).write_bytes(data)
    with pytest.raises(ModelError, match=f"{name}' is not what its training wrote") as error:
        load_model(f"personal:{folder}")
    assert "remove SHA256SUMS" in error.value.hint
    (folder / SUMS).unlink()
    assert load_model(f"personal:{folder}").card.revision


def test_other_weights_are_another_revision(trained: dict[str, Path], tmp_path: Path) -> None:
    folder = _copy(trained["bt"], tmp_path / "model")
    before = load_model(f"personal:{folder}").card.revision
    weights = {name: tensor + 1 for name, tensor in load_file(folder / WEIGHTS).items()}
    save_file(weights, folder / WEIGHTS)
    assert load_model(f"personal:{folder}").card.revision != before


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, told in (("", "holds no trained model"), ("missing", "there is no folder"), ("file", "is a file")):
        with pytest.raises(ModelError, match=told) as error:
            load_model(f"personal:{tmp_path / name}")
        assert "prbench train" in error.value.hint


@pytest.mark.parametrize("name", ["", "referense", "Reference"])
def test_a_slip_in_the_name_of_the_model_that_ships_is_told(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError) as error:
        load_model(f"personal:{name}")
    assert "'personal:reference' is the model that ships" in error.value.hint


@pytest.mark.parametrize("damage", ["torn record", "foreign record", "no weights", "torn weights", "other weights"])
def test_a_damaged_folder_is_named(damage: str, trained: dict[str, Path], tmp_path: Path) -> None:
    folder = _copy(trained["user-bt"], tmp_path / "model")
    if damage == "torn record":
        (folder / RECORD).write_text((folder / RECORD).read_text()[:40])
    elif damage == "foreign record":
        (folder / RECORD).write_text('{"model": "something else"}')
    elif damage == "no weights":
        (folder / WEIGHTS).unlink()
    elif damage == "torn weights":
        (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:100])
    else:
        save_file({"key.weight": torch.zeros(2, 2)}, folder / WEIGHTS)
    with pytest.raises(ModelError, match=r"is damaged|cannot read|do not fit") as error:
        load_model(f"personal:{folder}")
    assert str(folder) in error.value.message
    assert error.value.hint == "train the model again"


@pytest.mark.parametrize(("field", "value"), [("method", "user-btt"), ("settings", {"stencils": 3})])
def test_a_record_of_another_version_is_refused(
    field: str, value: object, trained: dict[str, Path], tmp_path: Path
) -> None:
    folder = _copy(trained["user-bt"], tmp_path / "model")
    record = json.loads((folder / RECORD).read_text()) | {field: value}
    (folder / RECORD).write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=r"user-btt|stencils"):
        load_model(f"personal:{folder}")


def test_another_encoder_in_the_place_of_the_old_one_is_refused(trained: dict[str, Path], tmp_path: Path) -> None:
    folder = _copy(trained["user-bt"], tmp_path / "model")
    other = tiny_models.save_encoder(tmp_path / "other", seed=5)
    record = json.loads((folder / RECORD).read_text()) | {"encoder": f"embed:{other}"}
    (folder / RECORD).write_text(json.dumps(record))
    with pytest.raises(ModelError, match=r"trained with .* found") as error:
        load_model(f"personal:{folder}")
    assert "train the model again" in error.value.hint
