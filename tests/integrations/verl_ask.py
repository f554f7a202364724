"""verl's own reward manager asks for a reward, configured as a run would be. Run by verl's own Python: URL."""

import asyncio
import json
import sys

import numpy as np
import torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
from verl.trainer.ppo.reward import get_custom_reward_fn
from verl.workers.reward_manager.batch import BatchRewardManager

ANSWERS = ["Get the red tea.", "Get the blue tea."]
PROMPT_LENGTH, LENGTH = 2, 24


class Letters:
    """A tokenizer of bytes: the policy's words are its own."""

    def decode(self, ids, skip_special_tokens=True):
        return bytes(int(one) for one in ids if int(one)).decode()


def batch() -> DataProto:
    rows = [list(answer.encode()) for answer in ANSWERS]
    responses = torch.tensor([row + [0] * (LENGTH - len(row)) for row in rows])
    written = torch.tensor([[1] * len(row) + [0] * (LENGTH - len(row)) for row in rows])
    prompts = torch.ones(len(rows), PROMPT_LENGTH, dtype=torch.long)
    tensors = {"prompts": prompts, "responses": responses, "attention_mask": torch.cat([prompts, written], dim=1)}
    info = {"question": "Which tea should I get?", "user": "u0a"}
    others = {
        "data_source": np.array(["mirror"] * len(rows), dtype=object),
        "reward_model": np.array([{"ground_truth": "", "style": "model"}] * len(rows), dtype=object),
        "extra_info": np.array([dict(info) for _ in rows], dtype=object),
    }
    return DataProto(batch=TensorDict(tensors, batch_size=len(rows)), non_tensor_batch=others)


def reward(url: str, name: str):
    function = {"path": "pkg://prbench.serve.clients.verl_reward", "name": name, "reward_kwargs": {"url": url}}
    return get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": function}}))


async def one_by_one(url: str) -> list[float]:
    manager = NaiveRewardManager(OmegaConf.create({}), Letters(), reward(url, "compute_score"))
    manager.loop = asyncio.get_running_loop()
    data = batch()
    replies = await asyncio.gather(*(manager.run_single(data[place : place + 1]) for place in range(len(ANSWERS))))
    return [reply["reward_score"] for reply in replies]


def together(url: str) -> list[float]:
    manager = BatchRewardManager(Letters(), 0, reward(url, "compute_score_batch"))
    return manager(batch()).sum(dim=1).tolist()


if __name__ == "__main__":
    address = sys.argv[1]
    print(json.dumps({"naive": asyncio.run(one_by_one(address)), "batch": together(address), "answers": ANSWERS}))
