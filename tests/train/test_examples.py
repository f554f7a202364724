"""What a training example shows: a part of what is known of its user, and never the pair that it asks for."""

import pytest
import torch

from planted_worlds import HashEncoder
from prbench.errors import DataError
from prbench.models.personal.reader import Reader
from prbench.train import TrainConfig
from prbench.train.examples import Examples
from prbench.types import Post
from split_suite import split_pairs


def _reader() -> Reader:
    return Reader(HashEncoder(), post_window=0, answer_window=0)


def _options(**changes: object) -> TrainConfig:
    return TrainConfig.model_validate({"method": "user-bt", "batch": 5, **changes})


def _epoch(examples: Examples, **changes: object) -> list:
    return list(examples.epoch(_options(**changes), torch.Generator().manual_seed(0)))


def test_every_pair_once_an_epoch() -> None:
    examples = Examples(split_pairs("train"), _reader())
    shown = torch.cat([batch.pairs_N2F for batch in _epoch(examples)])
    assert len(shown) == len(examples.pairs)
    assert {tuple(row.flatten().tolist()) for row in shown} == {
        tuple(row.flatten().tolist()) for row in examples.items_N2F
    }


def test_a_judgment_shown_is_another_question_of_the_same_user_and_shown_once() -> None:
    pairs = split_pairs("train")
    reader = _reader()
    examples = Examples(pairs, reader)
    of_item = {tuple(row.tolist()): pair for row, pair in zip(examples.items_N2F[:, 0], pairs, strict=True)}
    seen = 0
    for _ in range(3):
        for batch in _epoch(examples, shots=16, strangers=0):
            for row, target in zip(batch.owner_N.tolist(), batch.pairs_N2F, strict=True):
                pair = of_item[tuple(target[0].tolist())]
                there = batch.person.shots_mask_BS[row].bool()
                shots = [of_item[tuple(shot.tolist())] for shot in batch.person.chosen_BSF[row][there]]
                seen += len(shots)
                assert all(shot.user == pair.user and shot.question != pair.question for shot in shots)
                assert len({shot.id for shot in shots}) == len(shots)
    assert seen > 20


def test_pairs_of_a_user_are_shown_together_and_leave_others_to_be_judged() -> None:
    pairs = split_pairs("train")
    many = [
        pair.model_copy(update={"id": f"{pair.id}-{copy}", "question": f"{pair.question} {copy}"})
        for pair in pairs
        for copy in range(4)
    ]
    examples = Examples(many, _reader())
    own = {tuple(row.flatten().tolist()): pair for row, pair in zip(examples.items_N2F, many, strict=True)}
    for most in (1, 3):
        batches = _epoch(examples, together=most, shots=16, strangers=0)
        sizes = torch.cat([torch.bincount(batch.owner_N) for batch in batches])
        assert sizes.max() == most
        assert sizes.sum() == len(many)
        for batch in batches:
            asked = [own[tuple(row.flatten().tolist())] for row in batch.pairs_N2F]
            users = dict(zip(batch.owner_N.tolist(), (pair.user for pair in asked), strict=True))
            assert [users[owner] for owner in batch.owner_N.tolist()] == [pair.user for pair in asked]
        assert any(batch.person.shots_mask_BS.sum() > 0 for batch in batches)


def test_strangers_and_no_shots() -> None:
    examples = Examples(split_pairs("train"), _reader())
    assert all(batch.person.posts_mask_BP.sum() == 0 for batch in _epoch(examples, strangers=1))
    assert all(batch.person.shots_mask_BS.sum() == 0 for batch in _epoch(examples, shots=0))


def test_a_part_of_the_posts_is_shown() -> None:
    examples = Examples(split_pairs("train"), _reader())
    count = sum(float(b.person.posts_mask_BP.sum()) for b in _epoch(examples, keep_posts=0.5, strangers=0))
    assert 0.25 < count / (3 * len(examples.pairs)) < 0.75
    every = sum(float(b.person.posts_mask_BP.sum()) for b in _epoch(examples, keep_posts=1.0, strangers=0))
    assert every == 3 * len(examples.pairs)


def test_a_profile_belongs_to_its_pair_also_where_a_user_has_several() -> None:
    first, second, *_ = split_pairs("train")
    assert first.user == second.user
    longer = second.model_copy(update={"profile": (*second.profile, Post(id="new", text="a later post"))})
    (batch,) = Examples([first, longer], _reader()).whole()
    assert batch.person.posts_mask_BP.sum(1).tolist() == [3.0, 4.0]


def test_validation_shows_posts_and_judgments_only_in_place_of_them() -> None:
    pairs = split_pairs("validation")
    bare = [pair.model_copy(update={"profile": ()}) for pair in pairs]
    (batch,) = Examples(pairs, _reader()).whole(shots=2)
    assert batch.person.shots_mask_BS.sum() == 0
    one, two = (next(Examples(bare, _reader()).whole(shots=2)) for _ in range(2))
    assert one.person.shots_mask_BS.sum(1).tolist() == [2.0] * len(pairs)
    assert torch.equal(one.person.chosen_BSF, two.person.chosen_BSF)


def test_aspects_are_embedded_and_shown_only_when_asked_for() -> None:
    encoder = HashEncoder()
    pairs = split_pairs("train")
    Examples(pairs, Reader(encoder, post_window=0, answer_window=0))
    assert not any("ASPECT" in text for text in encoder.asked)
    reader = Reader(encoder, post_window=0, answer_window=0)
    told = Examples(pairs, reader, aspects=True)
    assert "ASPECT blue tea (REASON u0a)" in encoder.asked, "as the oracle context shows it"
    texts = {text for text in encoder.asked if text.startswith("ASPECT")}
    lines = {tuple(reader.posts([text])[0].tolist()) for text in texts}
    shown = [
        tuple(batch.person.posts_BPD[row, 0].tolist())
        for batch in _epoch(told, aspects=True, strangers=0)
        for row in range(len(batch.person.posts_BPD))
    ]
    assert 0 < sum(row in lines for row in shown) < len(shown)


def test_no_pair_is_no_training() -> None:
    with pytest.raises(DataError, match="no pair"):
        Examples([], _reader())
