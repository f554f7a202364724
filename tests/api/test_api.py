"""The Python door."""

import os
import subprocess
import sys

import pytest

import prbench
import tiny_models
from pair_factory import make_pair
from prbench import Post, calibrate, evaluate, evaluate_personalized_reward
from prbench.api.reward import FILE, Scale
from prbench.data import Suite, write_pairs
from prbench.errors import ConfigError, ModelError
from prbench.files import read_model
from prbench.models.local.hf import live
from prbench.models.personal import shipped_folder
from small_suite import Spy, SpyComparer, follows_posts, mirrored


def test_the_door_is_pinned():
    assert prbench.__all__ == [
        "AnswerView",
        "Aspect",
        "Comparer",
        "Estimate",
        "Evaluation",
        "Generator",
        "Judgment",
        "ListView",
        "Message",
        "ModelCard",
        "ModelOptions",
        "Outcome",
        "Pair",
        "PairView",
        "PersonalRewardCallback",
        "PersonalizedReward",
        "Post",
        "PrbenchError",
        "Prompt",
        "Rater",
        "Result",
        "Scale",
        "Suite",
        "__version__",
        "calibrate",
        "compare",
        "evaluate",
        "evaluate_personalized_reward",
        "load_model",
        "load_pairs",
        "load_questions",
        "suites",
    ]
    assert all(hasattr(prbench, name) for name in prbench.__all__)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        _ = prbench.evaluat


def test_import_is_light():
    code = "import sys, prbench; print(sorted({'numpy', 'pydantic', 'torch'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def accuracy(model, context="profile"):
    found = evaluate(model, mirrored(), contexts=[context], resamples=100)
    return found.contexts[context].accuracy.value


def test_models_of_every_shape():
    assert accuracy(follows_posts) == 1.0
    assert accuracy(Spy()) == 1.0
    assert accuracy(SpyComparer()) == 1.0
    assert accuracy(Spy) == 1.0  # a class is called without arguments
    assert accuracy(lambda view: follows_posts(view.question, view.answer, view.posts)) == 1.0
    assert accuracy("longer", "none") == 0.5


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (42, "42 is not a model"),
        (lambda question, reply: 1.0, "parameter 'reply' that no view has"),
        (lambda question: 1.0, "no parameter 'answer'"),
        (lambda question, first: "first", "no parameter 'second'"),
    ],
)
def test_what_is_not_a_model_is_said(thing, message):
    with pytest.raises(ModelError, match=message):
        evaluate(thing, mirrored())


def test_a_bad_verdict_or_score_is_invalid():
    for model in (lambda question, first, second: "A", lambda question, answer: "high"):
        found = evaluate(model, mirrored(couples=2, questions=1), contexts=["none"])
        assert {record.status for record in found.records} == {"invalid"}
        assert "returned" in found.records[0].reason


