"""TRL's GRPO on a tiny real policy, paid by the same rewards."""

from pathlib import Path
from typing import Any

import pytest

from ppo_world import PlantedJudge, tiny_policy, tiny_suite
from prbench.errors import ModelError
from prbench.studies.best_of_n import parse_model
from prbench.studies.ppo.checkpoint import HISTORY, read_history
from prbench.studies.ppo.config import PPOConfig, PPOStudyConfig
from prbench.studies.ppo.recipe import ppo_study

pytest.importorskip("trl")

OPTIONS = PPOConfig(algorithm="grpo", steps=3, prompts=2, rollouts=4, new_tokens=6, posts=0, epochs=2, temperature=1)


@pytest.mark.filterwarnings("ignore")  # TRL's and its libraries' own
def test_grpo_trains_answers_and_is_judged_as_ppo_is(tmp_path: Path):
    settings = PPOStudyConfig(
        policy=tiny_policy(tmp_path / "policy", initializer_range=0.15), items=8, judge_pairs=20, options=OPTIONS
    )
    rewards = [parse_model("py:ppo_world:e_share")]
    out = tmp_path / "ppo"
    found = ppo_study(settings, rewards, out, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    assert found is not None
    assert "GRPO" in found.endpoint
    (folder,) = (out / "trainings").iterdir()
    history = read_history(folder / HISTORY)
    assert [step.step for step in history] == [1, 2, 3]
    assert all(step.reward is not None and 0 <= step.reward <= 1 for step in history)
    assert found.models["py:ppo_world:e_share"].score.n >= 7
    assert list(folder.glob("adapter-*/adapter_model.safetensors"))
    again = ppo_study(settings, rewards, out, suite=tiny_suite(), judge=PlantedJudge(), say=lambda line: None)
    assert again == found


@pytest.mark.filterwarnings("ignore")
def test_grpo_killed_while_it_saves_goes_on_from_what_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from peft import PeftModel

    settings = PPOStudyConfig(policy=tiny_policy(tmp_path / "policy", initializer_range=0.15), items=8, options=OPTIONS)
    rewards, out, save = [parse_model("py:ppo_world:e_share")], tmp_path / "ppo", PeftModel.save_pretrained

    def killed(model: Any, place: str, *rest: Any, **more: Any) -> None:
        if "adapter-" in place:
            Path(place, "half").touch()
            raise KeyboardInterrupt
        save(model, place, *rest, **more)

    monkeypatch.setattr(PeftModel, "save_pretrained", killed)
    with pytest.raises(KeyboardInterrupt):
        ppo_study(settings, rewards, out, suite=tiny_suite(), say=lambda line: None)
    monkeypatch.undo()
    (folder,) = (out / "trainings").iterdir()
    before = read_history(folder / HISTORY)
    assert [step.step for step in before] == [1, 2, 3]
    (folder / "trl" / "checkpoint-99").mkdir()  # as if killed while saving that one
    ppo_study(settings, rewards, out, suite=tiny_suite(), say=lambda line: None)
    assert read_history(folder / HISTORY) == before  # no step was made twice
    assert (folder / "training.json").is_file()
    assert list(folder.glob("adapter-*/adapter_model.safetensors"))
    assert not list(folder.glob(".adapter-*"))


@pytest.mark.filterwarnings("ignore")
def test_grpo_with_a_reward_model_that_never_answers_ends(tmp_path: Path):
    options = OPTIONS.model_copy(update={"steps": 7, "epochs": 1})
    settings = PPOStudyConfig(policy=tiny_policy(tmp_path / "policy", initializer_range=0.15), items=8, options=options)
    with pytest.raises(ModelError, match="no usable reward in 5 steps"):
        ppo_study(settings, [parse_model("py:ppo_world:broken")], tmp_path / "ppo", suite=tiny_suite())
    assert not list(tmp_path.glob("ppo/trainings/*/training.json"))


@pytest.mark.filterwarnings("ignore")
def test_grpo_leaves_out_what_has_no_reward(tmp_path: Path):
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
