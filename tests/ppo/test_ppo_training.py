"""Trainings of a tiny real model: they learn what they are paid for, drop what has no reward, know whose they are."""

from pathlib import Path
from typing import Any

import pytest
import torch

from pair_factory import make_pair
from ppo_world import PlantedRater, gold, tiny_policy, tiny_suite
from prbench.data import Suite
from prbench.errors import ConfigError, ModelError, RunError, TemplateError
from prbench.models import ModelCard
from prbench.studies.ppo.checkpoint import HISTORY, TrainingStep, claim, read_history
from prbench.studies.ppo.config import PPOConfig
from prbench.studies.ppo.loop import PPOTraining, sample
from prbench.studies.ppo.rewards import TextReward
from prbench.studies.ppo.speaker import Speaker, load_speaker
from prbench.studies.ppo.training import make_policy
from prbench.types import Context, Message, Pair, Prompt

OPTIONS = PPOConfig(
    products="float32",
    steps=40,
    prompts=2,
    rollouts=16,
    new_tokens=12,
    posts=1,
    epochs=4,
    learning_rate=0.03,
    kl_weight=0,
    target_kl=1,
    temperature=1,
)


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return load_speaker(tiny_policy(tmp_path_factory.mktemp("policy"), initializer_range=0.15), OPTIONS)


def training(speaker: Speaker, rater: Any, folder: Path, options: PPOConfig = OPTIONS, key: Any = None) -> PPOTraining:
    suite = tiny_suite()
    pairs = [pair for pair in suite if pair.tags["split"] == "train"]
    reward = TextReward(suite, rater, Context.parse("profile"))
    key = key or {"reward": reward.key, "options": options.identity}
    policy = make_policy(speaker.weights, options)
    return PPOTraining(policy, pairs, reward, speaker.speech, options, folder=folder, key=key)


def mean_gold(made: PPOTraining) -> float:
    """What the policy's answers to a held-out question are worth by the gold reward."""
    from prbench.studies.ppo.training import writer

    held = [pair for pair in tiny_suite() if pair.tags["split"] == "test"][:4]
    write = writer(made.policy, made._speech, made.options)
    texts = [text for text, _ in write(held, 16, 0)]
    return sum(map(gold, texts)) / len(texts)


def test_gold_reward_beats_noise(speaker: Speaker, tmp_path: Path):
    """In a world with a known gold reward, PPO with it must beat PPO with noise, on questions it was not trained on.

    With other seeds gold ends at .23 to .43 and noise at .08 to .11, where the base model is (.09).
    """
    made = {name: training(speaker, PlantedRater(name), tmp_path / name) for name in ("gold", "noise")}
    before = mean_gold(made["gold"])
    for one in made.values():
        one.run()
    after = {name: mean_gold(one) for name, one in made.items()}
    assert after["gold"] > 1.5 * before
    assert after["gold"] > 1.5 * after["noise"]
    history = read_history(tmp_path / "gold" / HISTORY)
    assert [step.step for step in history] == list(range(1, 41))
    assert history[-1].kl > history[0].kl == pytest.approx(0, abs=1e-3)


