"""PPO with text-level rewards, in one file that reads from top to bottom.

    sample      two questions, four answers each, from the policy as it is
    pay         one reward per answer, from any reward model, text in and number out; what has no reward is dropped
    shape       centred within each question, divided by the running spread, minus a price for leaving the base model
    estimate    advantages by GAE from a value head on the policy's own trunk, whitened
    learn       a few epochs of the clipped objective; they end early once the policy has moved far enough

Every piece is a pure function with a worked example in the tests. Schulman et al. 2017 (arXiv 1707.06347); per-token KL
as in Ouyang et al. 2022 (arXiv 2203.02155). TRL has had no PPO since 1.13, and its last one tied the reward model to
the policy's tokenizer.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from prbench.errors import ModelError
from prbench.files import Appender
from prbench.studies.ppo.checkpoint import keep, read
from prbench.studies.ppo.config import PPOConfig
from prbench.studies.ppo.history import HISTORY, TrainingStep, cut_history
from prbench.studies.ppo.rewards import AskedAnswer, readable
from prbench.studies.ppo.trunk import Policy, Prefix
from prbench.types import Pair

BARREN_STEPS = 5
"""Number of steps in a row without one reward that end a training: there is nothing to learn from."""

Pay = Callable[[Sequence[AskedAnswer]], Sequence[float | None]]


# ---------------------------------------------------------------------- the pieces


def answer_mask(tokens: Tensor, ends: Sequence[int]) -> Tensor:
    """Return which positions belong to an answer: all up to its first end token, that one included.

    Example:
        >>> answer_mask(torch.tensor([[5, 9, 7, 9], [5, 6, 7, 8]]), [9]).int().tolist()
        [[1, 1, 0, 0], [1, 1, 1, 1]]
    """
    ended = torch.isin(tokens, torch.tensor(list(ends)))
    return ended.int().cumsum(1) - ended.int() == 0


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over the positions of the mask; 0 where it has none."""
    return (x * mask).sum() / mask.sum().clamp(min=1)


def whiten(x: Tensor, mask: Tensor) -> Tensor:
    """Mean 0 and variance 1 over the positions of the mask; 0 elsewhere.

    Example:
        >>> whiten(torch.tensor([1.0, 3.0, 99.0]), torch.tensor([True, True, False])).tolist()
        [-1.0, 1.0, 0.0]
    """
    centred = x - masked_mean(x, mask)
    variance = masked_mean(centred**2, mask)
    return torch.where(mask, centred * torch.rsqrt(variance + 1e-8), 0.0)


class Spread(NamedTuple):
    """The running spread of rewards within a question: with it, one nat of KL costs the same under every model."""

    squares: float = 0.0
    freedom: int = 0

    def seeing(self, deviations: Tensor, freedom: int) -> "Spread":
        """Take in the deviations of one step."""
        return Spread(self.squares + float((deviations**2).sum()), self.freedom + freedom)

    @property
    def value(self) -> float:
        """The standard deviation so far."""
        return float((self.squares / self.freedom) ** 0.5) if self.freedom else 0.0


def centred_rewards(rewards: Sequence[float | None], rollouts: int) -> tuple[Tensor, Tensor, int]:
    """Rewards minus the mean of their question, which of them there are, and their degrees of freedom.

    A question with fewer than two rewards says nothing about which answer is better, so its answers are left out.

    Example:
        >>> deviations, valid, freedom = centred_rewards([1.0, 3.0, None, 5.0], 2)
        >>> deviations.tolist(), valid.tolist(), freedom
        ([-1.0, 1.0, 0.0, 0.0], [True, True, False, False], 1)
    """
    valid = torch.tensor([reward is not None for reward in rewards]).view(-1, rollouts)
    valid &= valid.sum(1, keepdim=True) > 1
    known = torch.tensor([reward or 0.0 for reward in rewards], dtype=torch.float64).view(-1, rollouts)
    means = (known * valid).sum(1, keepdim=True) / valid.sum(1, keepdim=True).clamp(min=1)
    deviations = ((known - means) * valid).float().flatten()
    return deviations, valid.flatten(), int(valid.sum() - valid.any(1).sum())


