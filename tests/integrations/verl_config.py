"""verl's own config, composed with ours on top. Run by verl's Python: FOLDER of the config; prints what verl lacks."""

import json
import sys

from hydra import compose, initialize_config_dir, initialize_config_module
from omegaconf import DictConfig, OmegaConf
from verl.utils.config import omega_conf_to_dataclass

OURS = {"reward.custom_reward_function.reward_kwargs"}
"""Read by verl with `get`, and in none of its config files."""


def leaves(config, path=""):
    for name, value in config.items():
        place = f"{path}.{name}".lstrip(".")
        if isinstance(value, dict) and place not in OURS:
            yield from leaves(value, place)
        else:
            yield place


def main(folder: str) -> None:
    with initialize_config_module("verl.trainer.config", version_base=None):
        theirs = compose("ppo_trainer")
    with initialize_config_dir(folder, version_base=None):
        whole = compose("prbench_ppo")
    written = OmegaConf.to_container(OmegaConf.load(f"{folder}/prbench_ppo.yaml"), resolve=False)
    mine = {name: value for name, value in written.items() if name not in ("hydra", "defaults")}
    known = set(leaves(OmegaConf.to_container(theirs, resolve=False)))
    typed = []
    for place in ("algorithm", "actor_rollout_ref.rollout", "actor_rollout_ref.actor"):
        part = OmegaConf.select(whole, place)
        assert isinstance(part, DictConfig)
        typed.append(type(omega_conf_to_dataclass(part)).__name__)
    print(
        json.dumps(
            {
                "unknown": sorted(set(leaves(mine)) - known - OURS),
                "applied": whole.trainer.total_training_steps,
                "default kept": whole.trainer.device,
                "typed": typed,
            }
        )
    )


main(sys.argv[1])
