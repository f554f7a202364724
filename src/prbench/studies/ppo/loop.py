"""PPO with text-level rewards, to be read from top to bottom; its formulas are in `formulas`.

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

from prbench.errors import ModelError
from prbench.files import Appender
from prbench.models.local.precision import multiplying
from prbench.studies.ppo.checkpoint import HISTORY, TrainingStep, cut_history, keep, read
from prbench.studies.ppo.config import PPOConfig
from prbench.studies.ppo.formulas import (
    Spread,
    answer_mask,
    centred_rewards,
    chosen,
    clipped_objective,
    clipped_value_loss,
    entropy,
    gae,
    moved,
    token_kl,
    token_rewards,
    whiten,
)
from prbench.studies.ppo.rewards import AskedAnswer, readable
from prbench.studies.ppo.trunk import Policy, Prefix
from prbench.types import Pair

BARREN_STEPS = 5
"""Number of steps in a row without one reward that end a training: there is nothing to learn from."""

Pay = Callable[[Sequence[AskedAnswer]], Sequence[float | None]]


# ---------------------------------------------------------------------- the pieces


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
        with multiplying(options.products):
            seen = policy.read_upper(rollout.prefix, rollout.middle)
        odds = seen.logits.float().log_softmax(-1)
        new = chosen(odds, rollout.tokens)
        with torch.no_grad():
            far = float(moved(new, rollout.logprobs, mask))
        if far > options.target_kl:
            return told._replace(moved=far)
        loss = clipped_objective(new, rollout.logprobs, advantages, mask, options.clip)
        value_loss = clipped_value_loss(seen.values.float(), rollout.values, returns, mask, options.value_clip)
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
