"""OpenRLHF's own code asks for rewards: by URL and through our file. Run by an environment that has it: URL."""

import asyncio
import importlib.util
import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace

from prbench.serve import label
from prbench.serve.clients import openrlhf_reward

PROMPT = "<|user|>Which tea should I get?</s><|assistant|>"
ANSWERS = ["Get the red tea.", "Get the blue tea."]


def agent():
    """The module that asks; what it takes from the rest of the package is a logger, and the rest wants a GPU."""
    spec = importlib.util.find_spec("openrlhf")
    path = Path(next(iter(spec.submodule_search_locations))) / "utils" / "agent.py"
    sys.modules["openrlhf.utils.logging_utils"] = SimpleNamespace(init_logger=logging.getLogger)
    sys.modules["openrlhf.utils"] = SimpleNamespace()
    loaded = importlib.util.spec_from_file_location("agent", path)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    return module


async def main(url: str) -> None:
    executor = agent().SingleTurnAgentExecutor
    labels = [label("Which tea should I get?", user="u0a")] * 2
    batch = ([PROMPT + answer + "</s>" for answer in ANSWERS], [PROMPT] * 2, labels)
    over_http = await executor(f"{url}/get_reward")._fetch_rewards_via_http(*batch)
    by_file = await executor(openrlhf_reward.__file__)._fetch_rewards_via_func(*batch)
    rewards = [[float(reward) for reply in replies for reward in reply["rewards"]] for replies in (over_http, by_file)]
    print(json.dumps({"http": rewards[0], "file": rewards[1], "answers": ANSWERS}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