def test_the_reference_is_the_policy_with_its_adapters_off(speaker: Speaker):
    """At any temperature: before the first step nothing has left the base model, and nothing is charged for it."""
    options = OPTIONS.model_copy(update={"temperature": 0.5, "rollouts": 4})
    pairs = [pair for pair in tiny_suite() if pair.tags["split"] == "train"][:2]
    policy, draws = make_policy(speaker.weights, options), torch.Generator().manual_seed(0)
    fresh = sample(policy, pairs, speaker.speech, options, draws)
    torch.testing.assert_close(fresh.base, fresh.logprobs, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        for adapter in policy.adapters.values():
            adapter.add_(0.05)
    trained = sample(policy, pairs, speaker.speech, options, draws)
    assert (trained.base - trained.logprobs)[trained.mask].abs().max() > 0.01


def test_a_high_price_keeps_the_policy_near_the_base_model(speaker: Speaker, tmp_path: Path):
    far = {}
    for weight in (0.0, 3.0):
        options = OPTIONS.model_copy(update={"steps": 12, "kl_weight": weight, "temperature": 0.8})
        steps: list[TrainingStep] = []
        training(speaker, PlantedRater(), tmp_path / str(weight), options).run(steps.append)
        far[weight] = sum(step.kl for step in steps[-4:]) / 4
    assert far[0.0] > 1
    assert far[3.0] < far[0.0] / 3


def test_ppo_drops_what_has_no_reward(speaker: Speaker, tmp_path: Path):
    """A reward that is an error or invalid is dropped and counted; it pays nothing, neither 0 nor ½."""
    options = OPTIONS.model_copy(update={"steps": 2})
    made = training(speaker, PlantedRater(failing=["failed", "", "invalid", ""]), tmp_path / "some", options)
    steps: list[TrainingStep] = []
    made.run(steps.append)
    assert all(step.dropped >= 16 for step in steps)  # half of 32
    assert all(step.reward is not None and step.reward < 0.5 for step in steps)
    assert made._pay.dropped.keys() == {"timed out", "unreadable"} | (
        made._pay.dropped.keys() & {"the answer says nothing"}
    )


def test_without_any_reward_nothing_is_learned_and_the_training_ends(speaker: Speaker, tmp_path: Path):
    made = training(speaker, PlantedRater(failing=["failed"]), tmp_path / "none")
    before = {name: value.clone() for name, value in made.policy.state_dict().items()}
    step = made.step()
    assert (step.reward, step.dropped, step.epochs, step.entropy) == (None, 32, 0, None)
    assert all(torch.equal(value, before[name]) for name, value in made.policy.state_dict().items())
    with pytest.raises(ModelError, match="no usable reward in 5 steps"):
        made.run()


def test_a_resumed_training_ends_as_an_uninterrupted_one(speaker: Speaker, tmp_path: Path):
    options = OPTIONS.model_copy(update={"steps": 4, "checkpoint_every": 2})
    whole = training(speaker, PlantedRater(), tmp_path / "whole", options)
    whole.run()
    broken = training(speaker, PlantedRater(), tmp_path / "broken", options)

    def stop(step: TrainingStep) -> None:
        if step.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken.run(stop)
    again = training(speaker, PlantedRater(), tmp_path / "broken", options)
    assert again.done == 2
    again.run()
    for name, value in whole.policy.state_dict().items():
        torch.testing.assert_close(value, again.policy.state_dict()[name])
    assert [step.step for step in read_history(tmp_path / "broken" / HISTORY)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "changed",
    [
        {"reward": {"address": "planted:other"}},
        {"reward": {"revision": "2"}},
        {"reward": {"context": "none"}},
        {"policy": {"address": "lm:other"}},
        {"options": {"seed": 1}},
    ],
)
def test_another_checkpoint_is_refused(tmp_path: Path, changed: dict[str, dict[str, Any]]):
    key = {
        "reward": {"address": "planted:gold", "revision": "1", "context": "profile"},
        "policy": {"address": "lm:tiny", "revision": "a"},
        "options": {"seed": 0},
    }
    claim(tmp_path / "run", key)
    claim(tmp_path / "run", key)
    other = {name: {**value, **changed.get(name, {})} for name, value in key.items()}
    with pytest.raises(RunError, match="another policy"):
        claim(tmp_path / "run", other)


def test_the_next_reward_model_does_not_resume_the_last_ones_policy(speaker: Speaker, tmp_path: Path):
    options = OPTIONS.model_copy(update={"steps": 1})
    training(speaker, PlantedRater("gold"), tmp_path, options).run()
    with pytest.raises(RunError, match="'planted:gold', not 'planted:noise'"):
        training(speaker, PlantedRater("noise"), tmp_path, options)


def test_the_policy_learns_from_training_questions_only(speaker: Speaker, tmp_path: Path):
    from prbench.studies.ppo.config import PPOStudyConfig
    from prbench.studies.ppo.held_out import divide

    settings = PPOStudyConfig(policy="lm:tiny", items=8)
    division = divide(tiny_suite(), settings)
    assert {pair.tags["split"] for pair in division.train} == {"train"}
    assert {item.pair.tags["split"] for item in division.items} == {"test"}
    assert not {pair.user for pair in division.train} & {item.pair.user for item in division.items}
    with pytest.raises(ConfigError, match="trained on"):
        divide(tiny_suite(), settings.model_copy(update={"test_split": "train"}))


def test_the_reward_model_sees_what_the_benchmark_shows_it():
    from prbench.contexts import ContextBuilder
    from prbench.studies.ppo.rewards import AskedAnswer

    suite = tiny_suite()
    pair, context = suite[0], Context.parse("profile")
    rater = PlantedRater()
    TextReward(suite, rater, context)([AskedAnswer(pair, pair.chosen), AskedAnswer(pair, pair.rejected)])
    shown = ContextBuilder(suite, rater, seed=0).show(pair, context)
    assert tuple(rater.seen) == shown.view.answers()


def test_every_seed_of_a_training_shows_the_stranger_of_the_benchmark(speaker: Speaker, tmp_path: Path):
    from prbench.studies.best_of_n.config import RewardModelConfig
    from prbench.studies.best_of_n.reward_models import RewardModel
    from prbench.studies.ppo.config import PPOStudyConfig
    from prbench.studies.ppo.held_out import divide
    from prbench.studies.ppo.rewards import AskedAnswer
    from prbench.studies.ppo.training import StudySetup, train_policy

    suite, rater, context = tiny_suite(), PlantedRater(), Context.parse("other")
    options = OPTIONS.model_copy(update={"steps": 1, "epochs": 1, "rollouts": 2, "new_tokens": 4, "seed": 1})
    settings = PPOStudyConfig(policy="lm:tiny", items=4, answers=1, options=options)
    work = StudySetup(settings, speaker, divide(suite, settings), suite, tmp_path)
    reward_model = RewardModel("gold", RewardModelConfig(address=rater.card.address), rater.card, context, False)
    paying: list[TextReward] = []
    reward = TextReward(suite, rater, context)
    train_policy(work, reward_model, reward, lambda step, reward: paying.append(reward))
    shown = {}
    for pair in work.division.train:
        paying[0]([AskedAnswer(pair, "e")])
        shown[pair.id] = rater.seen[-1].posts
    told, otherwise = ({pair.id: stranger(suite, rater, pair, seed) for pair in work.division.train} for seed in (0, 1))
    assert shown == told != otherwise


def stranger(suite: Suite, rater: PlantedRater, pair: Pair, seed: int) -> Any:
    """The posts that the benchmark shows under `other`."""
    from prbench.contexts import ContextBuilder

    return ContextBuilder(suite, rater, seed=seed).show_answers(pair, Context.parse("other"), ["e"]).views[0].posts


def test_what_a_policy_draws_does_not_depend_on_how_long_its_earlier_answers_were():
    """All policies answer held-out questions with the same draws, not only the first eight."""
    from prbench.studies.ppo.loop import Speech
    from prbench.studies.ppo.training import writer
    from prbench.studies.ppo.trunk import WrittenAnswers

    class Drawing:
        """Draws as often as its longest question has words, and says the last draw."""

        def read_prompts(self, prompts: Any, rollouts: int) -> Any:
            return prompts, rollouts

        def write(self, prefix: Any, limit: int, ends: Any, draws: Any, *, adapted: bool) -> WrittenAnswers:
            prompts, rollouts = prefix
            for _ in range(max(map(len, prompts))):
                tokens = torch.randint(10**6, (len(prompts) * rollouts, 1), generator=draws)
            return WrittenAnswers(tokens, tokens, tokens, tokens)

    speech = Speech(lambda pair: [0] * len(pair.question.split()), str, (-1,))
    write = writer(Drawing(), speech, OPTIONS)  # type: ignore[arg-type]
    last = make_pair("z")
    short, long = (
        [last.model_copy(update={"id": f"{number}", "question": question}) for number in range(8)]
        for question in ("Tea?", "Tea or coffee or water?")
    )
    after_short, after_long = write([*short, last], 2, 0), write([*long, last], 2, 0)
    assert after_short[:16] != after_long[:16]
    assert after_short[16:] == after_long[16:]
    assert after_short[16:] != after_short[:2]


def test_a_reward_that_does_not_see_the_answer_is_refused():
    class Blind(PlantedRater):
        def render(self, view: Any) -> Prompt:
            return Prompt((Message("user", view.question),))

    suite = tiny_suite()
    with pytest.raises(TemplateError, match="answer"):
        TextReward(suite, Blind(), Context.parse("none"))


def test_a_reward_that_compares_is_refused():
    class Comparing:
        card = ModelCard(address="planted:compares")

        def compare(self, views: Any) -> Any: ...

    with pytest.raises(ModelError, match="compares"):
        TextReward(tiny_suite(), Comparing(), Context.parse("none"))
