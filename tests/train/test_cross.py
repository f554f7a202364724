"""`cross`: what is read beside an answer, and a training of a tiny BERT from start to score."""

from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_models
from prbench.errors import ConfigError, DataError, ModelError, RunError
from prbench.models import load_model
from prbench.models.personal.cross import CrossRater, PieceChooser
from prbench.scorecard.curves import points_of
from prbench.train.cross import CrossConfig, CrossTraining, open_base, train_cross
from prbench.train.encoder import EncoderConfig
from prbench.train.loop import Epoch
from prbench.train.tune import tune
from prbench.types import AnswerView, Judgment, Post
from split_suite import split_pairs, write_suite


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_encoder(tmp_path_factory.mktemp("base"))


def _options(base: Path, **changes: Any) -> CrossConfig:
    given = {"base": f"embed:{base}", "budget": 100, "epochs": 3, "pairs_per_epoch": 8, "batch": 4, "patience": 3}
    return CrossConfig.model_validate({**given, "learning_rate": 1e-3, **changes})


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cross")
    heard: list[Epoch] = []
    suite = write_suite(folder / "suite.jsonl")
    record = train_cross(_options(base), folder / "model", suite=str(suite), listener=heard.append)
    assert [epoch.number for epoch in heard] == [1, 2, 3]
    assert record.method == "cross"
    assert record.training.steps == 6
    assert (
        record.training.validation["epoch"]
        == max(heard, key=lambda epoch: (epoch.validation_accuracy, -epoch.validation_loss)).number
    )
    return folder / "model"


class Words:
    """Counts a word as a token."""

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        return {"input_ids": [0] * len(text.split())}


def test_the_nearest_pieces_are_read_in_the_order_in_which_they_were_written() -> None:
    posts = ["My chess clock stopped. I like rooks.", "Green tea is bitter. Black tea keeps me up.", "Rain again."]
    chooser = PieceChooser(Words(), budget=22, window=1)
    text = chooser.beside(posts, "Which tea is good?", "Green tea with honey.")
    assert text.split("\n")[-1] == "Which tea is good?"
    assert text.startswith("Green tea is bitter.\nBlack tea keeps me up.")
    assert "chess" not in text


@pytest.mark.parametrize("budget", [16, 20, 40, 400])
def test_the_budget_holds_and_neither_question_nor_answer_is_cut(budget: int) -> None:
    posts = [f"Post {n} has some words. It has more of them." for n in range(20)]
    question, answer = "Which of these words?", "None of them at all."
    text = PieceChooser(Words(), budget=budget, window=1).beside(posts, question, answer)
    assert len(text.split()) + len(answer.split()) + 3 <= budget
    assert text.endswith(question)
    assert PieceChooser(Words(), budget=4, window=1).beside(posts, question, answer) == question


def test_a_model_is_saved_opened_and_scores_the_same(trained: Path) -> None:
    pair = split_pairs("test")[0]
    views = [AnswerView(pair.question, answer, pair.profile, (), pair.user) for answer in (pair.chosen, pair.rejected)]
    views += [AnswerView(pair.question, pair.chosen), AnswerView(pair.question, pair.chosen, (), ("Red.",), "x")]
    scores = []
    for _ in range(2):
        model = load_model(f"personal:{trained}")
        assert isinstance(model, CrossRater)
        scores.append([outcome.score for _, outcome in sorted(model.rate(views), key=lambda item: item[0])])
    assert scores[0] == scores[1]
    assert len(set(scores[0])) == 4, "answers, posts and plan are all read"
    alone = [next(iter(model.rate([view])))[1].score for view in views]
    assert alone == pytest.approx(scores[0], abs=1e-4)


def test_the_record_says_what_the_base_was_tuned_on(base: Path, tmp_path: Path) -> None:
    suite = str(write_suite(tmp_path / "suite.jsonl"))
    tuned = tune(
        EncoderConfig(base=f"embed:{base}", epochs=1, layers=1, passages=False), tmp_path / "tuned", suite=suite
    )
    record = train_cross(_options(tmp_path / "tuned", epochs=1), tmp_path / "model", suite=suite)
    assert record.training.aspects
    assert record.training.extra_texts == len(tuned._texts) > 0


