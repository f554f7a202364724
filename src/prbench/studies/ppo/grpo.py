"""The second algorithm: GRPO by TRL, with the same questions, the same rewards and the same held-out answers.

TRL leaves a completion without a reward out of its group's mean and out of the gradient, so an error pays nothing here
either. It is imported when it is asked for, and trains a copy: other users of the base model do not notice.
"""

import copy
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prbench.config import digest
from prbench.errors import MissingExtraError
from prbench.files import Appender, replacing_folder
from prbench.studies.policy import policy_prompt
from prbench.studies.ppo.checkpoint import HISTORY, TrainingStep, cut_history
from prbench.studies.ppo.config import PPOConfig
from prbench.studies.ppo.formulas import centred_rewards
from prbench.studies.ppo.loop import Drought
from prbench.studies.ppo.rewards import AskedAnswer, TextReward, readable
from prbench.types import Pair

if TYPE_CHECKING:
    from prbench.studies.ppo.held_out import Write
    from prbench.studies.ppo.training import StudySetup

ADAPTER = "adapter"
_WRITTEN_LAST = "trainer_state.json"
"""Last file of a checkpoint of transformers' trainer."""
_LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def train_grpo(
    work: "StudySetup", reward: TextReward, folder: Path, key: Mapping[str, Any], heard: Callable[[TrainingStep], None]
) -> "Write":
    """Train with TRL's GRPO, or take the adapter of a finished training; returns how the policy answers."""
    try:
        from peft import PeftModel
        from trl import GRPOTrainer
    except ImportError as error:
        raise MissingExtraError("--algorithm grpo", "ppo") from error
    from prbench.studies.ppo.training import make_policy, writer

    options, speech = work.settings.options, work.speaker.speech
    base = copy.deepcopy(work.speaker.weights)
    place = folder / f"{ADAPTER}-{digest(key)[:8]}"
    if place.is_dir():
        trained = PeftModel.from_pretrained(base, str(place))
    else:
        pairs = chosen_pairs(work.division.train, options)
        paid = _Paid(pairs, reward, speech.ends, options)
        checkpoints = folder / "trl"
        trainer = GRPOTrainer(
            model=base,
            reward_funcs=[paid],
            args=_config(options, checkpoints),
            train_dataset=_dataset(pairs, options),
            processing_class=work.speaker.tokenizer,
            peft_config=_adapter(base, options),
            callbacks=[_listener(paid, folder, heard)],
        )
        done = _steps_done(checkpoints)
        cut_history(folder / HISTORY, done // options.epochs)
        trainer.train(resume_from_checkpoint=True if done else None)
        trained = trainer.model
        _save_whole(trained, place)
    merged = trained.merge_and_unload().eval().requires_grad_(False)
    return writer(make_policy(merged, options), speech, options, adapted=False)


def chosen_pairs(pairs: Sequence[Pair], options: PPOConfig) -> list[Pair]:
    """The questions of all steps in their order; all come once before any comes again."""
    found: list[Pair] = []
    turn = 0
    while len(found) < options.steps * options.prompts:
        order = list(pairs)
        random.Random(f"{options.seed} {turn}").shuffle(order)  # noqa: S311  (an order, no secret)
        found, turn = found + order, turn + 1
    return found[: options.steps * options.prompts]


class _Paid:
    """A reward function as TRL calls it: once in a step."""

    __name__ = "reward"

    def __init__(self, pairs: Sequence[Pair], reward: TextReward, ends: Sequence[int], options: PPOConfig) -> None:
        self._pairs = {pair.id: pair for pair in pairs}
        self._reward, self._ends, self._options = reward, set(ends), options
        self._drought = Drought()
        self.dropped = 0
        """Completions of the last step that were not learned from."""

    def __call__(
        self, completions: Sequence[Any], completion_ids: Sequence[Sequence[int]], pair: Sequence[str], **columns: Any
    ) -> list[float | None]:
        asked = [
            AskedAnswer(self._pairs[name], readable(turns[0]["content"], cut=self._cut(ids)))
            for turns, ids, name in zip(completions, completion_ids, pair, strict=True)
        ]
        rewards = self._reward(asked)
        _, valid, _ = centred_rewards(rewards, self._options.rollouts)
        self.dropped = int((~valid).sum())
        self._drought.see(valid)
        return rewards

    def _cut(self, ids: Sequence[int]) -> bool:
        return not ids or ids[-1] not in self._ends


def _dataset(pairs: Sequence[Pair], options: PPOConfig) -> Any:
    from datasets import Dataset

    prompts = (policy_prompt(pair, posts=options.posts, words=options.words) for pair in pairs)
    return Dataset.from_list(
        [
            {"prompt": [message._asdict() for message in prompt.messages], "pair": pair.id}
            for pair, prompt in zip(pairs, prompts, strict=True)
        ]
    )


def _config(options: PPOConfig, folder: Path) -> Any:
    import torch
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=options.batch,
        num_generations=options.rollouts,
        max_steps=options.steps * options.epochs,
        num_iterations=options.epochs,
        max_completion_length=options.new_tokens,
        temperature=options.temperature,
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant",
        beta=options.kl_weight,
        epsilon=options.clip,
        max_grad_norm=options.max_norm,
        shuffle_dataset=False,
        seed=options.seed,
        use_cpu=not torch.cuda.is_available(),
        bf16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_steps=options.checkpoint_every * options.epochs,
        save_total_limit=1,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )


def _adapter(model: Any, options: PPOConfig) -> Any:
    from peft import LoraConfig

    depth = model.config.num_hidden_layers
    layers = min(options.layers or (depth + 1) // 2, depth)
    return LoraConfig(
        r=options.rank,
        lora_alpha=2 * options.rank,
        target_modules=_LINEARS,
        layers_to_transform=list(range(depth - layers, depth)),
        layers_pattern="layers",
        task_type="CAUSAL_LM",
    )


def _listener(paid: _Paid, folder: Path, heard: Callable[[TrainingStep], None]) -> Any:
    """Turns what TRL logs into our history; made here because its base loads transformers."""
    import time

    from transformers import TrainerCallback

    class Listener(TrainerCallback):
        began = time.perf_counter()

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
            if "reward" not in (logs or {}) and "completions/mean_length" not in (logs or {}):
                return
            now = time.perf_counter()
            step = _step(logs, (state.global_step + args.num_iterations - 1) // args.num_iterations, paid.dropped)
            step = step.model_copy(update={"seconds": round(now - self.began, 3)})
            self.began = now
            with Appender(folder / HISTORY) as lines:
                lines.append(step)
            heard(step)

    return Listener()


def _step(logs: Mapping[str, float], number: int, dropped: int) -> TrainingStep:
    reward, length = logs.get("reward"), logs.get("completions/mean_length", 0.0)
    return TrainingStep(
        step=number,
        reward=None if reward is None or reward != reward else reward,
        kl=logs.get("kl", 0.0) * length,
        entropy=logs.get("entropy"),
        length=length,
        ended=1 - logs.get("completions/clipped_ratio", 0.0),
        dropped=dropped,
        loss=logs.get("loss", 0.0),
    )


def _steps_done(checkpoints: Path) -> int:
    """TRL's steps up to its last whole checkpoint; what was being written when it was killed is cleared away."""
    done = 0
    for path in list(checkpoints.glob("checkpoint-*")):
        if (path / _WRITTEN_LAST).is_file():
            done = max(done, int(path.name.rpartition("-")[2]))
        else:
            shutil.rmtree(path)
    return done


def _save_whole(trained: Any, place: Path) -> None:
    """An adapter that is there is whole: it gets its name when it is finished."""
    with replacing_folder(place) as unfinished:
        trained.save_pretrained(str(unfinished))
