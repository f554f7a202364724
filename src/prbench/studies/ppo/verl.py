"""The verl engine: writes what a Ray cluster of GPUs needs, and reports nothing, because nothing was run here.

Parquet files in verl's columns, a config on top of verl's own `ppo_trainer`, the reward hook (which asks `prbench
serve`, so the reward model sees what the benchmark shows it), and the commands to launch it all. The config's keys and
the hook's signature are checked against verl itself by `make test-verl`.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from prbench.data import load_pairs
from prbench.errors import ConfigError
from prbench.files import replacing, write_whole
from prbench.studies.best_of_n.config import RewardModelConfig
from prbench.studies.best_of_n.reward_models import open_reward_models
from prbench.studies.policy import policy_prompt
from prbench.studies.ppo.config import PPOConfig, PPOStudyConfig
from prbench.studies.ppo.held_out import divide
from prbench.types import Pair

VERSION = "0.9.1"
CONFIG = "prbench_ppo"
HOOK = "pkg://prbench.serve.clients.verl_reward"
_FACTOR = 32
"""Factor by which a cluster's batch is larger than the default of two cores."""


def write_verl(settings: PPOStudyConfig, rewards: Sequence[RewardModelConfig], out: Path, *, server: str) -> str:
    """Write the files of one training and say what was written and what to run.

    Args:
        settings: Policy, suite and options.
        rewards: The reward model, exactly one: a server serves one.
        out: Folder for the files.
        server: Where the reward server will listen.
    """
    if len(rewards) != 1:
        raise ConfigError(
            f"verl is paid by one reward model, not by {len(rewards)}",
            hint="name one --reward, and write one folder for each",
        )
    if settings.people:
        raise ConfigError("verl trains one policy for all", hint="leave --people out, or train with --engine local")
    (reward_model,) = open_reward_models(rewards)
    if reward_model.context is None:
        raise ConfigError(f"{reward_model.name!r} cannot be served", hint="name a real reward model")
    everything = load_pairs(settings.suite)
    division = divide(everything, settings)
    files = {
        "train.parquet": division.train,
        "test.parquet": [item.pair for item in division.items],
    }
    for name, pairs in files.items():
        write_parquet(out / name, pairs, settings)
    config = verl_config(settings, out.absolute(), server)
    write_whole(out / f"{CONFIG}.yaml", as_yaml(config))
    serve = ["prbench", "serve", "--model", reward_model.card.address, "--suite", settings.suite]
    serve += ["--context", str(reward_model.context)]
    write_whole(out / "launch.sh", _script(serve, out.absolute()))
    return _told(out, {name: len(pairs) for name, pairs in files.items()}, reward_model.name)


