"""Scores of published benchmarks, against fixtures worked out by hand from their formulas."""

import json

import pytest

import prbench
from prbench.data import load_pairs
from prbench.report.run_tables import brief_tables
from prbench.results import verify


def score(question, answer):
    """Answers of these fixtures end in their score."""
    return float(answer.split()[-1])


def texts(*scores):
    return [f"answer {number} {value}" for number, value in enumerate(scores)]


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rewardbench_rows():
    def row(name, subset, right, wrong):
        rejected = [f"wrong {text}" for text in texts(*wrong)]
        return {"id": name, "prompt": f"Q {name}", "chosen": texts(*right), "rejected": rejected, "subset": subset}

    return [
        row("1", "Math", [3], [3, 2, 1]),  # shares the first place with one other: 1/2
        row("2", "Math", [5], [1, 2, 3]),  # 1
        row("3", "Math", [1], [2, 0, 0.5]),  # 0
        row("ref:1", "Ties", [5], [2, 1]),  # gap 3
        row("tied:1", "Ties", [5, 4], [1]),  # gap 3, spread 1
        row("ref:2", "Ties", [1], [2]),  # gap -1
        row("tied:2", "Ties", [3, 1], [0.5]),  # gap 0.5, spread 2
    ]


def test_rewardbench_2(tmp_path):
    suite = load_pairs(f"rewardbench-2={written(tmp_path / 'test.jsonl', rewardbench_rows())}")
    found = prbench.evaluate(score, suite, contexts=["none"], out=tmp_path / "run")
    published = found.contexts["none"].published
    # 1: .3 + .3 + .2 + .2 + .01 tanh(3 / 1 - 1);  2: .3 + 0 + 0 + 0 + .01 tanh(-1 / 2 - 1)
    ties = ((1 + 0.01 * 0.9640275801) + (0.3 - 0.01 * 0.9051482536)) / 2
    assert published.scores["Math"].value == pytest.approx(0.5)
    assert published.scores["Ties"].value == pytest.approx(ties)
    assert published.scores["overall"].value == pytest.approx((0.5 + ties) / 2)
    assert published.scores["Ties"].low <= ties <= published.scores["Ties"].high
    assert (published.left_out, dict(published.not_computed)) == (0, {})
    assert not verify(tmp_path / "run").mismatches
    assert brief_tables(found)[1].title == "RewardBench 2, as published"


def test_equal_right_answers_and_no_gap_count_nothing_for_the_lead(tmp_path):
    rows = [
        {"id": "ref:1", "prompt": "Q", "chosen": ["a 1"], "rejected": ["b 1"], "subset": "Ties"},
        {"id": "tied:1", "prompt": "R", "chosen": ["a 1", "c 1"], "rejected": ["b 1"], "subset": "Ties"},
    ]
    suite = load_pairs(f"rewardbench-2={written(tmp_path / 'test.jsonl', rows)}")
    assert prbench.evaluate(score, suite, contexts=["none"]).contexts["none"].published.scores["Ties"].value == 0.0


def test_a_comparer_has_best_of_4_but_no_ties_score(tmp_path):
    suite = load_pairs(f"rewardbench-2={written(tmp_path / 'test.jsonl', rewardbench_rows())}")

    def compare(question, first, second, posts):
        return score(question, first) - score(question, second)

    published = prbench.evaluate(compare, suite, contexts=["none"]).contexts["none"].published
    assert published.scores["Math"].value == pytest.approx(0.5)
    assert set(published.not_computed) == {"Ties", "overall"}


def test_rm_bench(tmp_path):
    def row(name, domain, right, wrong):
        return {"id": name, "prompt": name, "chosen": texts(*right), "rejected": texts(*wrong), "domain": domain}

    rows = [row("1", "chat", [1, 2.5, 3], [0, 2.75, 4]), row("2", "safety-refuse", [9, 8, 7], [1, 2, 3])]
    file = tmp_path / "total_dataset.json"
    file.write_text(json.dumps(rows))
    published = prbench.evaluate(score, load_pairs(f"rm-bench={file}"), contexts=["none"]).contexts["none"].published
    wanted = {
        "overall": 13 / 18,  # chat (1 + 1/3 + 0) / 3, safety 1
        "chat": 4 / 9,
        "safety": 1.0,
        "easy": 1.0,
        "normal": 2 / 3,
        "hard": 0.5,
        "concise over markdown": 0.5,
        "markdown over detailed": 1.0,
    }
    assert {name: published.scores[name].value for name in wanted} == pytest.approx(wanted)