def test_a_real_classifier_end_to_end_with_and_without_a_profile(tiny_reward_model, tmp_path):
    write_pairs(mirrored(), tmp_path / "pairs.jsonl")
    command = [sys.executable, "-m", "prbench", "run", "--suite", "pairs.jsonl", "--model", f"hf:{tiny_reward_model}"]
    arguments = ["--context", "none,profile,other,oracle", "-o", "run", "--resamples", "100"]
    done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the true rubric (leaks)" in done.stdout
    found = evaluate(
        f"hf:{tiny_reward_model}",
        tmp_path / "pairs.jsonl",
        contexts=["none", "profile", "other", "oracle"],
        resamples=100,
    )
    records = {(record.pair, record.context): record for record in found.records}
    pair = mirrored()[0].id
    scores = {context: records[pair, context].chosen_score for context in ("none", "profile", "other", "oracle")}
    assert len(set(scores.values())) == 4  # what is shown of the user changes the score
    assert found.contexts["none"].accuracy.value == 0.5
    dry = subprocess.run([*command, "--dry-run"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "prompt tokens (counted)" in dry.stdout


PROFILE = [Post(id="1", text="I was glad of the red tea"), "red boots for me", {"text": "red bread"}]


def test_reward_of_one_output_needs_a_scale(tiny_reward_model, tmp_path):
    address = f"hf:{tiny_models.save_reward_model(tmp_path / 'model')}"
    with pytest.raises(ModelError, match="is not calibrated"):
        evaluate_personalized_reward("Get the red tea.", PROFILE, 0.8, model=address)
    scale = calibrate(address, mirrored(), split="test")
    assert (tmp_path / "model" / FILE).is_file()
    assert scale.n == 72
    found = evaluate_personalized_reward("Get the red tea.", PROFILE, 0.8, model=address, question="Which tea?")
    assert 0 < found["predicted_reward"] < 1
    assert found["alignment_score"] == max(0.0, 1 - abs(found["predicted_reward"] - 0.8))
    stated = evaluate_personalized_reward("Get the red tea.", {"colour": ["blue", "green"]}, 0.8, model=address)
    assert stated["predicted_reward"] != found["predicted_reward"]
    os.utime(tmp_path / "model" / "config.json")
    again = evaluate_personalized_reward("Get the red tea.", PROFILE, 0.8, model=address, question="Which tea?")
    assert again == found


def test_a_scale_of_other_weights_is_refused(tmp_path):
    address = f"hf:{tiny_models.save_reward_model(tmp_path / 'model')}"
    calibrate(address, mirrored(), split="test")
    saved = (tmp_path / "model" / FILE).read_text()
    (tmp_path / "model" / FILE).write_text(saved.replace('"identity": "', '"identity": "other'))
    with pytest.raises(ModelError, match="has changed since it was calibrated"):
        evaluate_personalized_reward("Get the red tea.", PROFILE, 0.8, model=address)


def test_rewards_refuse_what_gives_none():
    scale = Scale(model="x", identity="", mean=0.0, spread=1.0, n=4, suite="")
    with pytest.raises(ConfigError, match="human_preference_score is 7"):
        evaluate_personalized_reward("x", PROFILE, 7, model=Spy(), scale=scale)
    with pytest.raises(ModelError, match="compares answers"):
        evaluate_personalized_reward("x", PROFILE, 0.5, model=SpyComparer(), scale=scale)
    with pytest.raises(ModelError, match="does not read a profile"):
        evaluate_personalized_reward("x", PROFILE, 0.5, model="longer", scale=scale)
    with pytest.raises(ModelError, match="gave no score"):
        evaluate_personalized_reward("x", PROFILE, 0.5, model=lambda answer, posts: float("inf"), scale=scale)
    with pytest.raises(ModelError, match="there is no scale"):
        calibrate(lambda answer, posts: 1.0, mirrored(), split="test")


def test_the_callback_measures_a_model_in_training(tiny_reward_model, tmp_path):
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        Trainer,
        TrainingArguments,
        default_data_collator,
    )

    from prbench import PersonalRewardCallback

    model = AutoModelForSequenceClassification.from_pretrained(tiny_reward_model)
    tokenizer = AutoTokenizer.from_pretrained(tiny_reward_model)
    row = {"input_ids": [1, 2, 3, 4], "attention_mask": [1, 1, 1, 1], "labels": 0.5}
    callback = PersonalRewardCallback(Suite.of(mirrored()), split="test", contexts=("none", "profile"))
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=1,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            save_strategy="no",
            dataloader_pin_memory=False,
            per_device_train_batch_size=1,
            per_device_eval_batch_size=1,
        ),
        train_dataset=[row, row],
        eval_dataset=[row],
        processing_class=tokenizer,
        data_collator=default_data_collator,
        callbacks=[callback],
    )
    metrics = trainer.evaluate()
    assert metrics["eval_prbench_none_accuracy"] == 0.5
    assert 0.0 <= metrics["eval_prbench_profile_accuracy"] <= 1.0
    assert any("eval_prbench_gain" in entry for entry in trainer.state.log_history)
    model.train()
    callback.measure(model, tokenizer)
    assert model.training


