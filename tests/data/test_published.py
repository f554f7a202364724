"""Published datasets from small local copies in the layouts in which they are published."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prbench.data import load_pairs, load_questions
from prbench.errors import DataError

TABLES = {
    "Art": "Art_and_Entertainment",
    "Lifestyle": "Lifestyle_and_Personal_Development",
    "Society": "Society_and_Culture",
}


def parquet(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def paper_row(name, table, **answers):
    return {
        "id": name,
        "question": f"What of {name}?",
        "profile": [{"id": f"{name}-p", "category": "x", "text": f"I wrote {name}."}],
        "rubric_aspects": [{"aspect": "brevity", "evidence": "e", "reason": "r"}],
        "narrative": "hidden",
        "category": table,
        **answers,
    }


def notes(suite):
    return " | ".join(suite.record.notes)


@pytest.fixture
def prb(tmp_path):
    for short, table in TABLES.items():
        rows = [paper_row(f"{short}{n}", table, chosen=f"good {n}", rejected=f"bad {n}") for n in range(2)]
        parquet(tmp_path / table / "test-00000-of-00001.parquet", rows)
    return tmp_path


def test_prb(prb):
    suite = load_pairs(f"prb={prb}")
    assert suite.record.counts.model_dump() == {"pairs": 6, "users": 6, "questions": 6, "categories": 3}
    assert suite.record.splits == {"test": 6}
    assert suite.record.derived_users
    assert (suite.record.name, suite.record.source) == ("prb", f"prb={prb}")
    assert suite[0].rubric_aspects[0].aspect == "brevity"


def test_a_part_of_prb(prb):
    suite = load_pairs(f"prb/Society={prb}")
    assert [pair.id for pair in suite] == ["Society0", "Society1"]
    assert suite.record.name == "prb/Society"


def test_a_table_that_is_not_in_the_copy(prb):
    (prb / TABLES["Art"] / "test-00000-of-00001.parquet").unlink()
    with pytest.raises(DataError, match="no table 'Art_and_Entertainment'") as caught:
        load_pairs(f"prb={prb}")
    assert "Lifestyle_and_Personal_Development/test-00000-of-00001.parquet" in caught.value.message
    assert "Art_and_Entertainment/test.parquet" in caught.value.hint


@pytest.mark.parametrize(
    "layout", ["{table}/{split}.jsonl", "data/{table}/{split}-00000-of-00001.jsonl", "{table}_{split}.jsonl"]
)
def test_lamp_qa(tmp_path, layout):
    for short, table in TABLES.items():
        for split in ("train", "validation", "test"):
            jsonl(tmp_path / layout.format(table=table, split=split), [paper_row(f"{short}-{split}", None)])
    questions = load_questions(f"lamp-qa={tmp_path}")
    assert len(questions) == 9
    assert {question.category for question in questions} == set(TABLES.values())
    assert [question.id for question in load_questions(f"lamp-qa/Art={tmp_path}", split="validation")] == [
        "Art-validation"
    ]


def test_the_hubs_own_parquet_conversion(tmp_path):
    for split in ("train", "test"):
        parquet(tmp_path / TABLES["Art"] / split / "0000.parquet", [paper_row(split, "Art")])
    assert {q.id: q.tags["split"] for q in load_questions(f"lamp-qa/Art={tmp_path}")} == {
        "train": "train",
        "test": "test",
    }


def utterance(name, user, conversation, prompt, answer, *, chosen=False, score=50, turn=0):
    return {
        "utterance_id": name,
        "interaction_id": f"{conversation}-{turn}",
        "conversation_id": conversation,
        "user_id": user,
        "turn": turn,
        "within_turn_id": 0,
        "included_in_balanced_subset": True,
        "user_prompt": prompt,
        "model_response": answer,
        "model_name": "m",
        "score": score,
        "if_chosen": chosen,
    }


@pytest.fixture
def prism(tmp_path):
    survey = [
        {"user_id": "ann", "self_description": "I teach.", "system_string": "Be kind.", "age": "30"},
        {"user_id": "bob", "self_description": None, "system_string": "", "age": "40"},
    ]
    utterances = [
        utterance("u1", "ann", "c1", "Tea?", "Green.", chosen=True, score=90),
        utterance("u2", "ann", "c1", "Tea?", "Black.", score=40),
        utterance("u3", "ann", "c1", "Tea?", "Red.", score=90),
        utterance("u4", "ann", "c1", "Tea?", "", score=10),
        utterance("u5", "ann", "c1", "More?", "Yes.", chosen=True, turn=1),
        utterance("u6", "ann", "c1", "More?", "No.", turn=1),
        utterance("u7", "ann", "c2", "Coffee?", "No.", chosen=True, score=60),
        utterance("u8", "ann", "c2", "Coffee?", "Yes.", score=20),
        utterance("u9", "ann", "c3", "Tea?", "None chosen.", score=20),
        utterance("u10", "bob", "c4", "Milk?", "Yes.", chosen=True, score=60),
        utterance("u11", "bob", "c4", "Milk?", "No.", score=None),
    ]
    jsonl(tmp_path / "survey.jsonl", survey)
    jsonl(tmp_path / "utterances.jsonl", utterances)
    jsonl(tmp_path / "conversations.jsonl", [{"conversation_id": "c1"}])
    return tmp_path


def test_prism(prism):
    suite = load_pairs(f"prism={prism}")
    assert [(pair.id, pair.user, pair.chosen, pair.rejected) for pair in suite] == [
        ("u1-u2", "ann", "Green.", "Black."),
        ("u7-u8", "ann", "No.", "Yes."),
        ("u10-u11", "bob", "Yes.", "No."),
    ]
    assert not suite.record.derived_users
    assert suite.record.splits == {"train": 3}
    assert "1 ties in score left out" in notes(suite)
    assert "1 pairs with an empty answer left out" in notes(suite)
    assert "1 turns without exactly one chosen answer left out" in notes(suite)


def test_a_prism_profile_is_the_survey_and_other_conversations(prism):
    tea, coffee, milk = load_pairs(f"prism={prism}")
    assert [post.text for post in tea.profile] == ["I teach.", "Be kind.", "Coffee?"]
    assert [post.text for post in coffee.profile] == ["I teach.", "Be kind.", "Tea?", "More?", "Tea?"]
    assert milk.profile == ()


def test_prism_with_a_missing_column_or_table(prism):
    jsonl(prism / "utterances.jsonl", [{"user_id": "ann", "utterance": "u1"}])
    with pytest.raises(DataError, match="line 1: field 'utterance_id' is missing") as caught:
        load_pairs(f"prism={prism}")
    assert "did you mean 'utterance'?" in caught.value.hint
    (prism / "utterances.jsonl").unlink()
    with pytest.raises(DataError, match="no table 'utterances'"):
        load_pairs(f"prism={prism}")


def vote(name, judge, prompt, winner, *, answers=("A.", "B."), turn=1):
    sides = {
        f"conversation_{side}": [{"content": prompt, "role": "user"}, {"content": answer, "role": "assistant"}]
        for side, answer in zip("ab", answers, strict=True)
    }
    row = {"question_id": name, "model_a": "m", "model_b": "n", "winner": winner, "judge": judge, "turn": turn}
    return {**row, **sides, "anony": True, "language": "English", "tstamp": 1.0}


def test_arena(tmp_path):
    votes = [
        vote("1", "ann", "Tea?", "model_a"),
        vote("2", "ann", "Coffee?", "model_b"),
        vote("3", "ann", "Milk?", "tie (bothbad)"),
        vote("4", "ann", "Sugar?", "model_a", turn=2),
        vote("5", "ann", "Tea?", "model_b", answers=("same", "same")),
        vote("6", "bob", "Cake?", "model_a", answers=("", "B.")),
        vote("7", "bob", "Pie?", "model_a"),
    ]
    parquet(tmp_path / "data" / "train-00000-of-00001-cced8514c7ed782a.parquet", votes)
    suite = load_pairs(f"arena={tmp_path}")
    assert [(pair.id, pair.chosen) for pair in suite] == [("1", "A."), ("2", "B."), ("7", "A.")]
    assert [post.text for post in suite[0].profile] == ["Coffee?", "Milk?", "Sugar?"]
    assert [post.text for post in suite[2].profile] == ["Cake?"]
    assert suite[0].tags == {"language": "English", "split": "train"}
    for note in ("1 ties", "1 votes on more than one turn", "1 pairs with an empty answer", "1 pairs of equal answers"):
        assert f"{note} left out" in notes(suite)


def test_rewardbench(tmp_path):
    rows = [
        {
            "id": "10",
            "prompt": "2+2?",
            "chosen": ["4"],
            "rejected": ["5", "6", "4"],
            "subset": "Math",
            "num_correct": 1,
        },
        {
            "id": "ref:1",
            "prompt": "A colour?",
            "chosen": ["red", "blue"],
            "rejected": ["dog"],
            "subset": "Ties",
            "num_correct": 2,
        },
    ]
    parquet(tmp_path / "data" / "test-00000-of-00001.parquet", rows)
    suite = load_pairs(f"rewardbench-2={tmp_path}")
    assert [(pair.id, pair.chosen, pair.rejected, pair.category) for pair in suite] == [
        ("10/0", "4", "5", "Math"),
        ("10/1", "4", "6", "Math"),
        ("ref:1/0/0", "red", "dog", "Ties"),
        ("ref:1/1/0", "blue", "dog", "Ties"),
    ]
    assert suite[0].tags == {"item": "10", "chosen_answer": "0", "rejected_answer": "0", "split": "test"}
    assert suite.record.derived_users
    assert suite.record.counts.users == 2
    assert notes(suite) == "1 pairs of equal answers left out"


def test_rewardbench_of_another_layout(tmp_path):
    parquet(
        tmp_path / "test.parquet", [{"id": "1", "prompt": "2+2?", "chosen": "4", "rejected": ["5"], "subset": "Math"}]
    )
    with pytest.raises(DataError, match="row 1: field 'chosen' is text, expected a list of answers"):
        load_pairs(f"rewardbench-2={tmp_path}")


def test_rm_bench_from_its_file(tmp_path):
    row = {"id": 7, "prompt": "Cat?", "chosen": ["a", "b", "c"], "rejected": ["x", "y", "z"], "domain": "safety-refuse"}
    file = tmp_path / "total_dataset.json"
    file.write_text(json.dumps([row]))
    suite = load_pairs(f"rm-bench={file}", split="test")
    assert len(suite) == 9
    assert (suite[5].id, suite[5].chosen, suite[5].rejected) == ("7/1/2", "b", "z")
    file.write_text(json.dumps([{**row, "chosen": ["a"]}]))
    with pytest.raises(DataError, match="'chosen' has not 3 answers"):
        load_pairs(f"rm-bench={file}")


def test_judgebench(tmp_path):
    row = {
        "pair_id": "p",
        "original_id": "1",
        "source": "mmlu-pro-law",
        "question": "Guilty?",
        "response_model": "gpt-4o-2024-05-13",
        "response_A": "Yes.",
        "response_B": "No.",
        "label": "B>A",
    }
    jsonl(tmp_path / "dataset=judgebench,response_model=gpt-4o-2024-05-13.jsonl", [row])
    [pair] = load_pairs(f"judgebench={tmp_path}")
    assert (pair.chosen, pair.rejected, pair.category) == ("No.", "Yes.", "Knowledge")
    assert pair.tags["split"] == "test"
    jsonl(tmp_path / "dataset=judgebench,response_model=gpt-4o-2024-05-13.jsonl", [{**row, "label": "A=B"}])
    with pytest.raises(DataError, match="'label' is 'A=B'"):
        load_pairs(f"judgebench={tmp_path}")


def test_personal_rewardbench(tmp_path):
    def row(user, split, asked, chosen, rejected):
        return {
            "user_id": user,
            "conversation_id": "c",
            "context": [{"role": "user", "content": asked}],
            "chosen": {"role": "model", "content": chosen},
            "rejected": {"role": "model", "content": rejected},
            "split": split,
        }

    rows = [row("u", "train", "Tea?", "Green.", "Black."), row("u", "test", "Cake?", "Plum.", "Nut.")]
    parquet(tmp_path / "data" / "train-00000-of-00001.parquet", rows)
    suite = load_pairs(f"personal-rewardbench/prism={tmp_path}")
    assert [(pair.user, pair.question, pair.chosen, pair.tags["split"]) for pair in suite] == [
        ("u", "Tea?", "Green.", "train"),
        ("u", "Cake?", "Plum.", "test"),
    ]


def rmgap_row(**changed):
    groups = [
        {"winner": key, "prompts": [{"text": f"In style {key}, wording {number}."} for number in range(3)]}
        for key in "abcd"
    ]
    responses = [{"key": key, "text": f"answer {key}"} for key in "abcd"]
    return {"id": 3, "domain": "Chat", "source": "s", "responses": responses, "prompt_groups": groups, **changed}


def test_rmgap(tmp_path):
    jsonl(tmp_path / "test.jsonl", [rmgap_row()])
    suite = load_pairs(f"rmgap={tmp_path / 'test.jsonl'}")
    assert len(suite) == 4 * 3 * 3
    assert (suite[0].id, suite[0].chosen, suite[0].rejected) == ("3/0/0/b", "answer a", "answer b")
    with pytest.raises(DataError, match="read from a local copy"):
        load_pairs("rmgap")
    jsonl(tmp_path / "test.jsonl", [rmgap_row(prompt_groups=[{"winner": "z", "prompts": []}])])
    with pytest.raises(DataError, match="the winner 'z' is none of the answers"):
        load_pairs(f"rmgap={tmp_path}")


def test_several_answers_in_a_row_of_a_file(tmp_path):
    rows = [
        {"id": "1", "prompt": "Tea?", "chosen": ["Green."], "rejected": ["Black.", "Red."]},
        {"id": "2", "prompt": "Cake?", "chosen": "Plum.", "rejected": "Nut."},
    ]
    jsonl(tmp_path / "mine.jsonl", rows)
    suite = load_pairs(tmp_path / "mine.jsonl")
    assert [pair.id for pair in suite] == ["1/0/0", "1/0/1", "2"]
    assert suite[0].tags["item"] == "1"
    assert [pair.id for pair in suite.limit(2)] in (["1/0/0", "1/0/1"], ["2"])
