"""Calibrated rewards in a trainer's callback: how well a policy's answers suit their users, from 0 to 1. Needs `lm`.

Put your policy in place of `Policy`, and a reward model's address (`personal:reference`) in place of `shares_words`.
"""

import tempfile
from functools import partial

import torch
from callable_model import shares_words
from transformers import Trainer, TrainerCallback, TrainingArguments

from prbench import calibrate, evaluate_personalized_reward, load_pairs


class PersonalReward(TrainerCallback):
    """Measures what the policy writes whenever the trainer evaluates."""

    def __init__(self, pairs):
        self.pairs, self.scale = pairs, calibrate(shares_words, limit=100)

    def on_evaluate(self, args, state, control, model, metrics, **kwargs):
        score = partial(evaluate_personalized_reward, model=shares_words, scale=self.scale)
        found = [score(model.write(pair), pair.profile, 1.0)["predicted_reward"] for pair in self.pairs]
        metrics["eval_personal_reward"] = sum(found) / len(found)


class Policy(torch.nn.Linear):
    """A stand-in that has nothing to learn and always writes the same."""

    def write(self, pair):
        return f"{pair.question} It depends on what you like, so start small and see."


if __name__ == "__main__":
    measure = PersonalReward(list(load_pairs("mirror", split="validation"))[:20])
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(folder, report_to=[], use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False)
        trainer = Trainer(Policy(2, 1), settings, eval_dataset=[{"input": [1.0, 2.0]}], callbacks=[measure])
        print(f"personal reward {trainer.evaluate()['eval_personal_reward']:.2f} of 1")