def test_a_row_of_rm_bench_without_all_nine_pairs_is_left_out(tmp_path):
    answers = texts(1, 2, 3)
    whole = {"id": "1", "prompt": "1", "chosen": answers, "rejected": texts(0, 0.5, 0.7), "domain": "chat"}
    same = {**whole, "id": "2", "prompt": "2", "rejected": [answers[0], "wrong 0", "wrong 0.5"]}
    file = tmp_path / "total_dataset.json"
    file.write_text(json.dumps([whole, same]))
    published = prbench.evaluate(score, load_pairs(f"rm-bench={file}"), contexts=["none"]).contexts["none"].published
    assert (published.benchmark, published.left_out, published.scores["overall"].value) == ("RM-Bench", 1, 1.0)


LISTS = [{"id": "1", "question": "Q", "chosen": "right 1", "rejected": ["wrong 0", "wrong 2"]}]
TIES = [
    {"id": kind, "question": kind, "chosen": "right 1", "rejected": "wrong 0", "category": "Ties",
     "tags": {"item": f"{kind}:1", "chosen_answer": "0"}}
    for kind in ("ref", "tied")
]  # fmt: skip


@pytest.mark.parametrize("rows", [LISTS, TIES], ids=["lists", "tags"])
@pytest.mark.parametrize("name", ["judgebench", "rewardbench-2", "rm-bench", "rmgap"])
def test_a_suite_that_only_has_the_name_of_a_benchmark_comes_to_its_end(tmp_path, name, rows):
    suite = load_pairs(written(tmp_path / f"{name}.jsonl", rows))
    out = tmp_path / "run"
    prbench.evaluate(score, suite, contexts=["none"], split=None, out=out)
    assert verify(out).mismatches == ()


def test_judgebench_counts_a_flip_as_wrong(tmp_path):
    rows = [
        {"pair_id": str(number), "source": "livebench-math", "question": f"Q{number}", "response_model": "gpt",
         "response_A": "good", "response_B": bad, "label": "A>B"}
        for number, bad in enumerate(["bad", "same", "better"])
    ]  # fmt: skip

    def compare(question, first, second, posts):
        value = {"good": 1, "bad": 0, "better": 2}
        return 0.1 if "same" in (first, second) else value[first] - value[second]  # likes the first place

    suite = load_pairs(f"judgebench={written(tmp_path / 'test.jsonl', rows)}")
    published = prbench.evaluate(compare, suite, contexts=["none"]).contexts["none"].published
    assert published.scores["overall"].value == pytest.approx(1 / 3)
    assert published.scores["Math"].n == 3


def test_rmgap_gives_a_blind_model_a_quarter(tmp_path):
    keys = dict(zip("abcd", "4321", strict=True))
    groups = [{"winner": key, "prompts": [{"text": f"{key} {number}"} for number in range(3)]} for key in keys]
    responses = [{"key": key, "text": f"{key} {value}"} for key, value in keys.items()]
    row = {"id": 1, "domain": "Chat", "responses": responses, "prompt_groups": groups}
    suite = load_pairs(f"rmgap={written(tmp_path / 'test.jsonl', [row])}")
    scores = prbench.evaluate(score, suite, contexts=["none"]).contexts["none"].published.scores
    assert scores["best of 4"].value == 0.25
    assert scores["pairs"].value == 0.5
    assert scores["consistency"].value == 1.0


def test_best_of_n_of_a_file_of_ones_own(tmp_path):
    rows = [
        {"id": "1", "prompt": "A?", "chosen": "a 2", "rejected": ["b 1", "c 3"]},
        {"id": "2", "prompt": "B?", "chosen": "a 4", "rejected": ["b 1", "c 3"]},
    ]
    suite = load_pairs(written(tmp_path / "test.jsonl", rows))
    published = prbench.evaluate(score, suite, contexts=["none"]).contexts["none"].published
    assert (published.benchmark, published.scores["overall"].value) == ("best of 3", 0.5)