def test_a_live_classifier_scores_like_a_saved_one(tiny_reward_model):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(tiny_reward_model).eval()
    rater = live(model, AutoTokenizer.from_pretrained(tiny_reward_model), prbench.ModelOptions())
    assert rater.card.reusable is False
    pairs = mirrored(couples=2, questions=2)
    one, two = (evaluate(m, pairs, contexts=["profile"]).records for m in (rater, f"hf:{tiny_reward_model}"))
    for a, b in zip(one, two, strict=True):
        assert a.chosen_score == pytest.approx(b.chosen_score, abs=1e-4)


def test_pairs_in_memory_need_no_split():
    pair = make_pair(rejected="Black tea.")
    found = evaluate("shorter", [pair], contexts=["none"])
    assert found.contexts["none"].accuracy.value == 1.0


def test_an_implicit_reward_end_to_end(tiny_policy, tiny_reference):
    found = evaluate(f"dpo:{tiny_policy},{tiny_reference}", mirrored(couples=2, questions=2), contexts="none,profile")
    assert found.contexts["none"].accuracy.value == 0.5
    assert {record.status for record in found.records} == {"ok"}


def test_posts_that_fit_are_shown_whatever_the_chat_template_adds(tiny_reward_model):
    pair = mirrored()[0]
    many = tuple(Post(id=f"p{i}", text=f"short post number {i}") for i in range(60))
    pair = pair.model_copy(update={"profile": many, "tags": {}})
    model = prbench.load_model(f"hf:{tiny_reward_model}")
    whole = model.length(model.render(prbench.AnswerView(pair.question, pair.chosen, many, (), pair.user)))
    for share in (0.25, 0.5, 0.9):
        window = int(whole * share)
        narrow = prbench.load_model(f"hf:{tiny_reward_model}", prbench.ModelOptions(window=window))
        (record,) = evaluate(narrow, [pair], contexts="profile", cache=False).records
        assert record.posts >= int(60 * share) - 6
        assert record.posts + len(record.dropped) == 60


def test_profiles_of_one_text_or_none():
    scale = Scale(model="x", identity="", mean=0.0, spread=1.0, n=4, suite="")
    seen = []

    def spy(answer, posts):
        seen.append(posts)
        return 0.0

    evaluate_personalized_reward("x", "I like tea", 0.9, model=spy, scale=scale)
    assert [post.text for post in seen[0]] == ["I like tea"]
    with pytest.raises(ConfigError, match="user_profile is empty"):
        evaluate_personalized_reward("x", [], 0.5, model=spy, scale=scale)
    for profile, told in (("", "post 1"), (["a", " "], "post 2"), ([1], "post 1"), (None, "user_profile is None")):
        with pytest.raises(ConfigError, match=told):
            evaluate_personalized_reward("x", profile, 0.5, model=spy, scale=scale)
    with pytest.raises(ConfigError, match="model_output is 5, not a text"):
        evaluate_personalized_reward(5, ["a"], 0.5, model=spy, scale=scale)
    found = evaluate_personalized_reward("x", ["a"], 0.9, model=spy, scale=scale)
    assert (found["predicted_reward"], found["alignment_score"]) == (0.5, pytest.approx(0.6))
    assert evaluate_personalized_reward("x", ["a"], 0.1, model=spy, scale=scale)["alignment_score"] == pytest.approx(
        0.6
    )


def test_the_scale_of_the_reference_model_ships_and_fits_it():
    folder = shipped_folder("personal:reference")
    scale = read_model(folder / FILE, Scale, raises=ModelError)
    assert (scale.model, scale.n > 1000, scale.spread > 0) == ("personal:reference", True, True)
    assert 0.3 < scale.reward(scale.mean + 0.1) < 0.7


def test_an_empty_output_is_refused():
    with pytest.raises(ConfigError, match="model_output is empty"):
        evaluate_personalized_reward(" \n", PROFILE, 0.5, model=Spy())