def write_parquet(path: Path, pairs: Iterable[Pair], settings: PPOStudyConfig) -> None:
    """Questions in the columns that verl reads."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(path) as partial:
        pq.write_table(pa.Table.from_pylist([verl_row(pair, settings) for pair in pairs]), partial)


def verl_row(pair: Pair, settings: PPOStudyConfig) -> dict[str, Any]:
    """One question: the prompt for the policy, and for the reward hook whom it is about.

    Example:
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> verl_row(pair, PPOStudyConfig(policy="lm:smollm2"))["extra_info"]
        {'index': '1', 'user': 'ann', 'question': 'Tea?'}
    """
    options = settings.options
    prompt = policy_prompt(pair, posts=options.posts, words=options.words)
    return {
        "data_source": f"prbench/{Path(settings.suite).name}",
        "prompt": [message._asdict() for message in prompt.messages],
        "ability": pair.category or "advice",
        "reward_model": {"style": "rule", "ground_truth": ""},  # verl wants the column; the hook does not look at it
        "extra_info": {"index": pair.id, "user": pair.user, "question": pair.question},
    }


def verl_config(settings: PPOStudyConfig, out: Path, server: str) -> dict[str, Any]:
    """Our settings in verl's words; whatever is not named keeps verl's own default."""
    options = settings.options
    grpo = options.algorithm == "grpo"
    actor: dict[str, Any] = {
        "model": {"path": policy_path(settings.policy), "lora_rank": options.rank, "lora_alpha": 2 * options.rank},
        "actor": {
            "optim": {"lr": options.learning_rate},
            "ppo_mini_batch_size": options.prompts * _FACTOR,
            "ppo_micro_batch_size_per_gpu": 8,
            "ppo_epochs": options.epochs,
            "clip_ratio": options.clip,
            "entropy_coeff": options.entropy_weight,
            "grad_clip": options.max_norm,
            "use_kl_loss": grpo,
            "kl_loss_coef": options.kl_weight,
        },
        "rollout": {
            "name": "vllm",
            "n": options.rollouts,
            "temperature": options.temperature,
            "tensor_model_parallel_size": 1,
            "log_prob_micro_batch_size_per_gpu": 8,
            "val_kwargs": {"n": settings.answers, "temperature": options.temperature, "do_sample": True},
        },
        "ref": {"log_prob_micro_batch_size_per_gpu": 8},
    }
    return {
        "hydra": {"searchpath": ["pkg://verl.trainer.config"]},
        "defaults": ["ppo_trainer", "_self_"],
        "data": {
            "train_files": str(out / "train.parquet"),
            "val_files": str(out / "test.parquet"),
            "train_batch_size": options.prompts * _FACTOR,
            "max_prompt_length": 1024 + 256 * options.posts,
            "max_response_length": options.new_tokens,
            "seed": options.seed,
        },
        "actor_rollout_ref": actor,
        "critic": _critic(settings),
        "algorithm": _algorithm(options),
        "reward": {
            "custom_reward_function": {"path": HOOK, "name": "compute_score", "reward_kwargs": {"url": server}},
            "reward_manager": {"name": "naive"},
        },
        "trainer": {
            "total_training_steps": options.steps,
            "project_name": "prbench",
            "experiment_name": f"{options.algorithm}-s{options.seed}",
            "default_local_dir": str(out / "checkpoints"),
            "save_freq": options.checkpoint_every,
            "test_freq": options.checkpoint_every,
            "logger": ["console"],
            "validation_data_dir": str(out / "validation"),
            "n_gpus_per_node": 1,
            "nnodes": 1,
        },
    }


def _critic(settings: PPOStudyConfig) -> dict[str, Any]:
    options = settings.options
    return {
        "model": {"path": policy_path(settings.policy)},
        "optim": {"lr": options.value_learning_rate},
        "ppo_micro_batch_size_per_gpu": 8,
        "cliprange_value": options.value_clip,
    }


def _algorithm(options: PPOConfig) -> dict[str, Any]:
    grpo = options.algorithm == "grpo"
    return {
        "adv_estimator": "grpo" if grpo else "gae",
        "gamma": options.discount,
        "lam": options.trace,
        "use_kl_in_reward": not grpo,
        "kl_ctrl": {"type": "fixed", "kl_coef": options.kl_weight},
    }


def policy_path(address: str) -> str:
    """Return what verl loads: a folder or a hub name.

    Example:
        >>> policy_path("lm:org/name")
        'org/name'
    """
    scheme, _, name = address.partition(":")
    if scheme != "lm" or not name or "#" in name:
        raise ConfigError(f"policy {address!r} is no language model that verl could load", hint="name lm:ORG/NAME")
    from prbench.models.local import weights

    return str(weights.pull(name)) if name in weights.SOURCES else name


def as_yaml(config: dict[str, Any]) -> str:
    """A config as YAML; every value in JSON's spelling, which YAML reads as well.

    Example:
        >>> print(as_yaml({"data": {"seed": 0, "files": ["a"]}, "name": "x: y"}), end="")
        # Made by `prbench study ppo --engine verl` for verl 0.9.1: on top of verl's own ppo_trainer.
        data:
          seed: 0
          files: ["a"]
        name: "x: y"
    """
    head = f"# Made by `prbench study ppo --engine verl` for verl {VERSION}: on top of verl's own ppo_trainer."
    return "\n".join([head, *_yaml_lines(config, 0)]) + "\n"


def _yaml_lines(config: dict[str, Any], depth: int) -> Iterable[str]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield f"{'  ' * depth}{name}:"
            yield from _yaml_lines(value, depth + 1)
        else:
            yield f"{'  ' * depth}{name}: {json.dumps(value, ensure_ascii=False)}"


def _script(serve: Sequence[str], out: Path) -> str:
    launch = ["python", "-m", "verl.trainer.main_ppo", f"--config-path={out}", f"--config-name={CONFIG}"]
    return f"""#!/usr/bin/env bash
# Made by `prbench study ppo --engine verl`. Needs GPUs; nothing of it has been run.
set -euo pipefail

# 1. The reward server: where the reward model is, on a host that all workers reach (see docs/serve.md for tokens).
#    {shlex.join(serve)}

# 2. The cluster: once on the head node, then on every other one; a single machine needs neither.
#    ray start --head
#    ray start --address=HEAD:6379

# 3. The training: with verl {VERSION}, vLLM and personalized-rewardbench[api] installed on all nodes.
exec {shlex.join(launch)} "$@"  # for example trainer.nnodes=2 trainer.n_gpus_per_node=8
"""


def _told(out: Path, counts: dict[str, int], reward: str) -> str:
    files = "\n".join(f"  {out / name}    {count:,} questions" for name, count in counts.items())
    return (
        f"written for verl {VERSION}, to train with {reward}:\n{files}\n"
        f"  {out / CONFIG}.yaml\n  {out / 'launch.sh'}\n\n"
        f"nothing was run and nothing is reported: start the server named in {out / 'launch.sh'}, then run\n"
        f"  bash {out / 'launch.sh'}"
    )
