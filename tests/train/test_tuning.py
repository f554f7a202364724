"""Tuning an encoder: upper layers over frozen ones, stances that some piece of a post shows, resumed to the byte."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import tiny_models
from pair_factory import make_pair
from prbench.config import ModelOptions
from prbench.data.passages import Passage, SoundAndFlawed
from prbench.errors import ConfigError, ModelError, RunError
from prbench.models.local.upper import DELTA
from prbench.models.personal.delta import add_delta, learn_upper
from prbench.models.registry import load_encoder
from prbench.train.encoder import EncoderConfig, Tuning
from prbench.train.frozen import FrozenStates
from prbench.train.stance_labels import Axes, Difference, Labelled, Stance, differences, joined, labelled, post_stances
from prbench.train.tune import tune
from prbench.train.tuning_loss import EQUAL, Answered, answered
from prbench.types import Aspect, Pair, Post
from split_suite import write_suite

COLOURS = {"tea": ("blue", "green"), "food": ("red", "white")}
AXES = Axes(COLOURS)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"embed:{tiny_models.save_encoder(tmp_path_factory.mktemp('base'))}"


def texts(count: int = 40) -> list[Labelled]:
    found = []
    for number in range(count):
        for axis, poles in AXES.poles.items():
            for pole in poles:
                plain, telling = f"post {number} of ann", f"{pole} {axis}"
                found.append(Labelled((plain, telling) if number % 4 == 0 else (telling,), (AXES.stance(axis, pole),)))
    return found


def tuning(
    base: str,
    folder: Path,
    differing: Sequence[Difference] = (),
    flawed: Sequence[Answered] = (),
    shown: Sequence[Labelled] | None = None,
    **options: object,
) -> Tuning:
    chosen = EncoderConfig.model_validate(
        {"base": base, "epochs": 3, "layers": 2, "learning_rate": 5e-3, "warmup": 3} | options
    )
    held = [(f"{pole} {axis}", (AXES.stance(axis, pole),)) for axis, poles in AXES.poles.items() for pole in poles]
    told = texts() if shown is None else shown
    return Tuning(chosen, told, AXES, held, load_encoder(base, ModelOptions()), folder, differing, flawed)


def test_only_the_upper_layers_learn_and_what_they_learned_joins_with_the_base(base: str, tmp_path: Path) -> None:
    made = tuning(base, tmp_path, layers=1)
    made.run()
    learned = load_file(tmp_path / DELTA)
    assert all(name.startswith("encoder.layer.1.") for name in learned)
    assert {value.dtype for name, value in learned.items() if value.dim() == 2 and "scale" not in name} == {torch.int8}
    fresh = load_encoder(base, ModelOptions())._model
    add_delta(fresh, learned)
    tuned = load_encoder(f"embed:{tmp_path}", ModelOptions())._model
    own = dict(tuned.named_parameters())
    assert all(torch.equal(value, own[name]) for name, value in fresh.named_parameters() if "pooler" not in name)
    plain = dict(load_encoder(base, ModelOptions())._model.named_parameters())
    changed = {name for name, value in own.items() if "pooler" not in name and not torch.equal(value, plain[name])}
    assert changed
    assert all(name.startswith("encoder.layer.1.") for name in changed)


def test_an_encoder_whose_layers_are_in_no_row_is_refused() -> None:
    with pytest.raises(ModelError, match="kind Linear cannot be tuned"):
        learn_upper(nn.Linear(2, 2), 1)


def test_stances_are_learned_and_read_back(base: str, tmp_path: Path) -> None:
    made = tuning(base, tmp_path, epochs=15, head_learning_rate=1e-2)
    assert made.accuracy() != 1.0
    made.run()
    assert made.history[-1].accuracy == 1.0
    encoder = load_encoder(f"embed:{tmp_path}#stances", ModelOptions())
    first, second = encoder.encode(["blue tea", "green tea"])[:, [1, 3]]  # axes in alphabetical order: food, tea
    assert first[0] > 0.6 > 0.4 > first[1]
    assert second[1] > 0.6 > 0.4 > second[0]
    record = json.loads((tmp_path / "tuning.json").read_text())
    assert record["base_revision"]
    assert (tmp_path / DELTA).stat().st_size < (tmp_path / "model.safetensors").stat().st_size


@pytest.mark.parametrize("layers", [1, 2])
def test_an_interrupted_tuning_ends_in_the_same_bytes(base: str, tmp_path: Path, layers: int) -> None:
    tuning(base, tmp_path / "whole", layers=layers).run()
    with pytest.raises(Interrupted):
        tuning(base, tmp_path / "parts", layers=layers).run(_interrupt)
    tuning(base, tmp_path / "parts", layers=layers).run()
    for name in ("model.safetensors", "stances.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    assert not (tmp_path / "parts" / "checkpoint.pt").exists()
    with pytest.raises(RunError, match="another tuning"):
        tuning(base, tmp_path / "whole", layers=layers, seed=1).run()


class Interrupted(Exception):
    pass


def _interrupt(epoch: object) -> None:
    raise Interrupted


def test_a_loss_that_is_no_number_stops_the_tuning(base: str, tmp_path: Path) -> None:
    made = tuning(base, tmp_path)
    with torch.no_grad():
        made._heads.stances.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="loss of the encoder became nan in epoch 1") as error:
        made.run()
    assert "--learning-rate" in error.value.hint
    assert not (tmp_path / "tuning.json").exists()


def test_another_base_under_the_same_address_is_not_continued(tmp_path: Path) -> None:
    address = f"embed:{tiny_models.save_encoder(tmp_path / 'base')}"
    with pytest.raises(Interrupted):
        tuning(address, tmp_path / "parts").run(_interrupt)
    tuning(address, tmp_path / "whole").run()
    tiny_models.save_encoder(tmp_path / "base", seed=5)
    with pytest.raises(RunError, match="another training"):
        tuning(address, tmp_path / "parts").run()
    with pytest.raises(RunError, match="another tuning"):
        tuning(address, tmp_path / "whole").run()


def test_damaged_files_of_a_tuning_are_named(base: str, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        tuning(base, tmp_path).run(_interrupt)
    whole = (tmp_path / "checkpoint.pt").read_bytes()
    (tmp_path / "checkpoint.pt").write_bytes(whole[:-500])
    with pytest.raises(RunError, match="not a checkpoint"):
        tuning(base, tmp_path).run()
    (tmp_path / "checkpoint.pt").write_bytes(whole)
    tuning(base, tmp_path).run()
    record = (tmp_path / "tuning.json").read_text()
    (tmp_path / "checkpoint.pt").write_bytes(whole)  # a crash between the record and the end
    tuning(base, tmp_path).run()
    assert not (tmp_path / "checkpoint.pt").exists(), "it would be taken for a part of the encoder"
    for damage in (record[:40], "[]"):
        (tmp_path / "tuning.json").write_text(damage)
        with pytest.raises(RunError, match=r"tuning\.json is damaged"):
            tuning(base, tmp_path).run()


@pytest.mark.parametrize("damage", ["torn head", "torn axes", "fewer axes"])
def test_a_damaged_head_is_named(damage: str, base: str, tmp_path: Path) -> None:
    tuning(base, tmp_path, epochs=1).run()
    head, axes = tmp_path / "stances.safetensors", tmp_path / "stances.json"
    if damage == "torn head":
        head.write_bytes(head.read_bytes()[:50])
    elif damage == "torn axes":
        axes.write_text(axes.read_text()[:20])
    else:
        axes.write_text(json.dumps({"tea": ["blue", "green"]}))
    with pytest.raises(ModelError, match=r"cannot be read|is damaged|and 1 axes") as error:
        load_encoder(f"embed:{tmp_path}#stances", ModelOptions())
    assert "prbench train encoder" in error.value.hint


def test_of_a_text_in_pieces_some_piece_must_show_the_stance(base: str, tmp_path: Path) -> None:
    made = tuning(base, tmp_path, silence=0.5)
    told = torch.tensor([[0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])  # two pieces about tea: nothing, then the second pole
    other = torch.tensor([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]])  # about food: nobody knows
    loss = made._loss.one(torch.stack([other, told], 1), (Stance("tea", 1),))
    some = 1 - (1 - 0.1) * (1 - 0.6)
    none_opposite = (math.log(0.9) + math.log(0.8)) / 2
    assert float(loss) == pytest.approx(-math.log(some) - none_opposite - 0.5 * math.log(0.5), abs=1e-5)
    alone = made._loss.one(torch.stack([other, told], 1)[1:], (Stance("tea", 1),))
    assert float(alone) == pytest.approx(-math.log(0.6) - 0.5 * math.log(0.5), abs=1e-5)


def test_flawed_answers_are_told_from_sound_ones(base: str, tmp_path: Path) -> None:
    shown = [Answered((f"blue tea {n}", f"green tea {n}"), (f"no red food {n}",)) for n in range(6)]
    made = tuning(base, tmp_path, epochs=9, head_learning_rate=2e-2, flawed=shown, shown=[])
    assert torch.equal(made._heads.flaw.weight, torch.zeros(1, 32))
    assert made._loss.flaws(shown[:1]).item() == pytest.approx(math.log(2))
    made.run()
    assert made._loss.flaws(shown).item() < 0.4
    assert json.loads((tmp_path / "tuning.json").read_text())["flawed"] == 6


def test_what_two_answers_differ_in_is_told_and_turns_with_them(base: str, tmp_path: Path) -> None:
    shown = [
        Difference(f"{number}", f"{one} {axis} {number}", f"{two} {axis} {number}", (AXES.stance(axis, one),))
        for number in range(12)
        for axis, (one, two) in AXES.poles.items()
    ]
    made = tuning(base, tmp_path, epochs=9, head_learning_rate=2e-2, differing=shown, shown=[])
    before = made._loss.differences(shown).item()
    made.run()
    assert made._loss.differences(shown).item() < before / 2
    turned = [
        Difference(q, two, one, tuple(stance._replace(side=-stance.side) for stance in told))
        for q, one, two, told in shown
    ]
    assert made._loss.differences(turned).item() == pytest.approx(made._loss.differences(shown).item(), abs=1e-5)
    assert json.loads((tmp_path / "tuning.json").read_text())["differing"] == len(shown)


def test_sound_answers_that_differ_are_held_together_where_flaws_are_learned(base: str, tmp_path: Path) -> None:
    axis, (one, two) = next(iter(AXES.poles.items()))
    differing = [Difference(f"{n}", f"{one} {n}", f"{two} {n}", (AXES.stance(axis, one),)) for n in range(6)]
    flawed = [Answered((f"blue tea {n}",), (f"no red food {n}",)) for n in range(6)]
    made = tuning(base, tmp_path, differing=differing, flawed=flawed, shown=[])
    before = made._loss.differences(differing).item()
    with torch.no_grad():
        made._heads.flaw.weight.fill_(1.0)
    vectors = made._vectors([text for pair in differing for text in (pair.one, pair.two)])
    apart = made._heads.flaw(vectors[::2] - vectors[1::2]).square().mean().item()
    assert apart > 0
    assert made._loss.differences(differing).item() - before == pytest.approx(EQUAL * apart, rel=1e-3)


def test_answers_that_differ_are_found_among_those_of_a_question_and_of_a_situation() -> None:
    def passage(axis: str, pole: str, text: str) -> Passage:
        return Passage(axis=axis, pole=pole, kind="answer", situation="What now?", text=text)

    axis, other = AXES.poles
    (first, second), (third, fourth) = AXES.poles.values()
    both = [(first, third), (first, fourth), (second, third)]
    written = [passage(axis, one, f"{one} {two}") for one, two in both]
    written += [passage(other, two, f"{one} {two}") for one, two in both]
    found = {(pair.one, pair.two): pair.stances for pair in differences([], written, AXES)}
    assert len(found) == 3
    for (one, two), stances in found.items():
        apart = [axis for axis, x, y in zip(AXES.poles, one.split(), two.split(), strict=True) if x != y]
        assert [stance.axis for stance in stances] == sorted(apart)
        assert all(AXES.poles[stance.axis][(stance.side + 1) // 2] in one for stance in stances)


def test_nothing_to_learn_from_is_refused(base: str, tmp_path: Path) -> None:
    suite = str(write_suite(tmp_path / "suite.jsonl"))
    with pytest.raises(ConfigError, match="nothing to tune"):
        tune(EncoderConfig(base=base, stances=False), tmp_path / "out", suite=suite)


def test_the_answers_of_questions_that_have_a_flawed_one() -> None:
    def pair(question: str, chosen: str, rejected: str) -> Pair:
        return Pair(id=question + chosen, user="ann", question=question, chosen=chosen, rejected=rejected)

    sound = [pair("Tea?", "Blue.", "Green."), pair("Tea?", "Green.", "Blue."), pair("Food?", "Red.", "White.")]
    flawed = [pair("Tea?", "Blue.", "Soap."), pair("Tea?", "Both.", "Soap.")]
    assert answered(sound, flawed) == [Answered(("Blue.", "Green.", "Both."), ("Soap.",))]
    assert answered(sound, []) == []
    written = SoundAndFlawed(question="Bus?", sound=("At 7.", "At 8."), flawed=("Never.",), flaws=("It goes.",))
    assert answered(sound, [], [written]) == [Answered(("At 7.", "At 8."), ("Never.",))]


def test_posts_that_are_evidence_of_a_stance() -> None:
    pair = make_pair(
        id="1",
        user="ann",
        question="Tea?",
        chosen="Blue.",
        rejected="Green.",
        profile=(Post(id="a", text="One. Two."), Post(id="b", text="Three."), Post(id="c", text="Four.")),
        rubric_aspects=(Aspect(aspect="Blue", evidence="a, c"), Aspect(aspect="Red", evidence="c, zz")),
        tags={"axis": "tea+food", "pole": "blue+red"},
    )
    assert post_stances([pair], AXES) == {
        "One. Two.": (Stance("tea", -1),),
        "Four.": (Stance("food", -1), Stance("tea", -1)),
    }
    without = labelled([pair], (), AXES, posts=False)
    assert [one.pieces for one in without] == [("Blue.",), ("Green.",)]
    assert len(labelled([pair], (), AXES)) == 4


def test_joined_passages_show_all_their_stances_and_none_that_contradict(base: str) -> None:
    single = [
        Labelled((f"{pole} {axis}",), (AXES.stance(axis, pole),)) for axis, poles in COLOURS.items() for pole in poles
    ]
    made = joined(single * 10, seed=0)
    assert made == joined(single * 10, seed=0)
    assert any(len(one.stances) == 2 for one in made)
    assert sum(len(one.pieces[0].split()) for one in made) == 80, "every text once"
    assert all(len({stance.axis for stance in one.stances}) == len(one.stances) for one in made)
    whole = Labelled(("tea " * 70,), (Stance("tea", 1),))
    assert whole in joined([*single, whole], seed=0), "as long as a post already"


def test_frozen_states_give_what_the_whole_encoder_gives(base: str) -> None:
    encoder = load_encoder(base, ModelOptions())
    model, tokenizer = encoder._model, encoder.checkpoint.tokenizer
    learn_upper(model, 1)
    model.eval()
    texts = ["blue tea", "green tea and a longer text", "blue tea"]
    ids = tokenizer(texts)["input_ids"]
    states = FrozenStates(model, 1)
    found, mask = states(ids)
    fields = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
    whole = model(**fields).last_hidden_state
    assert torch.equal(mask.bool(), fields["attention_mask"].bool())
    assert torch.allclose(found[mask.bool()], whole[mask.bool()], atol=5e-3)
    assert torch.equal(states(ids)[0], found), "from what was kept"
    assert found.requires_grad


def test_wishes_and_lines_of_rubrics_are_texts_that_show_a_stance() -> None:
    said = Passage(axis="tea", pole="blue", kind="wish", situation="blue tea", text="Blue tea, please.")
    aspect = Aspect(aspect="Wants red food")
    shown = make_pair(
        id="1", user="ann", question="Food?", chosen="Red.", rejected="White.", rubric_aspects=(aspect,),
        tags={"axis": "food", "pole": "red"},
    )  # fmt: skip
    assert labelled([shown], [said], AXES, answers=False) == []
    assert labelled([shown], [said], AXES, answers=False, wishes=True) == [
        Labelled(("Blue tea, please.",), (Stance("tea", -1),)),
        Labelled(("Wants red food",), (Stance("food", -1),)),
    ]
