"""A callback for `transformers.Trainer` and TRL's trainers: personal accuracy while a reward model is being trained."""

from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from prbench.api.evaluating import evaluate
from prbench.config import ModelOptions
from prbench.data import Suite, load_pairs
from prbench.models.local.hf import live
from prbench.results import EFFECTS


class PersonalRewardCallback(TrainerCallback):  # type: ignore[misc]
    """Evaluates the model in training whenever the trainer evaluates, and logs the numbers with its own.

    Args:
        suite: A suite's name, a file or loaded pairs; use a validation split, never the test split you report.
        split: Part of the suite.
        contexts: What the model is shown; accuracy is logged for each.
        limit: At most so many pairs (whole couples of a mirrored suite).
        prefix: Before each logged name.
        options: Window, batch size and the like.

    Example:
        ``trainer = RewardTrainer(…, callbacks=[PersonalRewardCallback("mirror", split="validation")])``
    """

    def __init__(
        self,
        suite: str | Path | Suite = "mirror",
        *,
        split: str | None = "validation",
        contexts: tuple[str, ...] = ("none", "profile"),
        limit: int | None = 200,
        prefix: str = "eval_prbench",
        options: ModelOptions | None = None,
    ) -> None:
        self._suite = suite if isinstance(suite, Suite) else load_pairs(suite)
        self._split = split
        self._contexts = contexts
        self._limit = limit
        self._prefix = prefix
        self._options = options or ModelOptions()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Score the suite with the weights as they are now."""
        if not state.is_world_process_zero:
            return
        metrics = self.measure(kwargs["model"], kwargs["processing_class"])
        if kwargs.get("metrics") is not None:
            kwargs["metrics"].update(metrics)  # so that metric_for_best_model can name them
        state.log_history.append({"step": state.global_step, **metrics})

    def measure(self, model: Any, tokenizer: Any) -> dict[str, float]:
        """Accuracy in each context, and the gain from the profile."""
        training = model.training
        model.eval()
        try:
            found = evaluate(
                live(model, tokenizer, self._options),
                self._suite,
                split=self._split,
                contexts=self._contexts,
                limit=self._limit,
                resamples=100,
            )
        finally:
            model.train(training)
        metrics = {f"{name}_accuracy": context.accuracy for name, context in found.contexts.items()}
        metrics |= {effect.key: estimate for effect in EFFECTS if (estimate := found.effects.of(effect)) is not None}
        return {f"{self._prefix}_{name}": one.value for name, one in metrics.items() if one.value is not None}