def token_kl(policy: Tensor, base: Tensor) -> Tensor:
    """Return how much likelier the policy makes each token it wrote than the base model does; its mean estimates KL."""
    return policy - base


def token_rewards(rewards: Tensor, kl: Tensor, mask: Tensor, weight: float) -> Tensor:
    """The price of leaving the base model at every token, and the answer's reward at its last.

    Example:
        >>> mask = torch.tensor([[True, True, False]])
        >>> token_rewards(torch.tensor([1.0]), torch.tensor([[0.2, 0.4, 9.0]]), mask, 0.5).tolist()
        [[-0.1..., 0.8..., 0.0]]
    """
    last = mask & ~functional.pad(mask[:, 1:], (0, 1))
    return last * rewards[:, None] - weight * kl * mask


def gae(rewards: Tensor, values: Tensor, mask: Tensor, discount: float, trace: float) -> Tensor:
    """Advantages by generalised advantage estimation; an answer ends with its mask, and nothing comes after it.

    Example:
        >>> rewards, values = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.25]])
        >>> gae(rewards, values, torch.ones(1, 2, dtype=torch.bool), 1.0, 0.5).tolist()
        [[0.125, 0.75]]
    """
    values = values * mask
    advantages = torch.zeros_like(rewards)
    after, next_value = torch.zeros(len(rewards)), torch.zeros(len(rewards))
    for place in reversed(range(rewards.shape[1])):
        surprise = rewards[:, place] + discount * next_value - values[:, place]
        after = (surprise + discount * trace * after) * mask[:, place]
        advantages[:, place], next_value = after, values[:, place]
    return advantages


def clipped_objective(new: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, clip: float) -> Tensor:
    """PPO's loss: a token's odds may gain only so much from one step.

    Example:
        >>> new, old = torch.log(torch.tensor([[0.3, 0.1]])), torch.log(torch.tensor([[0.2, 0.2]]))
        >>> mask = torch.ones(1, 2, dtype=torch.bool)
        >>> round(clipped_objective(new, old, torch.tensor([[1.0, 1.0]]), mask, 0.2).item(), 4)  # -(1.2 + 0.5) / 2
        -0.85
    """
    ratio = (new - old).exp()
    return masked_mean(torch.maximum(-advantages * ratio, -advantages * ratio.clamp(1 - clip, 1 + clip)), mask)


def clipped_value_loss(new: Tensor, old: Tensor, returns: Tensor, mask: Tensor, clip: float) -> Tensor:
    """Half the squared error, and no less than if the value had moved by at most `clip`.

    Example:
        >>> one = torch.ones(1, 1)
        >>> round(clipped_value_loss(one, 0 * one, one, one.bool(), 0.2).item(), 4)  # it went too far: ½ · 0.8²
        0.32
    """
    held = old + (new - old).clamp(-clip, clip)
    return 0.5 * masked_mean(torch.maximum((new - returns) ** 2, (held - returns) ** 2), mask)


def moved(new: Tensor, old: Tensor, mask: Tensor) -> Tensor:
    """KL from the old to the new policy per token, by an estimate that is never negative (ratio − 1 − log ratio)."""
    change = new - old
    return masked_mean(change.exp() - 1 - change, mask)


def chosen(odds: Tensor, tokens: Tensor) -> Tensor:
    """Return the log-probabilities of the tokens that were written."""
    return odds.gather(2, tokens[..., None])[..., 0]


def entropy(odds: Tensor, mask: Tensor) -> Tensor:
    """Mean entropy of the policy over the positions of the mask, from its log-probabilities."""
    return masked_mean(-(odds.exp() * odds).sum(-1), mask)


# ---------------------------------------------------------------------- one step


class Speech(NamedTuple):
    """Conversion of a question to the policy's tokens, and back to text."""

    encode: Callable[[Pair], Sequence[int]]
    decode: Callable[[Sequence[int]], str]
    ends: tuple[int, ...]
    """Tokens that end an answer."""


