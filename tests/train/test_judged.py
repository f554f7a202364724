"""Judgments from outside the split as shots: drawn from there alone, the person's own, and all shown in validation."""

import torch

from planted_worlds import HashEncoder
from prbench.models.personal.reader import Reader
from prbench.train import TrainConfig
from prbench.train.examples import Examples
from prbench.types import Judgment
from split_suite import split_pairs

READER = Reader(HashEncoder(), post_window=0, answer_window=0)
PAIRS = [pair.model_copy(update={"profile": ()}) for pair in split_pairs("train")]
JUDGED = {
    user: [Judgment(question="Which?", chosen=f"{user} likes {n}", rejected=f"{user} dislikes {n}") for n in range(5)]
    for user in sorted({pair.user for pair in PAIRS})
}
SILENT = PAIRS[0].user


def _chosen(user: str) -> set[tuple[float, ...]]:
    rows = READER.items([(judgment.question, judgment.chosen) for judgment in JUDGED[user]])
    return {tuple(row.tolist()) for row in rows}


def _shown(batches: list) -> list[set[tuple[float, ...]]]:
    """The chosen items of the shots of each example."""
    return [
        {tuple(shot.tolist()) for shot in batch.person.chosen_BSF[row][batch.person.shots_mask_BS[row].bool()]}
        for batch in batches
        for row in range(len(batch.person.posts_BPD))
    ]


def test_shots_are_one_users_own_judgments_from_outside():
    options = TrainConfig(method="lore", shots=3, strangers=0, batch=7)
    for user in JUDGED:
        examples = Examples([pair for pair in PAIRS if pair.user == user], READER, judged=JUDGED)
        shown = _shown([b for seed in range(4) for b in examples.epoch(options, torch.Generator().manual_seed(seed))])
        assert all(shots <= _chosen(user) for shots in shown)
        assert {len(shots) for shots in shown} == {1, 2, 3}


def test_validation_shows_the_first_ones_and_who_judged_nothing_stays_unknown():
    examples = Examples(PAIRS, READER, judged={**JUDGED, SILENT: []})
    for pair, shots in zip(PAIRS, _shown(list(examples.whole(size=7, shots=4))), strict=True):
        assert len(shots) == (0 if pair.user == SILENT else 4)
        assert shots <= _chosen(pair.user)
