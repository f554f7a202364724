"""Judgments from outside the split as shots: drawn from there alone, the person's own, and all shown in validation."""

import torch

from planted_worlds import HashEncoder
from prbench.models.personal.reader import Reader
from prbench.train import TrainOptions
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


def _shown(examples: Examples, batches: list) -> list[tuple[str, set[tuple[float, ...]]]]:
    """The user of each example, found by the pair, and the chosen items of the shots."""
    user_of = {tuple(row[0].tolist()): p.user for row, p in zip(examples.items_N2F, examples.pairs, strict=True)}
    return [
        (
            user_of[tuple(target[0].tolist())],
            {tuple(shot.tolist()) for shot in batch.person.chosen_BSF[row][batch.person.shots_mask_BS[row].bool()]},
        )
        for batch in batches
        for row, target in enumerate(batch.pairs_B2F)
    ]


def test_shots_are_the_users_own_judgments_from_outside():
    examples = Examples(PAIRS, READER, judged=JUDGED)
    options = TrainOptions(method="lore", shots=3, strangers=0, batch=7)
    shown = _shown(examples, list(examples.epoch(options, torch.Generator().manual_seed(0))))
    assert len(shown) == len(PAIRS)
    assert all(1 <= len(shots) <= 3 and shots <= _chosen(user) for user, shots in shown)
    assert {len(shots) for _, shots in shown} == {1, 2, 3}


def test_validation_shows_the_first_ones_and_who_judged_nothing_stays_unknown():
    examples = Examples(PAIRS, READER, judged={**JUDGED, SILENT: []})
    for user, shots in _shown(examples, list(examples.whole(size=7, shots=4))):
        assert len(shots) == (0 if user == SILENT else 4)
        assert shots <= _chosen(user)
