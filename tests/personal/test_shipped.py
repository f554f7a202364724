"""A model that ships as what it learned, read over an encoder that does not ship."""

import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tiny_models
from prbench.config import ModelOptions
from prbench.data import load_pairs
from prbench.errors import ModelError
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.embed import SentenceEncoder
from prbench.models.local.upper import UpperEncoder
from prbench.models.personal import artifact, rater, shipped, shipped_folder
from prbench.models.personal.contrast_ranker import ContrastRanker
from prbench.models.registry import load_encoder
from prbench.train import TrainConfig, train
from prbench.train.contrast import ContrastConfig, train_contrast
from prbench.train.encoder import EncoderConfig
from prbench.train.tune import adopt_encoder, tune
from prbench.types import AnswerView, Pair, PairView, Post
from split_suite import split_pairs, write_suite

VIEWS = [
    AnswerView("Which tea?", f"{taste} tea is good.", (Post(id="1", text="I like blue."),)) for taste in ("blue", "red")
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `contrast` with two tuned encoders, beside what it was made of."""
    folder = tmp_path_factory.mktemp("shipped")
    base, suite = tiny_models.save_encoder(folder / "base"), str(write_suite(folder / "suite.jsonl"))
    flawed = str(write_suite(folder / "flawed.jsonl", [*_flawed("train"), *_flawed("validation")]))
    tuned = EncoderConfig(base=f"embed:{base}", epochs=1, layers=1, passages=False)
    tune(tuned.model_copy(update={"layers": 2}), folder / "one", suite=suite)
    told = {"stances": False, "differences": True, "flaws": flawed, "warmup": 1, "head_learning_rate": 0.02}
    tune(tuned.model_copy(update=told), folder / "two", suite=suite)
    options = ContrastConfig(
        encoder=f"embed:{base}",
        stances=f"embed:{folder / 'one'}#stances",
        answers=f"embed:{folder / 'two'}",
        also=flawed,
        folds=2,
    )
    record = train_contrast(options, folder / "model", suite=suite)
    assert (record.settings["stances"], record.settings["answers"]) == ("posts#stances", "answers")
    return folder


def scores(folder: Path) -> list[float | None]:
    return [outcome.score for _, outcome in sorted(rater.load(str(folder), ModelOptions()).rate(VIEWS))]


def test_packed_it_is_small_and_answers_the_same(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    small = sum(path.stat().st_size for path in (tmp_path / "packed").rglob("*") if path.is_file())
    assert small < sum(path.stat().st_size for path in trained.rglob("*") if path.is_file()) / 2
    assert not list((tmp_path / "packed").rglob("model.safetensors"))
    assert margins(tmp_path / "packed") == margins(trained / "model")


def test_a_byte_that_changed_in_a_tuned_encoder_is_found(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    file = tmp_path / "packed" / "posts" / "delta.safetensors"
    before = artifact.revision(tmp_path / "packed")
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.write_bytes(data)
    assert artifact.revision(tmp_path / "packed") != before
    with pytest.raises(ModelError, match=r"delta\.safetensors' is not what its training wrote"):
        rater.load(str(tmp_path / "packed"), ModelOptions())


def test_a_tuned_encoder_of_which_a_file_is_missing_is_refused(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    (tmp_path / "packed" / "posts" / "delta.safetensors").unlink()
    with pytest.raises(ModelError, match=r"delta\.safetensors"):
        rater.load(str(tmp_path / "packed"), ModelOptions())


def test_trained_again_without_tuned_encoders_none_is_left(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    options = ContrastConfig(encoder=f"embed:{trained / 'base'}", also="", folds=2)
    train_contrast(options, tmp_path / "model", suite=str(trained / "suite.jsonl"))
    assert not [path for path in (tmp_path / "model").iterdir() if path.is_dir()]


def test_another_tuned_encoder_takes_the_place_of_the_one_before(trained: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        adopt_encoder(f"embed:{trained / name}", tmp_path, artifact.POSTS)
        kept, made = (folder / "delta.safetensors" for folder in (tmp_path / artifact.POSTS, trained / name))
        assert kept.read_bytes() == made.read_bytes()


def test_over_its_base_a_tuned_encoder_gives_the_vectors_of_the_whole(trained: Path) -> None:
    texts = ["blue tea", "no red food of ann", "blue tea of bob at noon"]
    plain = SentenceEncoder(*_opened(trained / "base"))
    before = plain.encode(texts)
    for name in ("one", "two"):
        over = UpperEncoder(SentenceEncoder(*_opened(trained / "base")), trained / name)
        whole = load_encoder(f"embed:{trained / name}", ModelOptions())
        assert np.allclose(over.encode(texts), whole.encode(texts), atol=1e-5)
    base = SentenceEncoder(*_opened(trained / "base"))
    deep, flat = (UpperEncoder(base, trained / name) for name in ("one", "two"))
    assert np.allclose(base.encode(texts), before, atol=1e-5), "what is shared changes nothing"
    assert np.allclose(deep.encode(texts), load_encoder(f"embed:{trained / 'one'}").encode(texts), atol=1e-5)
    assert np.allclose(flat.encode(texts), load_encoder(f"embed:{trained / 'two'}").encode(texts), atol=1e-5)


def test_the_lower_layers_read_a_text_once_for_all_encoders(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = SentenceEncoder(*_opened(trained / "base"))
    others = [UpperEncoder(base, trained / name) for name in ("one", "two")]
    read: list[int] = []
    embeddings = base._model.embeddings.forward
    monkeypatch.setattr(
        base._model.embeddings, "forward", lambda **row: read.append(row["input_ids"].numel()) or embeddings(**row)
    )
    for encoder in (base, *others):
        encoder.encode(["blue tea", "no red food"])
    assert read == [sum(len(piece) for part in base._pieces(["blue tea", "no red food"]) for piece in part)]
    many = [f"tea number {number}" for number in range(40)]
    for encoder in (base, *others):
        encoder.encode(many)
    assert len(base._lower) <= 16, "the states of many texts are not kept"


def test_no_text_is_left_in_any_encoder_once_it_is_forgotten(trained: Path) -> None:
    model = rater.load(str(trained / "model"), ModelOptions())
    assert isinstance(model, ContrastRanker)
    model.hold_back()
    next(model.compare([PairView("Which tea?", "blue tea is good.", "red tea is good.", VIEWS[0].posts, ("blue",))]))
    stores = [store for store in model._encoders if store is not None]
    inner = [getattr(store.encoder, "_encoder", store.encoder) for store in stores]
    assert len(inner) == 3
    assert not any(encoder._vectors or encoder._tokens for encoder in inner), "they are kept once, and bounded"
    assert any(encoder._lower for encoder in inner)
    model.forget()
    assert not any(encoder._lower for encoder in inner)
    assert not any(store._held for store in stores)


def test_a_package_with_a_file_missing_is_named(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    (tmp_path / "packed" / "answers" / "delta.safetensors").unlink()
    with pytest.raises(ModelError, match=r"delta\.safetensors"):
        margins(tmp_path / "packed")
    (trained / "model" / "posts" / "delta.safetensors").rename(tmp_path / "kept")
    try:
        with pytest.raises(ModelError, match=r"posts/delta\.safetensors is missing"):
            shipped.pack(trained / "model", tmp_path / "again")
    finally:
        (tmp_path / "kept").rename(trained / "model" / "posts" / "delta.safetensors")


def test_another_base_is_refused(trained: Path, tmp_path: Path) -> None:
    other = SentenceEncoder(*_opened(tiny_models.save_encoder(tmp_path / "base", seed=5)))
    with pytest.raises(ModelError, match="is another one here than it was tuned from"):
        UpperEncoder(other, trained / "one")


def test_a_model_whose_vectors_are_tuned_is_not_packed(trained: Path, tmp_path: Path) -> None:
    options = TrainConfig(method="stances", encoder=f"embed:{trained / 'one'}#stances", epochs=1)
    train(options, tmp_path / "model", suite=str(trained / "suite.jsonl"))
    with pytest.raises(ModelError, match="cannot be packed: its vectors come from a tuned encoder"):
        shipped.pack(tmp_path / "model", tmp_path / "packed")


def _opened(folder: Path) -> tuple[Checkpoint, ModelOptions]:
    return Checkpoint.open(str(folder), f"embed:{folder}", trust=False), ModelOptions()


def test_a_model_over_a_plain_encoder_is_packed_without_one(trained: Path, tmp_path: Path) -> None:
    options = TrainConfig(method="user-bt", encoder=f"embed:{trained / 'base'}", epochs=1)
    train(options, tmp_path / "plain", suite=str(trained / "suite.jsonl"))
    shipped.pack(tmp_path / "plain", tmp_path / "packed")
    assert sorted(path.name for path in (tmp_path / "packed").iterdir()) == [
        "SHA256SUMS",
        "personal.json",
        "weights.safetensors",
    ]
    assert scores(tmp_path / "packed") == scores(tmp_path / "plain")


def test_what_the_tuned_encoder_says_of_answers_is_weighed_as_a_whole(trained: Path, tmp_path: Path) -> None:
    shipped.pack(trained / "model", tmp_path / "packed")
    folder, before = tmp_path / "packed", margins(tmp_path / "packed")
    weights, heads = load_file(folder / "weights.safetensors"), load_file(folder / "answers" / "stances.safetensors")
    width = len(heads["flaw"])
    assert (weights["flaw"][-width:] == heads["flaw"]).all()
    learned = np.abs(heads["sides"]) > 1e-3
    gain = weights["tuned_sides"][learned].astype("f8") / heads["sides"][learned]
    assert len(gain) >= width
    assert gain.std() < 0.01 * gain.mean()
    record = artifact.read_record(folder, "")
    save_file(weights | {"tuned_sides": -weights["tuned_sides"]}, folder / "weights.safetensors")
    artifact.save_record(folder, record)
    assert margins(folder) != before


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
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 15e6, "what it adds to the wheel"


def test_the_model_of_the_package_takes_short_sound_answers_for_answers() -> None:
    model = rater.load("reference", ModelOptions())
    assert isinstance(model, ContrastRanker)
    model.hold_back()
    asked = {
        "Which tea before bed?": ("Chamomile.", "Chamomile, because it has no caffeine."),
        "How long do I boil an egg?": ("Seven minutes.", "Six for runny, nine for firm."),
        "Do I need travel insurance for a weekend in Spain?": ("Yes.", "Yes: a broken leg costs more than the trip."),
    }
    no_answers = ("", "...", "asdf qwer zxcv poiu lkjh", "the the the the the the the the", "boil an tea leg runny of")
    for question, answers in asked.items():
        views = [PairView(question, good, bad) for good in answers for bad in (*no_answers, question)]
        assert all((outcome.margin or 0) > 0 for _, outcome in model.compare(views))
        texts = [AnswerView(question, text) for text in (*answers, *no_answers)]
        scored = [outcome.score or 0.0 for _, outcome in sorted(model.rate(texts))]
        assert min(scored[: len(answers)]) > max(scored[len(answers) :])
        assert min(scored) > -30, "no text is paid worse than all others together"
    long = "Try lemon balm or chamomile about an hour before you sleep."
    known, unknown = (
        next(model.rate([AnswerView(question, long)]))[1].score or 0.0 for question in ("Which tea before bed?", "")
    )
    assert abs(known - unknown) < 3, "where the question is not known, no answer is held to be off its subject"


LIKED_AND_NOT = (
    ("What should I cook tonight?", "Seafood: grilled prawns with lemon.", "A mushroom risotto.", "seafood"),
    (
        "What could I watch on Friday?",
        "A horror film such as The Ring.",
        "A comedy such as Paddington.",
        "horror films",
    ),
    ("Where shall we stay in Rome?", "In a large chain hotel near the station.", "In a rented flat.", "chain hotels"),
    ("How do I learn calculus?", "Attend lectures by a good professor.", "Solve problems with a friend.", "lectures"),
    ("Which plant suits a dark hall?", "A fern, which stays green.", "An orchid, for its flowers.", "ferns"),
)
"""Questions, an answer that offers a thing, one that does not, and the thing; none of it is an axis."""


def test_the_model_of_the_package_tells_what_is_wanted_from_what_is_not() -> None:
    model = rater.load("reference", ModelOptions())
    assert isinstance(model, ContrastRanker)
    model.hold_back()
    frames = (("I love {}.", "I can't stand {}."), ("I prefer {}.", "I avoid {}."), ("{}, please.", "No {}, please."))
    moved = []
    for question, offers, other, thing in LIKED_AND_NOT:
        for liked, not_liked in frames:
            views = [
                PairView(question, offers, other, (), (frame.format(thing).capitalize(),))
                for frame in (liked, not_liked)
            ]
            wanted, unwanted = (outcome.margin or 0.0 for _, outcome in sorted(model.compare(views)))
            moved.append(wanted > unwanted)
    assert sum(moved) >= 13


def test_in_bfloat16_the_model_of_the_package_decides_alike_and_says_so() -> None:
    pairs = [pair for pair in load_pairs("mirror") if pair.tags["split"] == "validation"][:12]
    views = [PairView(pair.question, pair.chosen, pair.rejected, pair.profile[:3], (), pair.user) for pair in pairs]
    found = []
    for dtype in ("float32", "bfloat16"):
        model = rater.load("reference", ModelOptions(dtype=dtype))
        assert isinstance(model, ContrastRanker)
        model.hold_back()
        found.append([outcome.margin or 0.0 for _, outcome in sorted(model.compare(views))])
        assert model.card.parameters.get("dtype", "float32") == dtype
    full, half = map(np.array, found)
    assert 0 < np.abs(full - half).max() < 0.1
    assert ((full > 0) == (half > 0))[np.abs(full) > 0.1].all()


def test_vectors_in_another_precision_are_kept_apart(trained: Path) -> None:
    address = f"embed:{trained / 'base'}"
    names = [load_encoder(address, ModelOptions(dtype=dtype)).name for dtype in ("float32", "bfloat16")]
    assert names[1] == f"{names[0]}+bfloat16"


def test_what_is_no_judgment_is_refused(trained: Path) -> None:
    model = rater.load(str(trained / "model"), ModelOptions())
    with pytest.raises(ModelError, match="which is no Judgment"):
        model.fit_user("ann", [{"question": "Tea?", "chosen": "Blue.", "rejected": "Red."}])


def test_an_interrupted_training_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(b"")
    with pytest.raises(ModelError, match="a training that was interrupted"):
        rater.load(str(tmp_path), ModelOptions())
