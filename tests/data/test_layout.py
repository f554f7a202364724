"""Which column is which field: the paper's layout, TRL's layouts, mappings, and what is derived."""

import json

import pytest

from prbench.data import load_pairs, load_questions
from prbench.errors import DataError

POSTS = [{"id": "p1", "category": "tea", "text": "I love green tea."}, {"id": "p2", "category": "", "text": "No milk."}]
PAPER = {
    "id": "q1",
    "question": "Tea?",
    "profile": POSTS,
    "rubric_aspects": [{"aspect": "green", "evidence": "p1", "reason": "taste"}],
    "narrative": "She wants green tea.",
    "category": "Lifestyle",
    "chosen": "Green.",
    "rejected": "Black.",
}


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


@pytest.fixture
def load(tmp_path):
    def write_and_load(*rows, **options):
        path = tmp_path / "pairs.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return load_pairs(path, **options)

    return write_and_load


def test_the_papers_layout(load):
    suite = load(PAPER)
    pair = suite[0]
    assert [post.text for post in pair.profile] == ["I love green tea.", "No milk."]
    assert pair.rubric_aspects[0].reason == "taste"
    assert (pair.narrative, pair.category, pair.tags["split"]) == ("She wants green tea.", "Lifestyle", "test")
    assert suite.record.derived_users
    assert not suite.record.notes


def test_derived_users_follow_the_profile(load):
    other = [{**POSTS[0], "text": "I love black tea."}]
    suite = load(PAPER, {**PAPER, "id": "q2"}, {**PAPER, "id": "q3", "profile": other})
    one, two, three = (pair.user for pair in suite)
    assert one == two != three
    assert load(PAPER)[0].user == one


def test_without_a_profile_each_question_has_its_own_user(load):
    bare = {"question": "Tea?", "chosen": "Green.", "rejected": "Black."}
    suite = load(bare, {**bare, "rejected": "Red."}, {**bare, "question": "Coffee?"})
    assert suite[0].user == suite[1].user != suite[2].user
    assert len({pair.id for pair in suite}) == 3


def test_a_given_user_is_kept(load):
    suite = load({**PAPER, "user": "ann"}, {**PAPER, "id": "q2", "user": 7})
    assert [pair.user for pair in suite] == ["ann", "7"]
    assert not suite.record.derived_users


def test_profiles_and_posts_are_shared(load):
    rows = [{**PAPER, "id": str(number)} for number in range(5)]
    suite = load(*rows, {**PAPER, "id": "x", "profile": POSTS[:1]})
    assert len({id(pair.profile) for pair in suite}) == 2
    assert suite[5].profile[0] is suite[0].profile[0]


def test_posts_may_be_plain_texts_an_object_of_lists_or_json_text(load):
    columns = {"id": ["p1", "p2"], "category": ["tea", ""], "text": [post["text"] for post in POSTS]}
    suite = load(
        PAPER,
        {**PAPER, "id": "2", "profile": columns},
        {**PAPER, "id": "3", "profile": json.dumps(POSTS)},
        {**PAPER, "id": "4", "profile": [post["text"] for post in POSTS]},
    )
    assert suite[0].profile is suite[1].profile is suite[2].profile
    assert [post.text for post in suite[3].profile] == [post["text"] for post in POSTS]
    assert suite[3].profile[0].id.startswith("post-")


def test_unequal_columns_of_posts_are_refused(load):
    with pytest.raises(DataError, match="line 1: field 'profile' has columns of unequal length"):
        load({**PAPER, "profile": {"id": ["a"], "text": ["b", "c"]}})


def test_repeated_and_empty_posts_are_left_out_and_counted(load):
    suite = load({**PAPER, "profile": [*POSTS, POSTS[0], {"id": "p3", "text": " "}]})
    assert [post.id for post in suite[0].profile] == ["p1", "p2"]
    assert suite.record.notes == ("1 empty posts left out", "1 repeated posts left out")


def test_unknown_columns_are_ignored_and_listed(load):
    suite = load({**PAPER, "site": "x"}, {**PAPER, "id": "2", "age": 3})
    assert suite.record.notes == ("columns ignored: age, site",)


def test_tags_as_object_or_json_text(load):
    tags = {"axis": "length", "old": True, "n": 3, "none": None, "split": "train"}
    suite = load({**PAPER, "tags": tags}, {**PAPER, "id": "2", "tags": json.dumps(tags)})
    assert suite[0].tags == suite[1].tags == {"axis": "length", "old": "true", "n": "3", "split": "train"}


def test_a_split_column_becomes_the_tag(load):
    suite = load({**PAPER, "split": "train"}, {**PAPER, "id": "2"})
    assert [pair.tags["split"] for pair in suite] == ["train", "test"]
    assert load({**PAPER, "split": "train"}, {**PAPER, "id": "2"}, split="train")[0].id == "q1"


def test_column_mapping(load):
    row = {"ask": "Tea?", "good": "Green.", "bad": "Black.", "question": "not this one"}
    columns = {"question": "ask", "chosen": "good", "rejected": "bad"}
    suite = load(row, columns=columns)
    assert (suite[0].question, suite[0].chosen) == ("Tea?", "Green.")
    assert suite.record.columns == columns
    assert suite.record.notes == ("columns ignored: question",)


