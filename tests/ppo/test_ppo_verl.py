"""What is written for verl: its columns, its config's keys, its hook; and no report of a run that was not made."""

import inspect
import json
import os
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from prbench.cli import app
from prbench.errors import ConfigError
from prbench.studies.best_of_n import parse_model
from prbench.studies.ppo.config import PPOConfig, PPOStudyConfig
from prbench.studies.ppo.verl import as_yaml, verl_config, write_verl
from split_suite import write_suite

SERVER = "http://127.0.0.1:8123"


@pytest.fixture
def settings(tmp_path: Path) -> PPOStudyConfig:
    return PPOStudyConfig(policy="lm:org/name", suite=str(write_suite(tmp_path / "suite.jsonl")), items=8)


@pytest.fixture
def written(settings: PPOStudyConfig, tmp_path: Path) -> Path:
    write_verl(settings, [parse_model("longer")], tmp_path / "verl", server=SERVER)
    return tmp_path / "verl"


def test_the_command_says_what_to_run_and_reports_nothing(settings: PPOStudyConfig, tmp_path: Path):
    place = tmp_path / "out"
    options = ["--policy", settings.policy, "--suite", settings.suite, "--items", "8", "--engine", "verl"]
    result = CliRunner().invoke(app, ["study", "ppo", *options, "--reward", "longer", "-o", str(place)])
    assert result.exit_code == 0, result.output
    assert "nothing was run" in result.output
    assert f"bash {place / 'launch.sh'}" in result.output
    assert sorted(path.name for path in place.iterdir()) == [
        "launch.sh",
        "prbench_ppo.yaml",
        "test.parquet",
        "train.parquet",
    ]


def test_parquet_has_verls_columns_and_holds_test_users_out(written: Path):
    train, test = (pq.read_table(written / f"{name}.parquet").to_pylist() for name in ("train", "test"))
    assert list(train[0]) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    assert [turn["role"] for turn in train[0]["prompt"]] == ["system", "user"]
    assert set(train[0]["extra_info"]) == {"index", "user", "question"}
    assert len(test) == 8
    assert not {row["extra_info"]["user"] for row in train} & {row["extra_info"]["user"] for row in test}
    told = json.dumps(train + test)
    assert "SECRET" not in told
    assert "ASPECT" not in told


def test_launch_script_is_a_script_that_serves_the_same_context(written: Path):
    text = (written / "launch.sh").read_text()
    subprocess.run(["bash", "-n", str(written / "launch.sh")], check=True)
    assert "prbench serve --model longer" in text
    assert "--context none" in text  # `longer` reads no posts
    assert f"--config-path={written}" in text


def test_the_hook_takes_what_verl_gives_it():
    """verl calls `compute_score(data_source=…, solution_str=…, ground_truth=…, extra_info=…, **reward_kwargs)`."""
    pytest.importorskip("httpx")
    from prbench.serve.clients.verl_reward import compute_score

    config = verl_config(PPOStudyConfig(policy="lm:org/name"), Path("/out"), SERVER)["reward"]["custom_reward_function"]
    assert config["path"] == "pkg://prbench.serve.clients.verl_reward"
    inspect.signature(compute_score).bind(
        data_source="d", solution_str="s", ground_truth="", extra_info={}, **config["reward_kwargs"]
    )


def test_config_follows_the_options():
    options = PPOConfig(algorithm="grpo", rollouts=6, kl_weight=0.2, seed=3)
    config = verl_config(PPOStudyConfig(policy="lm:org/name", options=options), Path("/out"), SERVER)
    assert config["algorithm"]["adv_estimator"] == "grpo"
    assert config["actor_rollout_ref"]["rollout"]["n"] == 6
    assert config["actor_rollout_ref"]["actor"]["kl_loss_coef"] == 0.2
    assert config["data"]["seed"] == 3
    assert 'path: "org/name"' in as_yaml(config)


def test_one_reward_model_at_a_time(settings: PPOStudyConfig, tmp_path: Path):
    with pytest.raises(ConfigError, match="one reward model"):
        write_verl(settings, [parse_model("longer"), parse_model("shorter")], tmp_path / "x", server=SERVER)


@pytest.mark.parametrize("algorithm", ["ppo", "grpo"])
def test_verl_knows_every_key(settings: PPOStudyConfig, tmp_path: Path, algorithm: str):
    """verl's own config is composed with ours on top, in verl's own environment (`make test-verl`)."""
    python = os.environ.get("VERL_PYTHON")
    if not python:
        pytest.skip("needs verl in an environment of its own: make test-verl")
    options = PPOConfig.model_validate({"algorithm": algorithm})
    chosen = settings.model_copy(update={"options": options})
    write_verl(chosen, [parse_model("longer")], tmp_path / "verl", server=SERVER)
    script = Path(__file__).parent.parent / "integrations" / "verl_config.py"
    told = subprocess.run([python, str(script), str(tmp_path / "verl")], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr[-3000:]
    found = json.loads(told.stdout.strip().splitlines()[-1])
    assert found["unknown"] == []
    assert found["applied"] == options.steps
    assert found["default kept"] == "cuda"
