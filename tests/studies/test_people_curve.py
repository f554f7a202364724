"""The learning curves over people on a tiny suite: points, page, drawing; what is there is not made again."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import people_curve
import pytest
from people_curve import Kept, Plan, Point, changes, read_kept, study, write_kept, write_page

import tiny_models
from prbench.errors import DataError
from prbench.results import load_run
from split_suite import SPLITS, split_pairs, write_suite

CHANGES = {
    "user-bt": {"epochs": 2},
    "stances": {"epochs": 2, "also": None},
    "encoder": {"epochs": 1, "passages": False},
}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("suite")
    pairs = [pair for split in SPLITS for pair in split_pairs(split, couples=4)]
    suite = write_suite(folder / "suite.jsonl", pairs)
    encoder = f"embed:{tiny_models.save_encoder(folder / 'encoder')}"
    return Plan(str(suite), ("user-bt", "stances"), (1, 4), encoder, 0, CHANGES)


def test_points_page_and_drawing(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    work, page, told = tmp_path / "work", tmp_path / "people.md", []
    found = list(study(plan, work, told.append))
    assert [(point.method, point.couples) for point in found] == [
        (method, couples) for couples in (1, 4) for method in ("user-bt", "stances")
    ]
    assert [point.pairs for point in found] == [8, 8, 32, 32]
    assert all(point.test.n == 32 and 0 <= point.validation <= 1 for point in found)
    assert (work / "encoder-1").is_dir()
    assert found[0].run is not None
    assert load_run(found[0].run).result.split == "test"
    kept = _kept(found)
    write_page(page, plan, kept)
    text = page.read_text(encoding="utf-8")
    assert re.search(r"^\| user-bt \| [\d.]+ .*\| [\d.]+ .*\|$", text, re.M)
    assert "No conclusion has been written yet" in text
    assert "at 200 couples" in text
    drawing = ElementTree.fromstring((tmp_path / "people.svg").read_text(encoding="utf-8"))
    panels = drawing.findall("{http://www.w3.org/2000/svg}svg")
    assert len(panels) == 2

    page.write_text(text.replace("*No conclusion has been written yet.*", "It grows."), encoding="utf-8")
    monkeypatch.setattr(
        people_curve, "_train", lambda *given: pytest.fail("a model that is there is not trained again")
    )
    again = list(study(plan, work, told.append))
    assert again == found
    write_page(page, plan, _kept(again))
    assert page.read_text(encoding="utf-8") == text.replace("*No conclusion has been written yet.*", "It grows.")
    with pytest.raises(DataError, match="another suite or seed"):
        list(study(plan._replace(seed=1), work, told.append))

    write_kept(tmp_path / "people.json", plan, kept)
    elsewhere = read_kept(tmp_path / "people.json", plan)
    assert elsewhere.changes == kept.changes
    assert list(study(plan, tmp_path / "another", told.append, elsewhere.points)) == [
        point._replace(run=None) for point in found
    ], "what another machine has measured is not measured again"
    write_page(page, plan, elsewhere)
    assert page.read_text(encoding="utf-8") == text.replace("*No conclusion has been written yet.*", "It grows.")
    with pytest.raises(DataError, match="another suite or seed"):
        read_kept(tmp_path / "people.json", plan._replace(seed=1))


def _kept(found: list[Point]) -> Kept:
    points = {(point.method, point.couples): point for point in found}
    return Kept(points, changes(points))


def test_the_full_study_has_every_method_and_number() -> None:
    assert Plan().methods == ("user-bt", "vpl", "pal", "lore", "gpo", "cross", "stances", "contrast")
    assert Plan().couples == (5, 10, 20, 40, 70)
