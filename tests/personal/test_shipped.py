"""A model that ships as what it learned, joined with its encoder on first use."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

import tiny_models
from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.models.personal import artifact, rater, shipped, shipped_folder
from prbench.models.personal.contrast_ranker import ContrastRanker
from prbench.models.registry import load_encoder
from prbench.train import TrainConfig, train
from prbench.train.contrast import ContrastConfig, train_contrast
from prbench.train.encoder import EncoderConfig
from prbench.train.tune import tune
from prbench.types import AnswerView, Pair, PairView, Post
from split_suite import split_pairs, write_suite

VIEWS = [
    AnswerView("Which tea?", f"{taste} tea is good.", (Post(id="1", text="I like blue."),)) for taste in ("blue", "red")
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shipped")
    base, suite = tiny_models.save_encoder(folder / "base"), str(write_suite(folder / "suite.jsonl"))
    tune(EncoderConfig(base=f"embed:{base}", epochs=2, layers=1, passages=False), folder / "encoder", suite=suite)
    options = TrainConfig(method="stances", encoder=f"embed:{folder / 'encoder'}#stances", epochs=1)
    train(options, folder / "model", suite=suite)
    return folder


def scores(folder: Path) -> list[float | None]:
    return [outcome.score for _, outcome in sorted(rater.load(str(folder), ModelOptions()).rate(VIEWS))]


def test_packed_and_unpacked_it_scores_the_same(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    small = sum(path.stat().st_size for path in (tmp_path / "packed").rglob("*") if path.is_file())
    assert small < sum(path.stat().st_size for path in (trained / "model").rglob("*") if path.is_file()) / 2
    folder = shipped.unpack("mine", source=tmp_path / "packed", target=tmp_path / "unpacked")
    assert scores(folder) == scores(trained / "model")
    assert shipped.unpack("mine", source=tmp_path / "packed", target=folder) == folder, "joined once"
    assert not list(tmp_path.glob(".unpacked*.part"))


def test_a_folder_that_was_cleaned_by_halves_is_joined_again(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    folder = shipped.unpack("mine", source=tmp_path / "packed", target=tmp_path / "unpacked")
    (folder / "personal.json").unlink()
    (folder / "encoder" / "model.safetensors").unlink()
    assert shipped.unpack("mine", source=tmp_path / "packed", target=folder) == folder
    assert scores(folder) == scores(trained / "model")


def test_a_package_with_a_file_missing_is_named(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    (tmp_path / "packed" / "encoder" / shipped.DELTA).unlink()
    with pytest.raises(ModelError, match=r"delta\.safetensors' is missing"):
        shipped.unpack("mine", source=tmp_path / "packed", target=tmp_path / "unpacked")


def test_another_base_is_refused_and_leaves_nothing(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    base = trained / "base"
    kept = shutil.copytree(base, tmp_path / "kept")
    try:
        tiny_models.save_encoder(base, seed=5)
        with pytest.raises(ModelError, match="is another one here than it was tuned from"):
            shipped.unpack("mine", source=tmp_path / "packed", target=tmp_path / "unpacked")
    finally:
        shutil.rmtree(base)
        shutil.copytree(kept, base)
    assert not (tmp_path / "unpacked").exists()
    assert not list(tmp_path.glob(".unpacked*.part"))


def test_a_model_over_a_plain_encoder_is_packed_without_one(trained: Path, tmp_path: Path) -> None:
    options = TrainConfig(method="user-bt", encoder=f"embed:{trained / 'base'}", epochs=1)
    train(options, tmp_path / "plain", suite=str(trained / "suite.jsonl"))
    shipped.pack(tmp_path / "plain", tmp_path / "packed")
    assert sorted(path.name for path in (tmp_path / "packed").iterdir()) == [
        "SHA256SUMS",
        "personal.json",
        "weights.safetensors",
    ]
    assert shipped.unpack("mine", source=tmp_path / "packed") == tmp_path / "packed", "read where it lies"
    assert scores(tmp_path / "packed") == scores(tmp_path / "plain")


def test_a_model_with_tuned_readers_of_posts_and_of_answers_is_packed_with_them(tmp_path: Path) -> None:
    base, suite = tiny_models.save_encoder(tmp_path / "base"), str(write_suite(tmp_path / "suite.jsonl"))
    flawed = str(write_suite(tmp_path / "flawed.jsonl", [*_flawed("train"), *_flawed("validation")]))
    tuned = EncoderConfig(base=f"embed:{base}", epochs=1, layers=1, passages=False)
    tune(tuned, tmp_path / "one", suite=suite)
    told = {"stances": False, "differences": True, "flaws": flawed}
    tune(tuned.model_copy(update=told), tmp_path / "two", suite=suite)
    options = ContrastConfig(
        encoder=f"embed:{base}",
        stances=f"embed:{tmp_path / 'one'}#stances",
        answers=f"embed:{tmp_path / 'two'}",
        also=flawed,
        folds=2,
    )
    record = train_contrast(options, tmp_path / "model", suite=suite)
    assert (record.settings["stances"], record.settings["answers"]) == ("posts#stances", "answers")
    shipped.pack(tmp_path / "model", tmp_path / "packed")
    folder = shipped.unpack("mine", source=tmp_path / "packed", target=tmp_path / "unpacked")
    found, trained = margins(folder), margins(tmp_path / "model")
    assert found == trained
    weights, heads = load_file(folder / "weights.safetensors"), load_file(folder / "answers" / "stances.safetensors")
    width = len(heads["flaw"])
    assert (weights["flaw"][-width:] == heads["flaw"]).all()
    gain = weights["tuned_sides"].astype("f8") / heads["sides"]
    assert gain.std() < 0.01 * gain.mean(), "the tuned encoder's differences, weighed as a whole"
    save_file(weights | {"tuned_sides": -weights["tuned_sides"]}, folder / "weights.safetensors")
    artifact.save_record(folder, record)
    assert margins(folder) != trained, "what answers differ in is read by the tuned encoder"


def _flawed(split: str) -> list[Pair]:
    return [
        pair.model_copy(update={"rejected": f"Never {pair.rejected}", "tags": {"split": split}})
        for pair in split_pairs(split)
    ]


def margins(folder: Path) -> list[float | None]:
    views = [PairView(pair.question, pair.chosen, pair.rejected, pair.profile) for pair in split_pairs("test")[:4]]
    model = rater.load(str(folder), ModelOptions())
    assert isinstance(model, ContrastRanker)
    model.hold_back()
    return [outcome.margin for _, outcome in sorted(model.compare(views))]


def test_the_model_of_the_package_is_over_the_encoder_that_is_pulled() -> None:
    folder = shipped_folder("personal:reference")
    assert folder is not None
    encoder = load_encoder("embed:minilm", ModelOptions())
    record = json.loads((folder / "personal.json").read_text())
    assert record["encoder"] == "embed:minilm"
    assert encoder.checkpoint.revision in record["encoder_revision"]
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 15e6


def test_what_is_no_judgment_is_refused(trained: Path) -> None:
    model = rater.load(str(trained / "model"), ModelOptions())
    with pytest.raises(ModelError, match="which is no Judgment"):
        model.fit_user("ann", [{"question": "Tea?", "chosen": "Blue.", "rejected": "Red."}])


def test_an_interrupted_training_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(b"")
    with pytest.raises(ModelError, match="a training that was interrupted"):
        rater.load(str(tmp_path), ModelOptions())