def test_a_mapping_to_no_column_or_no_field(load):
    with pytest.raises(DataError, match="no column 'promt_text', which is mapped to 'question'") as caught:
        load({**PAPER, "prompt_text": "Tea?"}, columns={"question": "promt_text"})
    assert "did you mean 'prompt_text'?" in caught.value.hint
    assert "narrative" in caught.value.hint
    with pytest.raises(DataError, match="unknown field 'chozen'") as caught:
        load(PAPER, columns={"chozen": "chosen"})
    assert "did you mean 'chosen'?" in caught.value.hint


@pytest.mark.parametrize(
    ("row", "question"),
    [
        ({"prompt": "Tea?", "chosen": "G", "rejected": "B"}, "Tea?"),
        ({"prompt": [user("Tea?")], "chosen": [assistant("G")], "rejected": [assistant("B")]}, "Tea?"),
        ({"chosen": [user("Tea?"), assistant("G")], "rejected": [user("Tea?"), assistant("B")]}, "Tea?"),
        (
            {"prompt": "Tea?", "chosen": [user("Tea?"), assistant("G")], "rejected": [user("Tea?"), assistant("B")]},
            "Tea?",
        ),
        (
            {
                "prompt": [user("Tea?")],
                "chosen": [user("Tea?"), assistant("G")],
                "rejected": [user("Tea?"), assistant("B")],
            },
            "Tea?",
        ),
        (
            {"prompt": [user("Hi."), assistant("Yes?"), user("Tea?")], "chosen": "G", "rejected": "B"},
            "User: Hi.\n\nAssistant: Yes?\n\nUser: Tea?",
        ),
        (
            {
                "prompt": "Hi.",
                "chosen": [assistant("Yes?"), user("Tea?"), assistant("G")],
                "rejected": [assistant("Yes?"), user("Tea?"), assistant("B")],
            },
            "User: Hi.\n\nAssistant: Yes?\n\nUser: Tea?",
        ),
        (
            {
                "prompt": [user("Hi.")],
                "chosen": [assistant("Yes?"), user("Tea?"), assistant("G")],
                "rejected": [assistant("Yes?"), user("Tea?"), assistant("B")],
            },
            "User: Hi.\n\nAssistant: Yes?\n\nUser: Tea?",
        ),
        (
            {"prompt": [{"role": "system", "content": "Be brief."}, user("Tea?")], "chosen": "G", "rejected": "B"},
            "System: Be brief.\n\nUser: Tea?",
        ),
        (
            {
                "prompt": [user([{"type": "text", "text": "Tea"}, {"type": "text", "text": "now?"}])],
                "chosen": "G",
                "rejected": "B",
            },
            "Tea\nnow?",
        ),
    ],
)
def test_trl_layouts(load, row, question):
    pair = load(row)[0]
    assert (pair.question, pair.chosen, pair.rejected) == (question, "G", "B")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"chosen": [user("A?"), assistant("G")], "rejected": [user("B?"), assistant("B")]},
            "differ before their last turn",
        ),
        ({"prompt": "x", "chosen": [user("A?")], "rejected": "B"}, "'chosen' does not end with an assistant turn"),
        ({"prompt": "x", "chosen": [], "rejected": "B"}, "'chosen' does not end with an assistant turn"),
        ({"prompt": "x", "chosen": "G", "rejected": [{"text": "B"}]}, "'rejected' has an item that is no message"),
        ({"prompt": [user([{"type": "image"}])], "chosen": "G", "rejected": "B"}, "content that is not text"),
        ({"prompt": [user(3)], "chosen": "G", "rejected": "B"}, "'question.content' is a number"),
        ({"prompt": 3, "chosen": "G", "rejected": "B"}, "'question' is a number"),
        ({"chosen": "G", "rejected": "B"}, "'question' is missing"),
        ({"chosen": [assistant("G")], "rejected": [assistant("B")]}, "'question' is missing"),
    ],
)
def test_conversations_that_are_refused(load, row, words):
    with pytest.raises(DataError, match="line 1") as caught:
        load(row)
    assert words in caught.value.message


def test_the_alias_is_recorded_only_where_it_was_used(load):
    bare = {"prompt": "Tea?", "chosen": "G", "rejected": "B", "user_id": "ann"}
    assert load(bare).record.columns == {"question": "prompt", "user": "user_id"}
    suite = load({**PAPER, "prompt": "ignored"})
    assert suite.record.columns == {}
    assert suite[0].question == "Tea?"


def test_questions_need_no_answers(tmp_path):
    path = tmp_path / "validation.jsonl"
    rows = [{key: value for key, value in PAPER.items() if key not in ("chosen", "rejected")}]
    rows.append({"question": [user("Hi."), assistant("Yes?"), user("Tea?")]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = load_questions(path)
    assert (first.id, first.narrative, first.tags["split"]) == ("q1", "She wants green tea.", "validation")
    assert [aspect.aspect for aspect in first.rubric_aspects] == ["green"]
    assert second.question.endswith("User: Tea?")
    with pytest.raises(DataError, match="line 1: field 'chosen' is missing"):
        load_pairs(path)
    path.write_text('{"question": " "}')
    with pytest.raises(DataError, match="line 1: field 'question' is empty"):
        load_questions(path)
    path.write_text('{"qestion": "x"}')
    with pytest.raises(DataError, match="line 1: field 'question' is missing"):
        load_questions(path)
