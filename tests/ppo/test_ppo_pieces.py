"""Every piece of the loop against an example worked out by hand."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.studies.ppo import formulas, loop
from prbench.studies.ppo.config import PPOConfig
from prbench.studies.ppo.trunk import Read

ALL = torch.ones(1, 3, dtype=torch.bool)


def test_masking_ends_after_the_first_end_token():
    tokens = torch.tensor([[4, 9, 9, 4], [9, 4, 4, 4], [4, 4, 4, 4], [4, 4, 4, 8]])
    mask = formulas.answer_mask(tokens, [9, 8])
    assert mask.int().tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]


def test_gae_by_hand():
    # γ = .9, λ = .5, from the end: δ₃ = 2 − 1 = 1; δ₂ = 0 + .9·1 − .5 = .4; δ₁ = −1 + .9·.5 − .2 = −.75
    # A₃ = 1; A₂ = .4 + .45·1 = .85; A₁ = −.75 + .45·.85 = −.3675
    advantages = formulas.gae(torch.tensor([[-1.0, 0.0, 2.0]]), torch.tensor([[0.2, 0.5, 1.0]]), ALL, 0.9, 0.5)
    assert advantages[0].tolist() == pytest.approx([-0.3675, 0.85, 1.0])


def test_gae_does_not_look_behind_the_end_of_an_answer():
    mask = torch.tensor([[True, True, False]])
    rewards, values = torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([[0.0, 0.25, 77.0]])
    # The value after the end is not bootstrapped from: A₂ = 1 − .25, A₁ = .25 + A₂
    assert formulas.gae(rewards, values, mask, 1.0, 1.0)[0].tolist() == pytest.approx([1.0, 0.75, 0.0])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7))
def test_gae_with_full_trace_is_the_return_minus_the_value(seed: int, length: int):
    draws = torch.Generator().manual_seed(seed)
    rewards, values = (torch.randn(2, 7, generator=draws, dtype=torch.float64) for _ in range(2))
    mask = torch.arange(7)[None].expand(2, 7) < length
    rewards = rewards * mask
    returns = rewards.flip(1).cumsum(1).flip(1)
    found = formulas.gae(rewards, values, mask, 1.0, 1.0)
    torch.testing.assert_close(found, (returns - values) * mask)


def test_clipped_objective_by_hand():
    # ratios 2, ½, 1 with advantages 1, 1, −1; clip .2: min(2, 1.2) = 1.2, min(.5, .8) = .5, −1. Loss = −(1.2+.5−1)/3
    old = torch.zeros(1, 3)
    new = torch.tensor([[math.log(2), math.log(0.5), 0.0]])
    loss = formulas.clipped_objective(new, old, torch.tensor([[1.0, 1.0, -1.0]]), ALL, 0.2)
    assert loss.item() == pytest.approx(-0.7 / 3)


def test_clipped_objective_has_no_gradient_beyond_the_clip():
    new = torch.tensor([[math.log(2), math.log(1.1), math.log(0.5)]], requires_grad=True)
    formulas.clipped_objective(new, torch.zeros(1, 3), torch.tensor([[1.0, 1.0, -1.0]]), ALL, 0.2).backward()
    assert new.grad is not None
    # Gains beyond 1.2 and losses beyond .8 pull no further; 1.1 still does, by −A·ratio/3.
    assert new.grad[0].tolist() == pytest.approx([0.0, -1.1 / 3, 0.0])


def test_clipped_value_loss_by_hand():
    # old 0, clip .2. new 1 held at .2: return 1 → max(0, .64); return 0 → max(1, .04); new .1 is not held: (.1 − 1)²
    new, returns = torch.tensor([[1.0, 1.0, 0.1]]), torch.tensor([[1.0, 0.0, 1.0]])
    loss = formulas.clipped_value_loss(new, torch.zeros(1, 3), returns, ALL, 0.2)
    assert loss.item() == pytest.approx(0.5 * (0.64 + 1.0 + 0.81) / 3)


def test_kl_per_token_is_priced_and_the_reward_comes_last():
    kl = formulas.token_kl(torch.tensor([[-1.0, -2.0, -3.0]]), torch.tensor([[-1.5, -1.0, -3.0]]))
    assert kl[0].tolist() == [0.5, -1.0, 0.0]
    mask = torch.tensor([[True, True, False]])
    paid = formulas.token_rewards(torch.tensor([3.0]), kl, mask, 0.1)
    assert paid[0].tolist() == pytest.approx([-0.05, 3.1, 0.0])
    dropped = torch.zeros(1, 3, dtype=torch.bool)
    assert formulas.token_rewards(torch.tensor([3.0]), kl, dropped, 0.1).abs().max() == 0


def test_whitening_looks_at_the_mask_only():
    x, mask = torch.tensor([[1.0, 2.0, 6.0, 100.0]]), torch.tensor([[True, True, True, False]])
    white = formulas.whiten(x, mask)
    spread = math.sqrt((4 + 1 + 9) / 3)
    assert white[0].tolist() == pytest.approx([-2 / spread, -1 / spread, 3 / spread, 0.0], abs=1e-6)


def test_whitening_equal_values_gives_zero_not_infinity():
    assert formulas.whiten(torch.full((1, 3), 5.0), ALL).abs().max() == 0


def test_rewards_are_centred_within_their_question():
    deviations, valid, freedom = formulas.centred_rewards([1.0, 3.0, 10.0, 20.0], 2)
    assert deviations.tolist() == [-1.0, 1.0, -5.0, 5.0]
    assert valid.all()
    assert freedom == 2
    # Pooled within questions: (1 + 1 + 25 + 25) / 2
    assert formulas.Spread().seeing(deviations, freedom).value == pytest.approx(math.sqrt(26))


def test_a_missing_reward_is_no_number():
    """Without its reward an answer is out; it neither counts as 0 nor moves the mean of the others."""
    deviations, valid, freedom = formulas.centred_rewards([None, 1.0, 3.0, None, None, 7.0], 3)
    assert deviations.tolist() == [0.0, -1.0, 1.0, 0.0, 0.0, 0.0]
    assert valid.tolist() == [False, True, True, False, False, False]
    assert freedom == 1


def test_moved_is_zero_for_the_same_policy_and_positive_otherwise():
    old = torch.tensor([[-1.0, -2.0, -3.0]])
    assert formulas.moved(old, old, ALL).item() == 0
    assert formulas.moved(old + torch.tensor([[0.1, -0.1, 0.0]]), old, ALL).item() == pytest.approx(
        (math.exp(0.1) + math.exp(-0.1) - 2) / 3
    )


class Fixed(torch.nn.Module):
    """A policy that reads what it is told, and whose every number can be learned: two answers of two tokens out of two.

    Beside each other: odds .45 and .275 for the tokens that the first answer has, values .3 and .5.
    """

    def __init__(self) -> None:
        super().__init__()
        odds = torch.tensor([[0.45, 0.55], [0.725, 0.275]]).log()
        self.logits = torch.nn.Parameter(torch.stack([odds, odds + 1]))
        self.values = torch.nn.Parameter(torch.tensor([[0.3, 0.5], [7.0, 7.0]]))

    def read_upper(self, prefix: Any, middle: Any, *, adapted: bool = True) -> Read:
        return Read(self.logits, self.values)


def rollout_by_hand() -> loop.Rollout:
    """The first answer was written with odds ½ and ¼, which the base model gives it the other way round."""
    tokens, mask = torch.tensor([[0, 1], [0, 1]]), torch.ones(2, 2, dtype=torch.bool)
    logprobs = torch.tensor([[0.5, 0.25], [0.9, 0.9]]).log()
    base = torch.tensor([[0.25, 0.5], [0.1, 0.1]]).log()
    values = torch.tensor([[0.2, 0.6], [9.0, 9.0]])
    nothing: Any = None
    return loop.Rollout(nothing, tokens, mask, torch.zeros(2, 2), logprobs, base, values, ["", ""])


BY_HAND = PPOConfig(
    kl_weight=0.5 / math.log(2), trace=0.5, epochs=1, target_kl=9, value_weight=0.4, max_norm=99, temperature=0.5
)


def test_learning_by_hand():
    """One pass over an answer with reward 1; a second one has no reward and must not be felt.

    KL ln 2 and −ln 2, priced ½ each: paid −½ and 1 + ½. From the end, with λ = ½: A₂ = 1.5 − .6 = .9 and
    A₁ = (−.5 + .6 − .2) + ½ · .9 = .35. Returns .2 + .35 = .55 and .6 + .9 = 1.5. Whitened: −1 and 1.
    Ratios .45/.5 = .9 and .275/.25 = 1.1, both within the clip: loss = −(−.9 + 1.1)/2 = −.1.
    Value loss = ½ · ((.3 − .55)² + (.5 − 1.5)²)/2 = .265625.
    """
    policy = Fixed()
    optimizer = torch.optim.SGD(policy.parameters(), lr=1.0)
    rewards, valid = torch.tensor([1.0, 50.0]), torch.tensor([True, False])
    told = loop.learn(policy, optimizer, rollout_by_hand(), rewards, valid, BY_HAND)  # type: ignore[arg-type]
    assert told.loss == pytest.approx(-0.1, abs=1e-6)
    assert told.value_loss == pytest.approx(0.265625)
    assert told.moved == pytest.approx((0.9 - 1 - math.log(0.9) + 1.1 - 1 - math.log(1.1)) / 2, abs=1e-6)
    assert told.epochs == 1
    # Down its gradient, weight · (value − return)/2: up by .4 · .25/2 and .4 · 1/2; the other answer's stay.
    assert policy.values.tolist() == [pytest.approx([0.35, 0.7]), [7.0, 7.0]]
    # −A · ratio/2 for the log-odds of a token, times 1 − p for its logit: .45 · .55 down, .55 · .725 up.
    first = torch.tensor([[0.45, 0.55], [0.725, 0.275]]).log()
    assert (policy.logits[0, 0, 0] - first[0, 0]).item() == pytest.approx(-0.45 * 0.55, abs=1e-5)
    assert (policy.logits[0, 1, 1] - first[1, 1]).item() == pytest.approx(0.55 * 0.725, abs=1e-5)
    assert torch.equal(policy.logits[1], first + 1)


def test_a_policy_that_has_moved_far_enough_learns_no_further():
    policy = Fixed()
    before = policy.values.tolist()
    options = BY_HAND.model_copy(update={"target_kl": 0.001})  # it is .0050 away from the one that wrote
    rewards, valid = torch.tensor([1.0, 50.0]), torch.tensor([True, False])
    optimizer = torch.optim.SGD(policy.parameters(), lr=1.0)
    told = loop.learn(policy, optimizer, rollout_by_hand(), rewards, valid, options)  # type: ignore[arg-type]
    assert told.epochs == 0
    assert told.entropy is None  # no pass, so nobody has looked
    assert told.moved == pytest.approx(0.005, abs=1e-4)
    assert policy.values.tolist() == before


def test_entropy_of_a_uniform_policy():
    odds = torch.full((1, 3, 8), -math.log(8))
    assert formulas.entropy(odds, ALL).item() == pytest.approx(math.log(8))
    assert formulas.chosen(odds, torch.zeros(1, 3, dtype=torch.long))[0].tolist() == pytest.approx([-math.log(8)] * 3)
