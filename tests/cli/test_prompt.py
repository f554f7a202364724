"""`prbench prompt` prints what a run would send, word for word."""

import json

import pytest
from typer.testing import CliRunner

from prbench.cli import app
from prbench.data import write_pairs
from prbench.errors import ConfigError
from small_suite import mirrored

MODEL = """
from prbench import ModelCard
from small_suite import Spy, SpyComparer

tight = Spy(window=30)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_pairs(mirrored(), tmp_path / "pairs.jsonl")
    (tmp_path / "prompt_models.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def prompt(*arguments, json_wanted=True):
    extra = ["--format", "json"] if json_wanted else []
    found = CliRunner().invoke(app, ["prompt", "--suite", "pairs.jsonl", *arguments, *extra], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return json.loads(found.output) if json_wanted else found.output


def test_a_rater_gets_a_prompt_for_each_answer(folder, tiny_reward_model):
    shown = prompt("u0a:tea", "-m", f"hf:{tiny_reward_model}")
    chosen, rejected = shown["prompts"]
    assert [message["role"] for message in chosen["messages"]] == ["user", "assistant"]
    assert chosen["messages"][1]["content"] == "Get the blue tea."
    assert rejected["messages"][1]["content"] == "Get the red tea."
    assert "u0a post 0" in chosen["messages"][0]["content"]
    assert (chosen["tokens_counted"], shown["posts_shown"], shown["window"]) == (True, ["u0a-0", "u0a-1", "u0a-2"], 512)
    raw = prompt("u0a:tea", "-m", f"hf:{tiny_reward_model}", "--raw")["prompts"][0]
    assert raw["text"].startswith("<s><|user|>Some things I wrote before:")
    assert raw["tokens"] == chosen["tokens"]


def test_a_pair_may_be_given_by_number_and_another_user_is_named(folder):
    shown = prompt("1", "-m", "py:prompt_models:Spy", "-c", "other")
    assert shown["pair"] == "u0a:tea"
    assert shown["shown_user"] != "u0a"
    assert shown["prompts"][0]["tokens_counted"] is False


def test_a_comparer_is_shown_the_order_that_is_asked_for(folder):
    first, second = (
        prompt("u0a:tea", "-m", "py:prompt_models:SpyComparer", "--order", order)["prompts"][0]["messages"]
        for order in ("chosen-first", "chosen-second")
    )
    assert [message["content"] for message in first[-2:]] == ["Get the blue tea.", "Get the red tea."]
    assert first[-2:] == second[:-3:-1]


def test_what_was_left_out_is_named(folder):
    text = prompt("u0a:tea", "-m", "py:prompt_models:tight", json_wanted=False)
    assert "left out to fit the window: u0a-" in text
    assert "=== the chosen answer: about " in text


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (["u0a:tee", "-m", "longer", "-c", "none"], ConfigError, "did you mean 'u0a:tea'"),
        (["99", "-m", "longer", "-c", "none"], ConfigError, "numbers go from 1 to 36"),
        (["1", "-m", "longer", "-c", "profile"], ConfigError, "does not read what profile"),
        (["1", "-m", "longer", "-c", "none", "--raw"], ConfigError, "no tokenizer here"),
    ],
)
def test_what_cannot_be_shown_says_why(folder, arguments, error, says):
    with pytest.raises(error, match=says):
        prompt(*arguments)
