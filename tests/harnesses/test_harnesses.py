"""The suites in other harnesses, each with the real package in an environment of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prbench import evaluate
from prbench.data import write_pairs
from prbench.errors import ConfigError
from prbench.harnesses import shown_pairs
from prbench.models.python import wrap
from small_suite import follows_posts, mirrored

HERE = Path(__file__).parent


@pytest.fixture
def suite(tmp_path):
    write_pairs(mirrored(), tmp_path / "pairs.jsonl")
    return tmp_path / "pairs.jsonl"


def judge(question, first, second, posts):
    """As the judge of `inspect_judge.py`: follows the posts, and is silent on chess."""
    if "chess" in question:
        return None
    one, two = (follows_posts(question, text, posts) for text in (first, second))
    return "first" if one > two else "second" if one < two else "tie"


def ask(variable, package, target, script, *arguments):
    """Run a script beside this file with the Python of an environment that has a package; else skip."""
    python = os.environ.get(variable, sys.executable)
    installed = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if subprocess.run([python, "-c", f"import {package}, prbench"], capture_output=True, env=installed).returncode:
        pytest.skip(f"{package} is not installed beside prbench: make {target}")
    said = subprocess.run(
        [python, HERE / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=Path(arguments[0]).parent,
        env=installed,
    )
    assert said.returncode == 0, said.stderr[-3000:]
    return json.loads(said.stdout.splitlines()[-1])


def test_a_harness_is_shown_what_a_run_shows(suite):
    pairs = {pair.id: pair for pair in mirrored()}
    for context, whose in (("profile", lambda pair: pair.user), ("opposite", lambda pair: _partner(pair.user))):
        shown = shown_pairs(str(suite), context=context)
        assert len(shown) == len(pairs)
        assert all(post.text.startswith(whose(item.pair)) for item in shown for post in item.view.posts)
    assert not any(item.view.posts for item in shown_pairs(str(suite), context="none"))
    limited = shown_pairs(str(suite), context="none", limit=5)
    assert len(limited) == 4  # whole couples
    assert {item.view.first for item in limited} == {item.view.second for item in limited}


def _partner(user):
    return user[:-1] + ("b" if user.endswith("a") else "a")


def test_a_context_that_shows_the_standard_is_refused(suite):
    with pytest.raises(ConfigError, match="does not read what oracle would show"):
        shown_pairs(str(suite), context="oracle")


@pytest.mark.parametrize("context", ["none", "profile"])
def test_inspect_gives_the_accuracy_of_a_run(suite, context, tmp_path):
    found = ask("INSPECT_PYTHON", "inspect_ai", "test-inspect", "inspect_judge.py", suite, context)
    run = evaluate(wrap(judge, "py:judge"), suite, contexts=[context], resamples=100, out=tmp_path / "run")
    accuracy = run.contexts[context].accuracy
    assert found["status"] == "success"
    assert (found["samples"], found["unscored"]) == (72, 12)  # 36 pairs in both orders, 6 of them on chess
    assert found["accuracy"] == pytest.approx(accuracy.value)
    assert accuracy.value == (1.0 if context == "profile" else 0.5)


def test_lm_eval_gives_the_accuracy_of_a_run(suite):
    found = ask("LM_EVAL_PYTHON", "lm_eval", "test-lm-eval", "lm_eval_model.py", suite)
    assert set(found) == {"prbench_none", "prbench_profile", "prbench_other"}
    assert found["prbench_profile"] == {"acc": 1.0, "n": 36}
    assert found["prbench_none"] == {"acc": 0.5, "n": 36}  # all ties: one half of each couple, by the order of texts
    assert found["prbench_other"]["n"] == 36
