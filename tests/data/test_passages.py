"""Training material from what was written: posts of several axes, and questions with sound and flawed answers."""

import json
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from prbench.data.passages import load_flaws, read_sources, write_flaws
from prbench.errors import DataError

ROW = {"question": "Bus?", "sound": ["At 7.", "At 8."], "flawed": ["Never."], "flaws": ["It goes twice."]}


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_a_post_that_shows_several_stances_is_a_passage_of_each(tmp_path: Path) -> None:
    row = {
        "situation": "a chain",
        "axes": ["place", "spend"],
        "posts": {"local+time": "One.", "convenient+money": "Two."},
    }
    found = [(one.axis, one.pole, one.kind, one.text) for one in read_sources([written(tmp_path / "posts.jsonl", row)])]
    assert found == [
        ("place", "local", "post", "One."),
        ("spend", "time", "post", "One."),
        ("place", "convenient", "post", "Two."),
        ("spend", "money", "post", "Two."),
    ]


def test_flawed_answers_ship_without_the_notes_on_them(tmp_path: Path) -> None:
    write_flaws([written(tmp_path / "a.jsonl", ROW)], tmp_path / "flaws.parquet")
    assert parquet.read_table(tmp_path / "flaws.parquet").to_pylist() == [
        {"question": "Bus?", "sound": ["At 7.", "At 8."], "flawed": ["Never."]}
    ]


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (ROW, "the question 'Bus\\?' stands twice"),
        ({**ROW, "question": "Tram?", "flawed": []}, "a.jsonl, line 2"),
        ({**ROW, "question": "Tram?", "flawed": ["At 7."]}, "'At 7.' is sound and flawed"),
        ({**ROW, "question": "Tram?", "flaws": ["One.", "Two."]}, "1 flawed answers have 2 notes"),
        ({**ROW, "question": "Tram?", "flawd": []}, "flawd"),
    ],
)
def test_what_was_written_wrongly_is_named(tmp_path: Path, second: object, says: str) -> None:
    with pytest.raises(DataError, match=says):
        write_flaws([written(tmp_path / "a.jsonl", ROW, second)], tmp_path / "flaws.parquet")


def test_no_flawed_answer_is_sound_too() -> None:
    for one in load_flaws():
        assert len(one.sound) >= 2
        assert not set(one.sound) & set(one.flawed)