def test_what_it_is_asked_is_what_it_reads(trained: Path) -> None:
    model = load_model(f"personal:{trained}")
    turn, answer = model.render(AnswerView("Tea?", "Green.", (Post(id="1", text="I like tea."),), (), "ann")).messages
    assert (turn.content, answer.content) == ("I like tea.\nTea?", "Green.")
    assert model.card.parameters["method"] == "cross"
    assert model.card.revision


def test_it_does_not_adapt_to_judgments(trained: Path) -> None:
    model = load_model(f"personal:{trained}")
    with pytest.raises(ModelError, match="does not adapt") as error:
        model.fit_user("ann", [Judgment(question="Tea?", chosen="Green.", rejected="Black.")])
    assert "user-bt" in error.value.hint
    model.fit_user("ann", [])
    assert set(points_of(model)) == {"posts"}, "no curve is begun that must fail"


def _training(base: Path, folder: Path, **changes: Any) -> CrossTraining:
    return CrossTraining(_options(base, **changes), split_pairs("train"), split_pairs("validation"), folder)


class Stop(Exception):
    pass


def test_an_interrupted_training_ends_with_the_same_weights(base: Path, tmp_path: Path) -> None:
    def stop(epoch: Epoch) -> None:
        raise Stop

    whole = _training(base, tmp_path / "whole").run().state_dict()
    with pytest.raises(Stop):
        _training(base, tmp_path / "stopped").run(stop)
    torch.manual_seed(123)
    rest = _training(base, tmp_path / "stopped").run().state_dict()
    assert all(torch.equal(whole[name], rest[name]) for name in whole)
    with pytest.raises(RunError, match="another training"):
        _training(base, tmp_path / "stopped", seed=1).run()


def test_an_epoch_is_made_of_whole_couples(base: Path, tmp_path: Path) -> None:
    training = _training(base, tmp_path, pairs_per_epoch=6)
    drawn = [training._sample() for _ in range(3)]
    for pairs in drawn:
        assert len(pairs) == 6
        mirrors = [pair.tags["mirror"] for pair in pairs]
        assert all(mirrors.count(mirror) == 2 for mirror in mirrors)
    assert drawn[0] != drawn[1]
    assert len(_training(base, tmp_path, pairs_per_epoch=10**6)._sample()) == len(split_pairs("train"))


def test_it_learns_what_the_posts_say(base: Path, tmp_path: Path) -> None:
    options = {"epochs": 10, "patience": 10, "pairs_per_epoch": 1000, "strangers": 0.0, "products": "float32"}
    training = _training(base, tmp_path, **options)
    losses: list[float] = []
    training.run(lambda epoch: losses.append(epoch.loss))
    assert min(losses) < losses[0] - 0.1


def test_a_text_that_does_not_fit_is_named_before_training(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="budget of 500"):
        _training(base, tmp_path, budget=500)
    first, *others = split_pairs("train")
    long = first.model_copy(update={"chosen": "tea " * 200})
    with pytest.raises(DataError, match="'train:u0a:tea': question and answer are"):
        CrossTraining(_options(base), [long, *others], split_pairs("validation"), tmp_path)


def test_users_without_a_post_are_refused(base: Path, tmp_path: Path) -> None:
    splits = ("train", "validation", "test")
    bare = [pair.model_copy(update={"profile": ()}) for split in splits for pair in split_pairs(split)]
    suite = write_suite(tmp_path / "suite.jsonl", bare)
    with pytest.raises(DataError, match="posts to know them by"):
        train_cross(_options(base), tmp_path / "model", suite=str(suite))


def test_what_is_no_encoder_is_refused() -> None:
    with pytest.raises(ModelError, match="cannot start from 'longer'"):
        open_base("longer")
