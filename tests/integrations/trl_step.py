"""One real GRPO step of TRL with a tiny policy, paid by a reward server. Run by TRL's own Python: URL and folder."""

import json
import sys
from pathlib import Path

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

import tiny_models
from prbench.serve import trl_reward

QUESTIONS = ["Which tea should I get?", "Which boots should I get?"]


def main(url: str, folder: Path) -> None:
    policy = tiny_models.save_causal_model(folder / "policy", seed=1)
    rows = [{"prompt": [{"role": "user", "content": question}], "user": "u0a"} for question in QUESTIONS]
    seen = []
    ask = trl_reward(url, on_error="drop")

    def prbench(**call):
        scores = ask(**call)
        seen.extend(
            [completion[0]["content"], score] for completion, score in zip(call["completions"], scores, strict=True)
        )
        return scores

    settings = GRPOConfig(
        output_dir=str(folder / "out"),
        max_steps=1,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=12,
        learning_rate=1e-2,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        seed=0,
    )
    words = tiny_models.tokenizer(pad_token="<pad>")
    trainer = GRPOTrainer(
        str(policy), reward_funcs=prbench, args=settings, train_dataset=Dataset.from_list(rows), processing_class=words
    )
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    trainer.train()
    moved = any(not torch.equal(one, two) for one, two in zip(before, trainer.model.parameters(), strict=True))
    log = next(entry for entry in trainer.state.log_history if "reward" in entry)
    found = {"seen": seen, "reward": log["reward"], "dropped": log.get("prbench/dropped"), "moved": moved}
    print(json.dumps({**found, "advantages": list(trainer._logs["advantages"])}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
