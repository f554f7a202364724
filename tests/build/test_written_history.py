"""Histories: three layouts, and everything that can be wrong with a file that people bring."""

import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prbench.build.written import Bounds, read_history
from prbench.build.written.entries import find_question
from prbench.errors import DataError

LONG = "I have little money and much time, and I would like to be outdoors. "


def csv_file(folder: Path, text: str, name: str = "posts.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def jsonl(folder: Path, rows: list[dict], name: str = "history.jsonl") -> Path:
    return csv_file(folder, "".join(json.dumps(row) + "\n" for row in rows), name)


def test_posts_alone_are_enough(tmp_path):
    path = csv_file(
        tmp_path,
        f'user,text\nann,"I like trains."\nann,"{LONG}Where should I go in May? Anyone?"\nbob,"No question here."\n',
    )
    history = read_history(path)
    (question,) = history.questions
    assert question.question == "Where should I go in May?"
    assert question.narrative == f"{LONG}Where should I go in May? Anyone?"
    assert [post.text for post in question.profile] == ["I like trains."]
    assert (history.users, history.posts, history.source.name) == (2, 3, "posts.csv")


def test_titles_that_ask_are_questions_and_the_post_is_the_story(tmp_path):
    rows = [
        {"author": "ann", "title": "Where to go in May?", "body": LONG},
        {"author": "ann", "title": "My garden", "body": "I planted beans. Is it not nice to sit there?"},
    ]
    (question,) = read_history(jsonl(tmp_path, rows)).questions
    assert (question.question, question.narrative) == ("Where to go in May?", LONG.strip())
    assert [post.text.splitlines()[0] for post in question.profile] == ["My garden"]


def test_narratives_make_the_questions_where_a_file_has_them(tmp_path):
    rows = [
        {"user": 7, "text": "I like trains. Do you like them as much as I do?"},
        {"user": 7, "question": "Where to go", "narrative": "Cheap, please.", "category": "travel", "id": 3},
    ]
    (question,) = read_history(jsonl(tmp_path, rows)).questions
    assert (question.id, question.user, question.question, question.category) == ("3", "7", "Where to go", "travel")
    assert len(question.profile) == 1


def test_questions_with_profiles_are_the_papers_layout(tmp_path):
    rows = [{"id": "1", "question": "Tea?", "narrative": "Strong, please.", "profile": ["I like tea.", "I am old."]}]
    (question,) = read_history(jsonl(tmp_path, rows), bounds=Bounds(max_posts=1)).questions
    assert [post.text for post in question.profile] == ["I like tea."]


def test_aspects_that_come_with_a_history_are_kept(tmp_path):
    rows = [
        {"user": "a", "text": "I like trains."},
        {"user": "a", "question": "Where?", "narrative": "Cheap.", "rubric_aspects": ["low cost", "by train"]},
    ]
    (question,) = read_history(jsonl(tmp_path, rows)).questions
    assert [aspect.aspect for aspect in question.rubric_aspects] == ["low cost", "by train"]


def test_parquet_and_mapped_columns(tmp_path):
    path = tmp_path / "posts.parquet"
    pq.write_table(pa.table({"who": ["a", "a"], "said": ["I like trains.", LONG + "Where should I go?"]}), path)
    assert len(read_history(path, {"user": "who", "text": "said"}).questions) == 1
    with pytest.raises(DataError) as error:
        read_history(path, {"user": "who", "text": "sayd"})
    assert "did you mean 'said'?" in error.value.hint
    with pytest.raises(DataError, match="field 'user' is missing"):
        read_history(path)
    with pytest.raises(DataError, match="unknown field 'usr'"):
        read_history(path, {"usr": "who"})


def test_a_post_that_asks_is_in_no_profile_nor_is_a_copy_of_it(tmp_path):
    asked = LONG + "Where should I go in May?"
    rows = [
        {"user": "a", "id": "q", "text": asked},
        {"user": "a", "id": "copy", "text": f"Again:  {asked.upper()}"},
        {"user": "a", "id": "other", "text": "I like trains."},
        {"user": "a", "id": "p", "text": "I like boats."},
    ]
    for question in read_history(jsonl(tmp_path, rows)).questions:
        assert {post.id for post in question.profile} <= {"other", "p"}


def test_what_was_written_later_is_not_in_the_profile(tmp_path):
    rows = [
        {"user": "a", "id": "late", "time": "2025-03-01", "text": "I like boats."},
        {"user": "a", "id": "q", "time": "2025-02-01", "text": LONG + "Where should I go?"},
        {"user": "a", "id": "early", "time": "2025-01-01T10:00:00+01:00", "text": "I like trains."},
    ]
    (question,) = read_history(jsonl(tmp_path, rows)).questions
    assert [post.id for post in question.profile] == ["early"]
    with pytest.raises(DataError, match="field 'time' is 'yesterday'"):
        read_history(jsonl(tmp_path, [{**rows[0], "time": "yesterday"}]))


def test_half_of_a_users_posts_at_most_become_questions(tmp_path):
    rows = [{"user": "a", "text": f"{LONG}Where should I go in the year {year}?"} for year in range(2000, 2010)]
    history = read_history(jsonl(tmp_path, rows))
    assert len(history.questions) == 5
    assert history.left_out["posts that ask, kept as posts of the profile"] == 5
    assert len(read_history(jsonl(tmp_path, rows), bounds=Bounds(max_per_user=2)).questions) == 2


def test_a_limit_takes_everybodys_first_question_before_anybodys_second(tmp_path):
    rows = [
        {"user": user, "text": f"{LONG}Where should I go in the year {year}?"}
        for user in "abc"
        for year in range(2000, 2004)
    ]
    history = read_history(jsonl(tmp_path, rows), bounds=Bounds(limit=3))
    assert sorted(question.user for question in history.questions) == ["a", "b", "c"]
    assert history.left_out["questions beyond --limit"] == 3


def test_an_empty_history_is_an_error_that_says_so(tmp_path):
    for text, message in [
        ("", "has no rows"),
        ("user,text\n", "has no rows"),
        ("user,text\nann,Hello.\n", "1 posts of 1 users, but no question to build on"),
        ('user,text\nann,""\n', "1 rows without a text"),
    ]:
        with pytest.raises(DataError) as error:
            read_history(csv_file(tmp_path, text))
        assert message in error.value.message
    with pytest.raises(DataError, match="does not exist"):
        read_history(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="unsupported extension"):
        read_history(csv_file(tmp_path, "x", "posts.txt"))


def test_one_user_works_and_is_told_what_does_not(tmp_path):
    path = csv_file(tmp_path, f'user,text\nann,"I like trains."\nann,"{LONG}Where should I go in May?"\n')
    history = read_history(path)
    assert len(history.questions) == 1
    assert "one user" in history.notes[0]


def test_users_who_wrote_nothing_else_are_counted(tmp_path):
    rows = [{"user": "a", "text": LONG + "Where should I go in May?"}]
    rows += [{"user": "b", "text": text} for text in ("I like trains.", LONG + "Where should I go in June?")]
    history = read_history(jsonl(tmp_path, rows))
    assert [question.user for question in history.questions] == ["b"]
    assert history.left_out == {"questions of users with fewer than 1 posts besides": 1}


def test_control_characters_are_cleaned_and_counted(tmp_path):
    rows = [
        {"user": "a", "text": "I\x00 like\u202e trains.\r\nA lot."},
        {"user": "a", "text": f"{LONG}Where\x1b should I go\u200b?"},
    ]
    history = read_history(jsonl(tmp_path, rows))
    assert history.questions[0].question == "Where should I go?"
    assert history.questions[0].profile[0].text == "I like trains.\nA lot."
    assert history.left_out["texts with control characters (cleaned)"] == 2


def test_ids_must_be_unique_but_a_repeated_row_is_only_counted(tmp_path):
    rows = [
        {"user": "a", "id": "1", "text": "I like trains."},
        {"user": "a", "id": "2", "text": LONG + "Where should I go?"},
    ]
    assert read_history(jsonl(tmp_path, [*rows, rows[0]])).left_out == {"rows that stand twice": 1}
    with pytest.raises(DataError, match=r"id '1' stands already in .*line 1"):
        read_history(jsonl(tmp_path, [*rows, {**rows[0], "text": "I like boats."}]))
    with pytest.raises(DataError, match="line 1: field 'user' is empty"):
        read_history(jsonl(tmp_path, [{**rows[0], "user": " "}]))


def test_questions_that_tell_nothing_are_counted(tmp_path):
    rows = [{"user": "a", "text": "I like trains."}, {"user": "a", "text": "Well. Where should I go in May?"}]
    with pytest.raises(DataError, match="1 questions without a story behind them"):
        read_history(jsonl(tmp_path, rows))


def test_of_fifty_thousand_posts_those_are_kept_that_bear_on_the_question(tmp_path):
    rows = [
        {"user": "a", "id": f"p{n}", "text": f"Note {n} about the weather in town {n % 977}."} for n in range(50_000)
    ]
    rows[31_000]["text"] = "My sourdough starter smells of vinegar."
    rows.append({"user": "a", "id": "q", "text": LONG + "Why does my sourdough starter smell so sour?"})
    path = jsonl(tmp_path, rows)
    started = time.process_time()
    (question,) = read_history(path, bounds=Bounds(max_posts=50)).questions
    assert time.process_time() - started < 60
    assert len(question.profile) == 50
    assert "p31000" in {post.id for post in question.profile}
    assert [int(post.id[1:]) for post in question.profile] == sorted(int(post.id[1:]) for post in question.profile)
    by_id = {row["id"]: row["text"] for row in rows}
    assert all(post.text == by_id[post.id] for post in question.profile)  # ids stay with their texts


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("How so? What is the best way to learn to sail?", "What is the best way to learn to sail?"),
        ("« Où puis-je apprendre à naviguer ? »", "« Où puis-je apprendre à naviguer ?"),
        ("我住在北京。我应该在哪里学习游泳？谢谢。", "我应该在哪里学习游泳？"),
        ("Why?", ""),
        ("I wonder (do you too?) about it.", ""),
        ("word " * 70 + "?", ""),
    ],
)
def test_the_question_of_a_post_is_its_longest_sentence_that_asks(text, question):
    assert find_question(text) == question


def test_the_same_post_twice_is_one_post_whatever_its_time_or_id(tmp_path):
    asks = f'"{LONG}Where should I go in May?"'
    dated = csv_file(
        tmp_path, f"user,text,time\nann,I like tea.,2024-01-01\nann,I like tea.,2024-02-01\nann,{asks},2024-03-01\n"
    )
    history = read_history(dated)
    assert [post.text for post in history.questions[0].profile] == ["I like tea."]
    assert history.left_out["posts that the same user wrote before"] == 1
    named = csv_file(tmp_path, f"user,id,text\nann,1,I like tea.\nann,2,I like tea.\nann,3,{asks}\nbob,4,I like tea.\n")
    assert read_history(named).left_out["posts that the same user wrote before"] == 1


@pytest.mark.parametrize("mark", [";", "\t"])
def test_another_separator_is_named(tmp_path, mark):
    path = csv_file(tmp_path, f"user{mark}text\nann{mark}I like tea.\n")
    with pytest.raises(DataError, match="seems to be separated by"):
        read_history(path)