class Rollout(NamedTuple):
    """Answers of one step and all that is known of them before learning; (answers, positions) each."""

    prefix: Prefix
    tokens: Tensor
    mask: Tensor
    middle: Tensor
    logprobs: Tensor
    base: Tensor
    values: Tensor
    texts: list[str]


def sample(
    policy: Policy, asked: Sequence[Pair], speech: Speech, options: PPOConfig, draws: torch.Generator
) -> Rollout:
    """Have answers written, and read them with the adapters off."""
    prefix = policy.read_prompts([speech.encode(pair) for pair in asked], options.rollouts)
    written = policy.write(prefix, options.new_tokens, speech.ends, draws)
    mask = answer_mask(written.tokens, speech.ends)
    with torch.no_grad():
        base = chosen(policy.read_upper(prefix, written.middle, adapted=False).logits.log_softmax(-1), written.tokens)
    found = (written.middle, written.logprobs, base, written.values)
    return Rollout(prefix, written.tokens, mask, *found, [text for text, _ in answer_texts(written.tokens, speech)])


def answer_texts(tokens: Tensor, speech: Speech) -> list[tuple[str, bool]]:
    """Return the answers as they are shown, and whether they were cut off."""
    texts = []
    for row, kept in zip(tokens.tolist(), answer_mask(tokens, speech.ends).sum(1).tolist(), strict=True):
        ids = row[:kept]
        finished = ids[-1] in speech.ends
        text = speech.decode(ids[:-1] if finished else ids)
        texts.append((readable(text, cut=not finished), not finished))
    return texts


class Learned(NamedTuple):
    """Result of a step's epochs; the means are of the last pass."""

    loss: float = 0.0
    value_loss: float = 0.0
    entropy: float | None = None
    moved: float = 0.0
    epochs: int = 0


def learn(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    rewards: Tensor,
    valid: Tensor,
    options: PPOConfig,
) -> Learned:
    """A few epochs over one step's answers; those without a reward are masked out."""
    mask = rollout.mask & valid[:, None]
    kl = token_kl(rollout.logprobs, rollout.base)
    paid = token_rewards(rewards, kl, mask, options.kl_weight)
    advantages = gae(paid, rollout.values, mask, options.discount, options.trace)
    returns, advantages = advantages + rollout.values, whiten(advantages, mask)
    told = Learned()
    for epoch in range(options.epochs):
        seen = policy.read_upper(rollout.prefix, rollout.middle)
        odds = seen.logits.log_softmax(-1)
        new = chosen(odds, rollout.tokens)
        with torch.no_grad():
            far = float(moved(new, rollout.logprobs, mask))
        if far > options.target_kl:
            return told._replace(moved=far)
        loss = clipped_objective(new, rollout.logprobs, advantages, mask, options.clip)
        value_loss = clipped_value_loss(seen.values, rollout.values, returns, mask, options.value_clip)
        with torch.set_grad_enabled(options.entropy_weight > 0):
            spread = entropy(odds, mask)
        total = loss + options.value_weight * value_loss - options.entropy_weight * spread
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), options.max_norm)
        optimizer.step()
        told = Learned(loss.item(), value_loss.item(), spread.item(), far, epoch + 1)
    return told


# ---------------------------------------------------------------------- the whole training


class Drought:
    """Counts steps in a row from which nothing could be learned, and ends the training when there are too many."""

    def __init__(self) -> None:
        self._steps = 0

    def see(self, valid: Tensor) -> None:
        """Take in which answers of a step have a usable reward."""
        self._steps = 0 if bool(valid.any()) else self._steps + 1
        if self._steps >= BARREN_STEPS:
            raise ModelError(
                f"the reward model gave no usable reward in {BARREN_STEPS} steps in a row",
                hint="the reasons are counted above; try it with `prbench run` on a few pairs first",
            )


