"""What a log may look like, and what is said of one that cannot be used."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prbench.build import MirrorConfig, build_mirror, parse_splits
from prbench.build.columns import ITEM_FIELDS, Columns
from prbench.build.items import read_items
from prbench.build.log import read_log
from prbench.errors import ConfigError, DataError

ALL_TEST = MirrorConfig(splits=(0, 0, 1))
RATINGS = [(f"u{user}", item, (user % 2 * 2 - 1) * item) for user in range(12) for item in range(8)]
JUDGMENTS = [(f"u{user}", f"{2 * item}", f"{2 * item + 1}", "ab"[user % 2]) for user in range(12) for item in range(4)]


def lines(header: str, rows: list[tuple[object, ...]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def items(tmp_path: Path) -> Path:
    path = tmp_path / "texts.json"
    path.write_text(json.dumps([f"joke {i}" for i in range(8)]))
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.csv"


def refused(log: Path, items: Path, **options: object) -> DataError:
    with pytest.raises(DataError) as caught:
        build_mirror(log, items, options=MirrorConfig.model_validate(options))
    return caught.value


def test_every_format_of_log_and_items_gives_the_same_suite(tmp_path: Path, items: Path, log: Path):
    log.write_text(lines("user,item,rating", RATINGS))
    expected = build_mirror(log, items).card.fingerprint
    zipped = tmp_path / "log.csv.gz"
    zipped.write_bytes(gzip.compress(log.read_bytes()))
    objects = [{"user": user, "item": item, "rating": rating} for user, item, rating in RATINGS]
    jsonl = tmp_path / "log.jsonl"
    jsonl.write_text("\n".join(map(json.dumps, objects)))
    parquet = tmp_path / "log.parquet"
    pq.write_table(pa.Table.from_pylist(objects), parquet)
    assert {build_mirror(path, items).card.fingerprint for path in (zipped, jsonl, parquet)} == {expected}
    texts = [{"id": i, "text": f"joke {i}"} for i in range(8)]
    other_items = [tmp_path / "t.jsonl", tmp_path / "t.jsonl.gz", tmp_path / "t.csv", tmp_path / "objects.json"]
    other_items[0].write_text("\n".join(map(json.dumps, texts)))
    other_items[1].write_bytes(gzip.compress(other_items[0].read_bytes()))
    other_items[2].write_text(lines("id,text", [(text["id"], text["text"]) for text in texts]))
    other_items[3].write_text(json.dumps(texts))
    assert {build_mirror(log, path).card.fingerprint for path in other_items} == {expected}


def test_a_rating_is_told_on_its_scale(items: Path, log: Path):
    log.write_text(lines("user,item,rating", RATINGS))
    texts = [post.text for post in build_mirror(log, items).suite[0].profile]
    assert all(text.startswith("I rated this ") and "on a scale from -7 to 7: «joke " in text for text in texts)
    log.write_text(lines("user,item,rating", [(user, item, 5 + rating / 2) for user, item, rating in RATINGS]))
    assert " of 9: «joke " in build_mirror(log, items).suite[0].profile[0].text


def test_a_judgment_is_told_with_the_reason_and_the_names_it_uses(tmp_path: Path, log: Path):
    items = tmp_path / "texts.jsonl"
    texts = [{"id": str(i), "text": f"speech {i}", "topic": "Tea", "stance": "for"} for i in range(8)]
    items.write_text("\n".join(map(json.dumps, texts)))
    rows = [(user, a, b, {"a": "a1", "b": "a2"}[choice], "A2 is dull") for user, a, b, choice in JUDGMENTS]
    log.write_text(lines("user,a,b,value,reason", rows))
    build = build_mirror(log, items, options=ALL_TEST)
    for pair in build.suite:
        likes_first = pair.user in {f"u{user}" for user in range(0, 12, 2)}
        low = int(pair.profile[0].id.split("/")[1].split("|")[0])
        first, second = f"A1: «speech {low}»", f"A2: «speech {low + 1}»"
        preferred, other = (first, second) if likes_first else (second, first)
        assert pair.profile[0].text == (
            f"Asked to choose between two texts on Tea, I preferred {preferred} over {other}. My reason: A2 is dull"
        )
        assert pair.question == "Tea (for): which of these two do you prefer?"
        assert pair.category == "Tea"
    assert {row["reason"] for row in build.context} == {"A2 is dull"}
    log.write_text(lines("user,a,b,choice", JUDGMENTS))
    silent = build_mirror(log, items, options=ALL_TEST).suite[0].profile[0].text
    assert silent.startswith("Asked to choose between two texts on Tea, I preferred: «speech ")
    assert "» over: «speech " in silent


def test_the_context_keeps_the_order_in_which_the_texts_were_seen(items: Path, log: Path):
    log.write_text(lines("user,a,b,choice", [(user, b, a, choice) for user, a, b, choice in JUDGMENTS]))
    build = build_mirror(log, items, options=ALL_TEST)
    assert build.context
    assert all(int(row["a"]) == int(row["b"]) + 1 for row in build.context)
    assert all(row["choice"] == "ab"[int(row["user"][1:]) % 2] for row in build.context)


def test_the_question_can_be_set_and_can_come_from_the_items(tmp_path: Path, log: Path):
    log.write_text(lines("user,a,b,choice", JUDGMENTS))
    items = tmp_path / "texts.jsonl"
    texts = [{"id": i, "text": f"speech {i}", "topic": "{stance}", "ask": "Which one?"} for i in range(8)]
    items.write_text("\n".join(map(json.dumps, texts)))
    asked = build_mirror(log, items, options=ALL_TEST.model_copy(update={"question": "On {topic}: {which}?"}))
    assert {pair.question for pair in asked.suite} == {"On {stance}: {which}?"}
    mapped = build_mirror(log, items, options=ALL_TEST.model_copy(update={"columns": {"question": "ask"}}))
    assert {pair.question for pair in mapped.suite} == {"Which one?"}


def test_the_last_rating_counts_and_contradictions_do_not(items: Path, log: Path):
    log.write_text(lines("user,item,rating", [("u0", 0, 9), *RATINGS]))
    assert build_mirror(log, items).card.dropped["ratings replaced by a later one of the same user and text"] == 1
    again, against = JUDGMENTS[0], ("u1", "1", "0", "b")  # u1 chose 1 over 0 before, and now 0 over 1
    log.write_text(lines("user,a,b,choice", [*JUDGMENTS, again, against, ("u2", 3, 3, "a"), ("u2", 1, 2, "equal")]))
    dropped = build_mirror(log, items, options=ALL_TEST).card.dropped
    assert dropped["judgments repeated"] == 1
    assert dropped["judgments that contradict the same user's other judgment of the pair"] == 2
    assert dropped["judgments of two equal texts"] == 1
    assert dropped["judgments of 'equal'"] == 1


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        ("user,item,rating", "u1,99,3", ["line 2", "'item'", "'99'", "no id of the items"]),
        ("user,item,rating", "u1,1,good", ["line 2", "'rating'", "'good'"]),
        ("user,item,rating", "u1,1,nan", ["line 2", "'rating'", "'nan'"]),
        ("user,item,rating", ",1,3", ["line 2", "'user'", "empty"]),
        ("user,a,b,choice", "u1,0,1,c", ["line 2", "'choice'", "'c'"]),
        ("user,a,b,choice", "u1,0,x,a", ["line 2", "'b'", "'x'"]),
        ("user,itm,rating", "u1,1,3", ["line 2", "'item' is missing", "did you mean 'itm'", "--column item=COLUMN"]),
        ("user,a,b,choise", "u1,1,2,a", ["line 2", "'choice' is missing", "did you mean 'choise'"]),
        ("user,a,choice", "u1,1,a", ["line 2", "'b' is missing"]),
    ],
)
def test_a_bad_row_is_named(header: str, row: str, words: list[str], items: Path, log: Path):
    log.write_text(f"{header}\n{row}\n")
    error = refused(log, items)
    assert "log.csv" in error.message
    for word in words:
        assert word in str(error)


def test_bad_items_are_named(tmp_path: Path, log: Path):
    log.write_text(lines("user,item,rating", RATINGS))
    items = tmp_path / "texts.jsonl"
    items.write_text('{"id": "0", "text": "a"}\n{"id": "0", "text": "b"}')
    assert "texts.jsonl, line 2: id '0' stands already" in refused(log, items).message
    items.write_text('{"id": "0", "text": " "}')
    assert "line 1: field 'text' is empty" in refused(log, items).message
    items.write_text('{"id": "0", "txt": "a"}')
    assert "did you mean 'txt'" in refused(log, items).hint
    assert "does not exist" in refused(log, tmp_path / "none.jsonl").message
    wrong = tmp_path / "texts.json"
    wrong.write_text('{"0": "a"}')
    assert "expected a list" in refused(log, wrong).message


def test_columns_can_be_mapped(items: Path, log: Path):
    log.write_text(lines("who,joke,stars", RATINGS))
    assert len(build_mirror(log, items, options=MirrorConfig(columns={"user": "who", "item": "joke"})).suite) > 0
    assert "did you mean 'joke'" in refused(log, items, columns={"user": "who", "item": "jokes"}).hint
    assert "unknown field 'usr'" in refused(log, items, columns={"usr": "who"}).message


def test_agreement_is_refused_with_counts(items: Path, log: Path):
    log.write_text(lines("user,item,rating", [(f"u{user}", item, item) for user in range(5) for item in range(8)]))
    error = refused(log, items)
    assert "no disagreement to mirror: 5 users have preferences on 28 item pairs" not in error.message  # gap of 1.4
    assert "no disagreement to mirror: 5 users have preferences on 21 item pairs" in error.message
    assert "--min-gap" in error.hint
    log.write_text(lines("user,item,rating", [(f"u{user}", item, 3) for user in range(5) for item in range(8)]))
    assert "all 40 ratings are 3" in refused(log, items).message
    log.write_text(lines("user,a,b,choice", [("u1", 0, 1, "equal"), ("u2", 0, 1, "equal")]))
    assert "left out: 2 judgments of 'equal'" in refused(log, items).message


def test_a_log_with_nothing_left_over_is_refused_with_the_reasons(items: Path, log: Path):
    log.write_text(lines("user,a,b,choice", [("u1", 0, 1, "a"), ("u2", 0, 1, "b")]))
    error = refused(log, items)
    assert "2 judgments to mirror on 1 disputed item pairs" in error.message
    assert "none is left" in error.message
    assert "--splits 0/0/100" in error.hint


def test_the_gap_decides_what_is_a_preference(items: Path, log: Path):
    log.write_text(lines("user,item,rating", RATINGS))
    texts = read_items(items, Columns({}, ITEM_FIELDS))
    counts = [read_log(log, texts, {}, gap).log.mirrorable() for gap in (1, 3, 7, None)]
    assert [count.disputed for count in counts] == [28, 15, 1, 15]  # a fifth of −7 … 7 is 2.8
    assert [count.judgments for count in counts] == [28 * 12, 15 * 12, 12, 15 * 12]


def test_splits_are_read(items: Path):
    assert parse_splits("8/1/1") == (8.0, 1.0, 1.0)
    assert MirrorConfig(splits=parse_splits("3/0/1")).shares == (0.75, 0.0, 0.25)
    for wrong in ("60/40", "a/b/c", ""):
        with pytest.raises(ConfigError):
            parse_splits(wrong)
    with pytest.raises(ValueError, match="negative"):
        MirrorConfig(splits=(-1, 1, 1))
