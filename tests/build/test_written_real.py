"""The whole chain with a real small model behind a real server on loopback: posts in, an audited suite out.

SmolLM2 (135 million weights) writes poorly, and much of it is rightly rejected. What is tested is that every step runs,
that nothing is lost without being counted, and that what is published loads and can be audited.
"""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from language_model_server import serve
from prbench.cli import app
from prbench.data import load_pairs, load_questions
from prbench.models import load_generator
from real_weights import real_model

POSTS = {
    "ann": [
        "I bake bread on Sundays and sell two loaves to my neighbours.",
        "I have only twenty euros to spend. My two small children come along. "
        "Should I take the bus or the train to the lake?",
    ],
    "bob": [
        "My team works late, so we order dinner to the office three times a week.",
        "I sleep badly and feel it the next day. My doctor warned me about my heart. "
        "Should I drink tea or coffee in the evening?",
    ],
}
PATIENT = ["--timeout", "900", "--retries", "0", "--concurrency", "2", "-q"]


def run(*command: object, codes: tuple[int, ...] = (0,)) -> str:
    result = CliRunner().invoke(app, [str(part) for part in command], catch_exceptions=False)
    assert result.exit_code in codes, result.output
    return result.stdout


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_from_posts_to_an_audited_suite_with_a_real_model(tmp_path):
    history = tmp_path / "posts.jsonl"
    history.write_text(
        "".join(json.dumps({"user": user, "text": text}) + "\n" for user in POSTS for text in POSTS[user])
    )
    aspects, suite = tmp_path / "aspects.jsonl", tmp_path / "suite"
    with serve(load_generator(f"lm:{real_model('smollm2')}")) as server:
        model = ["--model", f"chat:smollm2@{server.url}", *PATIENT]
        run("build", "aspects", history, "-o", aspects, "--by-sentence", "--max-tokens", 40, *model)
        questions = load_questions(aspects)
        card = json.loads((tmp_path / "aspects.card.json").read_text())
        assert card["questions"] == 2 == len(questions) + len(rows(tmp_path / "aspects.rejects.jsonl"))
        assert card["spent"]["tokens_out"] > 0
        assert questions, rows(tmp_path / "aspects.rejects.jsonl")
        for question in questions:
            assert all(aspect.evidence in question.narrative for aspect in question.rubric_aspects)
        sampling = ["--temperature", 0.7, "--tries", 4, "--max-tokens", 130]
        lenient = [*sampling, "--gate", "length-ratio=50", "--gate", "near-duplicates=1"]
        run("build", "pairs", aspects, "-o", suite, *lenient, *model)
        pairs = load_pairs(suite)
        rejects = rows(suite / "rejects.jsonl")
        assert {pair.id for pair in pairs} | {row["id"] for row in rejects} == {question.id for question in questions}
        assert len(pairs) + len(rejects) == len(questions)
        assert all(row["reason"] for row in rejects)
        asked = len(server.requests)
        run("build", "pairs", aspects, "-o", suite, *lenient, *model)
        assert len(server.requests) == asked
    audited = json.loads(run("audit", suite, "--format", "json", codes=(0, 1)))
    assert audited
    told = json.loads(
        run(
            "run", "--suite", suite, "--model", "longer", "-c", "none", "-o", tmp_path / "run", "--format", "json", "-q"
        )
    )
    assert told["result"]["contexts"]["none"]["pairs"] == len(pairs)
