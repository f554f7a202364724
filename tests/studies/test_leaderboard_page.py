"""The page of docs/leaderboard.md from two quick rows: what is finished is not run again, boards by their pairs."""

import json

import leaderboard
from leaderboard import BoardRow, make


def test_rows_are_run_once_and_stand_on_the_board_of_their_pairs(tmp_path, monkeypatch):
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    rows = [BoardRow("longer", limit=16), BoardRow("overlap", limit=16), BoardRow("longer", limit=24)]
    work, page, told = tmp_path / "work", tmp_path / "leaderboard.md", []
    make(rows, work, page, say=told.append)
    text = page.read_text(encoding="utf-8")
    assert text.count("| overlap |") == 1
    assert text.count("| longer |") == 2
    assert "**16 pairs**" in text
    assert "**24 pairs**" in text
    assert str(tmp_path) not in text
    assert len(told) == 4
    (times,) = work.glob("*/seconds.json")
    assert set(json.loads(times.read_text())) == {"longer-16", "overlap-16", "longer-24"}
    make(rows, work, page, say=told.append)
    assert len(told) == 5, "only the page was written again"


def test_every_row_has_a_folder_of_its_own():
    names = [row.folder for row in leaderboard.ROWS]
    assert len(set(names)) == len(names)
