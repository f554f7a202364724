"""The sheets of the blind check: who is shown to whom, what the key says, and how readings are scored."""

import csv
import importlib.util
import json
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from prbench.data import load_pairs

SUITE = Path(__file__).parents[2] / "suite"
PEOPLE = tomllib.loads((SUITE / "design.toml").read_text(encoding="utf-8"))["personas"]
spec = importlib.util.spec_from_file_location("suite_blind", SUITE / "blind.py")
blind = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = blind
spec.loader.exec_module(blind)


@pytest.fixture(scope="module")
def pairs():
    return {pair.id: pair for pair in load_pairs("mirror", split="test")}


@pytest.fixture(scope="module", params=["own", "other"])
def arm(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    blind.write_sheets(folder / "sheets", folder / "key.json", request.param, 7, 9, "c96-c105", 4)
    return request.param, folder


def test_a_reader_meets_one_half_of_a_couple_and_no_key(arm, pairs):
    name, folder = arm
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    assert not list((folder / "sheets").rglob("*.json"))
    dealt = {path.stem: path.parent.name for path in (folder / "sheets").rglob("*.md")}
    assert len(dealt) == (20 if name == "own" else 10)
    seen: Counter = Counter()
    for sheet, reader in dealt.items():
        items = [at for item, at in key.items() if item.startswith(f"{sheet}-")]
        assert len(items) == 9
        couples = {pairs[at["pair"]].tags["couple"] for at in items} | {
            at["shown"][:-1] for at in items if "shown" in at
        }
        assert len(couples) == (1 if name == "own" else 2)
        seen.update((reader, couple) for couple in couples)
    assert max(seen.values()) == 1


def test_the_key_says_how_the_person_shown_stands_to_the_pair(arm, pairs):
    name, folder = arm
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    sheets = {path.stem: path.read_text(encoding="utf-8") for path in (folder / "sheets").rglob("*.md")}
    for item, at in key.items():
        pair, text = pairs[at["pair"]], sheets[item.rpartition("-")[0]]
        asked = text.partition(f"### {item}\n\n")[2].partition("\n### ")[0]
        first = asked.partition("**A.**\n")[2].partition("\n\n**B.**")[0]
        assert first == (pair.chosen if at["label"] == "A" else pair.rejected)
        shown = at.get("shown", pair.user)
        assert next(p for p in pairs.values() if p.user == shown).profile[0].text in text
        if name == "other":
            held = PEOPLE[shown]["stances"].get(at["axis"])
            wanted = pair.tags["pole"]
            assert at["relation"] == ("silent" if held is None else "agrees" if held == wanted else "opposes")
    if name == "other":
        assert Counter(at["relation"] for at in key.values()) == {"agrees": 30, "opposes": 30, "silent": 30}


def test_readings_are_scored_by_relation(arm):
    name, folder = arm
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    other = {"A": "B", "B": "A"}
    with (folder / "R1-readings.csv").open("w", newline="", encoding="utf-8") as handle:
        rows = csv.writer(handle)
        rows.writerow(["item", "prefer", "worse", "note"])
        for item, at in key.items():
            follows = at.get("relation") != "opposes"
            rows.writerow([item, at["label"] if follows else other[at["label"]], "none", ""])
    command = [sys.executable, "suite/blind.py", "score", str(folder / "key.json"), str(folder / "R1-readings.csv")]
    done = subprocess.run(command, cwd=SUITE.parent, capture_output=True, text=True, check=True)
    if name == "own":
        assert "agreement with the label: 1.000" in done.stdout
        assert "the person shown" not in done.stdout
    else:
        assert "the person shown agrees   1.000" in done.stdout
        assert "the person shown opposes  0.000" in done.stdout


def test_the_key_does_not_lie_with_the_sheets(tmp_path):
    with pytest.raises(SystemExit, match="keep the key elsewhere"):
        blind.write_sheets(tmp_path, tmp_path / "key.json", "own", 1, 2, "c96", 2)
    assert blind.named_couples("c96-c98,c16") == {"c96", "c97", "c98", "c16"}