class PPOTraining:
    """A policy in training: it can be stopped after any step and continues from its last checkpoint.

    Args:
        policy: Base weights and adapters.
        pairs: Whose questions it is asked; the seed decides which comes when.
        pay: Rewards of answers.
        speech: The policy's tokenizer.
        options: Settings of the training.
        folder: Where history and checkpoints are kept.
        key: Whom this training belongs to; a checkpoint with another key is refused.
    """

    def __init__(
        self,
        policy: Policy,
        pairs: Sequence[Pair],
        pay: Pay,
        speech: Speech,
        options: PPOConfig,
        *,
        folder: Path,
        key: Mapping[str, Any],
    ) -> None:
        self.policy, self.options = policy, options
        self._pairs, self._pay, self._speech, self._folder, self._key = pairs, pay, speech, folder, key
        groups = [
            {"params": list(policy.adapters.values()), "lr": options.learning_rate},
            {"params": list(policy.value.parameters()), "lr": options.value_learning_rate},
        ]
        self._optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
        self._spread = Spread()
        self._drought = Drought()
        self.done = 0
        """Number of steps made."""
        self._resume()

    def run(self, heard: Callable[[TrainingStep], None] = lambda step: None) -> None:
        """Train to the end; a finished training is left alone."""
        cut_history(self._folder / HISTORY, self.done)
        with Appender(self._folder / HISTORY) as lines:
            while self.done < self.options.steps:
                step = self.step()
                lines.append(step)
                heard(step)
                if self.done % self.options.checkpoint_every == 0 or self.done == self.options.steps:
                    lines.sync()
                    self._keep()

    def step(self) -> TrainingStep:
        """Sample answers, pay for them, and learn."""
        began = time.perf_counter()
        draws = torch.Generator().manual_seed(1_000_003 * self.options.seed + self.done)
        asked = list(self._questions(self.done))
        rollout = sample(self.policy, asked, self._speech, self.options, draws)
        repeated = [pair for pair in asked for _ in range(self.options.rollouts)]
        rewards = self._pay([AskedAnswer(pair, text) for pair, text in zip(repeated, rollout.texts, strict=True)])
        deviations, valid, freedom = centred_rewards(rewards, self.options.rollouts)
        self._spread = self._spread.seeing(deviations, freedom)
        self._drought.see(valid)
        told = Learned()
        if self._spread.value > 0 and bool(valid.any()):
            told = learn(self.policy, self._optimizer, rollout, deviations / self._spread.value, valid, self.options)
        self.done += 1
        return self._told(rollout, rewards, valid, told, time.perf_counter() - began)

    def _told(
        self, rollout: Rollout, rewards: Sequence[float | None], valid: Tensor, told: Learned, seconds: float
    ) -> TrainingStep:
        known = [reward for reward in rewards if reward is not None]
        ended = torch.isin(rollout.tokens, torch.tensor(self._speech.ends)).any(1)
        return TrainingStep(
            step=self.done,
            reward=sum(known) / len(known) if known else None,
            spread=Spread().seeing(*centred_rewards(rewards, self.options.rollouts)[::2]).value,
            kl=float((token_kl(rollout.logprobs, rollout.base) * rollout.mask).sum(1).mean()),
            length=float(rollout.mask.sum(1).float().mean()),
            ended=float(ended.float().mean()),
            dropped=int((~valid).sum()),
            seconds=round(seconds, 3),
            **told._asdict(),
        )

    def _questions(self, number: int) -> Iterator[Pair]:
        """The questions of a step: all come once before any comes again, each round in an order of its own."""
        for place in range(number * self.options.prompts, (number + 1) * self.options.prompts):
            turn, index = divmod(place, len(self._pairs))
            order = list(range(len(self._pairs)))
            random.Random(f"{self.options.seed} {turn}").shuffle(order)  # noqa: S311  (an order, no secret)
            yield self._pairs[order[index]]

    def _keep(self) -> None:
        keep(
            self._folder,
            self._key,
            {
                "done": self.done,
                "policy": self.policy.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "spread": list(self._spread),
            },
        )

    def _resume(self) -> None:
        kept = read(self._folder, self._key)
        if kept is None:
            return
        self.done = int(kept["done"])
        self.policy.load_state_dict(kept["policy"])
        self._optimizer.load_state_dict(kept["optimizer"])
        self._spread = Spread(float(kept["spread"][0]), int(kept["spread"][1]))
