"""Stress tests: changes that should not matter, on models whose weakness is known."""

import json

import pytest
from typer.testing import CliRunner

from pair_factory import make_pair
from prbench.cli import app
from prbench.config import RunConfig
from prbench.data import Suite, load_pairs
from prbench.errors import BudgetError, ConfigError
from prbench.models.python import wrap
from prbench.stress import CHANGES, read_paraphrases, stress, stress_tables
from prbench.stress.changes import make_changes, retype, strip_markdown, swap_names
from prbench.types import Post


def pairs(count=12):
    posts = tuple(Post(id=str(n), text=f"Post {n} about Ruth.") for n in range(6))
    return [
        make_pair(
            id=str(n),
            user=f"u{n % 4}",
            question=f"Question {n}?",
            profile=posts,
            chosen=f"**Good** answer {n}, said Tom. Fine.",
            rejected=f"Bad answer {n}. Fine.",
        )
        for n in range(count)
    ]


def stressed(function, tmp_path, contexts="profile", **settings):
    config = RunConfig.of(suite="own", model="py:x:y", contexts=contexts, split=None)
    paraphrases = {f"Question {n}?": f"Again, question {n}?" for n in range(6)}
    return stress(
        config, tmp_path / "out", model=wrap(function), suite=Suite.of(pairs()), paraphrases=paraphrases, **settings
    )


def values(found):
    return {name: (one.pairs, one.flips.value) for name, one in found.changes.items()}


def test_a_model_that_likes_markdown_flips_with_it_and_with_nothing_else(tmp_path):
    def likes_bold(question, answer, posts):
        return float("**" in answer)

    found = stressed(likes_bold, tmp_path)
    assert found.accuracy.value == 1.0
    assert values(found) == {
        "markdown": (12, 0.5),  # from a win to a tie
        "typography": (12, 0.0),
        "posts": (12, 0.0),
        "names": (12, 0.0),
        "question": (6, 0.0),
        "again": (12, 0.0),
    }
    assert found.changes["markdown"].difference.value == -0.5
    assert json.loads((tmp_path / "out" / "stress.json").read_text())["changes"]["markdown"]["flips"]["n"] == 12
    [table] = stress_tables(found)
    assert [row[0] for row in table.rows] == list(CHANGES)


def in_order(question, answer, posts):
    texts = [getattr(post, "text", post) for post in posts]
    return float("Good" in answer) * (1 if texts == sorted(texts) else -1)


@pytest.mark.parametrize(
    ("function", "change", "pairs_changed"),
    [
        (lambda question, answer, posts: float("Good" in answer) * (1 if "  " not in answer else -1), "typography", 12),
        (in_order, "posts", 12),
        (lambda question, answer, posts: float("Tom" in answer) - float("Ben" in answer), "names", 12),
        (lambda question, answer, posts: float("Good" in answer) * (-1 if "Again" in question else 1), "question", 6),
    ],
)  # fmt: skip
def test_each_change_reaches_the_model(tmp_path, function, change, pairs_changed):
    found = stressed(function, tmp_path, changes=[change])
    assert values(found) == {change: (pairs_changed, 1.0)}
    assert found.changes[change].difference.value == -1.0


def test_asking_again_meets_a_model_that_samples(tmp_path):
    seen = []

    def fickle(question, answer, posts):
        seen.append(answer)
        return len(seen) if len(seen) <= 24 else -len(seen)

    found = stressed(fickle, tmp_path, changes=["again"])
    assert len(seen) == 48
    assert found.changes["again"].flips.value == 1.0


def test_what_the_model_is_not_shown_does_not_count(tmp_path):
    found = stressed(lambda question, answer: len(answer), tmp_path, contexts="none", changes=["posts", "again"])
    assert found.changes["posts"].pairs == 0
    assert found.changes["posts"].flips.value is None


SEEN = []


def watched(question, answer, posts):
    SEEN.append(answer)
    return len(answer)


def test_a_finished_stress_test_asks_nothing(tmp_path):
    SEEN.clear()
    first = stressed(watched, tmp_path)
    asked = len(SEEN)
    assert values(stressed(watched, tmp_path)) == values(first)
    assert len(SEEN) == asked


def test_bad_input_is_refused_before_the_first_call(tmp_path):
    def never(question, answer, posts):
        raise AssertionError

    with pytest.raises(ConfigError, match="unknown change 'marcdown'") as caught:
        stressed(never, tmp_path, changes=["marcdown"])
    assert "markdown" in caught.value.hint
    with pytest.raises(ConfigError, match="one context"):
        stressed(never, tmp_path, contexts="none,profile")
    with pytest.raises(ConfigError, match="has anything to change for posts"):
        stressed(never, tmp_path, contexts="none", changes=["posts"])
    with pytest.raises(BudgetError, match="price is not known"):
        stressed(never, tmp_path, max_cost_usd=1.0)


def test_every_question_of_the_embedded_test_split_is_paraphrased_with_its_numbers():
    import re

    said = read_paraphrases()
    questions = {pair.question for pair in load_pairs("mirror", split="test")}
    assert questions <= set(said)
    for question in questions:
        assert said[question] != question
        assert sorted(re.findall(r"\d+", question)) == sorted(re.findall(r"\d+", said[question]))


def test_changes_keep_mirror_images():
    suite = load_pairs("mirror", split="test").limit(60)
    for change in make_changes(read_paraphrases()).values():
        changed = [change.apply(pair) or pair for pair in suite]
        assert Suite.of(changed).is_mirrored, change.name


def test_texts():
    assert strip_markdown("plain * text_with_marks 2. x") == "plain * text_with_marks 2. x"
    assert retype(retype('"a" it\'s b. C.')).count("’") == 0
    assert swap_names("Benjamin and Tomorrow") == "Benjamin and Tomorrow"


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(app, ["stress", "longer", "--limit", "20", "-o", str(tmp_path / "s"), "-q"])
    assert done.exit_code == 0, done.output
    assert "verdicts changed" in done.stdout
    assert "paraphrased" in done.stdout
