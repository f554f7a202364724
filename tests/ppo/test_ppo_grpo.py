"""TRL's GRPO on a tiny real policy, paid by the same rewards."""

from pathlib import Path

import pytest

from ppo_world import PlantedJudge, tiny_policy, tiny_suite
from prbench.studies.best_of_n import parse_model
from prbench.studies.ppo.history import HISTORY, read_history
from prbench.studies.ppo.options import PPOOptions
from prbench.studies.ppo.recipe import ppo_study
from prbench.studies.ppo.settings import PPOSettings

pytest.importorskip("trl")

OPTIONS = PPOOptions(algorithm="grpo", steps=3, prompts=2, rollouts=4, new_tokens=6, posts=0, epochs=2, temperature=1)


@pytest.mark.filterwarnings("ignore")  # TRL's and its libraries' own
def test_grpo_trains_answers_and_is_judged_as_ppo_is(tmp_path: Path):
    settings = PPOSettings(
        policy=tiny_policy(tmp_path / "policy", initializer_range=0.15), items=8, judge_pairs=20, options=OPTIONS
    )
    rewards = [parse_model("py:ppo_world:e_share")]
    out = tmp_path / "ppo"
    found = ppo_study(settings, rewards, out, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    assert found is not None
    assert "GRPO" in found["endpoint"]
    (folder,) = (out / "trainings").iterdir()
    history = read_history(folder / HISTORY)
    assert [step.step for step in history] == [1, 2, 3]
    assert all(step.reward is not None and 0 <= step.reward <= 1 for step in history)
    assert found["models"]["py:ppo_world:e_share"]["score"]["n"] >= 7
    assert list(folder.glob("adapter-*/adapter_model.safetensors"))
    again = ppo_study(settings, rewards, out, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    assert again == found


@pytest.mark.filterwarnings("ignore")
def test_d4_grpo_leaves_out_what_has_no_reward(tmp_path: Path):
    """An answer without a reward reaches TRL as None, which it keeps out of the group's mean; it is counted here."""
    from ppo_world import PlantedRater
    from prbench.studies.ppo.grpo import _Paid
    from prbench.studies.ppo.rewards import TextReward
    from prbench.types import Context

    suite = tiny_suite()
    reward = TextReward(suite, PlantedRater(failing=["failed", ""]), Context.parse("profile"))
    paid = _Paid(suite, reward, [1], OPTIONS)
    completions = [[{"role": "assistant", "content": "e e e"}]] * 4
    rewards = paid(completions=completions, completion_ids=[[7, 1]] * 4, pair=[suite[0].id] * 4, prompts=[])
    assert [reward is None for reward in rewards].count(True) == 2
    assert paid.dropped == 2
