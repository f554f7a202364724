"""What leaves a study, and that `prbench build mirror` takes it."""

import json

import pytest

from annotate_study import fill, pairs, prefer_green, scores, study
from prbench.annotate.answer import AnnotatorAnswer
from prbench.annotate.export import export
from prbench.annotate.own_posts import keep_posts
from prbench.build import MirrorConfig, build_mirror
from prbench.data import load_pairs
from prbench.errors import ConfigError


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def lover(wanted, reason=""):
    def decide(shown, green_first):
        number = int(shown.first.split("number ")[1].split(".")[0])
        green = (number + wanted) % 2 == 0
        return AnnotatorAnswer(preference="first" if green == green_first else "second", reason=reason)

    return decide


@pytest.fixture
def told(tmp_path):
    """Six people with posts, half of whom want on every question what the others do not."""
    opened = study(tmp_path, pairs(16), mode="self", names=[f"Name {n}" for n in range(6)], pairs=None)
    for number in range(6):
        with opened.store.writing() as connection:
            keep_posts(connection, number + 1, [f"post {each} of {number}" for each in range(3)], start=True)
        fill(opened.store, number + 1, lover(number % 2, f"because, says {number}"))
    return opened.store


def test_mode_self_feeds_build_mirror(told, tmp_path):
    out = tmp_path / "export"
    written = export(told, out)
    assert {path.name: count for path, count in written.items()} == {
        "annotations.jsonl": 96,
        "judgments.jsonl": 96,
        "items.jsonl": 32,
        "posts.jsonl": 18,
        "pairs.jsonl": 96,
    }
    built = build_mirror(
        out / "judgments.jsonl",
        out / "items.jsonl",
        tmp_path / "suite",
        MirrorConfig(splits=(0, 0, 100)),
    )
    assert built.card.exactness.exact
    suite = load_pairs(tmp_path / "suite" / "pairs.parquet")
    assert suite.is_mirrored
    assert len(suite) >= 20
    for pair in suite:  # every label is what that person said
        number = int(pair.chosen.split("number ")[1].split(".")[0])
        person = int(pair.user.removeprefix("p")) - 1
        assert pair.chosen.startswith("Green") == ((number + person) % 2 == 0)
        assert pair.question.startswith(f"Question {number}:")
        assert f"because, says {person}" in pair.profile[0].text


def test_every_judgment_is_a_pair_with_the_persons_own_posts(told, tmp_path):
    export(told, tmp_path / "export")
    suite = load_pairs(tmp_path / "export" / "pairs.jsonl")
    assert len(suite) == 96
    assert len({pair.user for pair in suite}) == 6
    assert [post.text for post in suite.by_user()["p2"][0].profile] == [f"post {each} of 1" for each in range(3)]


def test_reasons_speak_of_what_was_shown_first(told, tmp_path):
    export(told, tmp_path / "export")
    texts = {row["id"]: row["text"] for row in rows(tmp_path / "export" / "items.jsonl")}
    shown = {(r["annotator"], r["pair"]): r["shown_first"] for r in rows(tmp_path / "export" / "annotations.jsonl")}
    for row in rows(tmp_path / "export" / "judgments.jsonl"):
        first = texts[row["a"]]
        pair = f"pair-id-{first.split('number ')[1].split('.')[0]}"
        assert first.startswith("Green") == (shown[row["user"], pair] == "chosen")


def test_nobody_leaves_under_a_name(told, tmp_path):
    export(told, tmp_path / "export")
    assert not any("Name" in path.read_text() for path in (tmp_path / "export").iterdir())


def test_cannot_tell_is_equal_and_no_pair(tmp_path):
    opened = study(tmp_path, mode="self")
    with opened.store.writing() as connection:
        keep_posts(connection, 1, ["one", "two", "three"], start=True)
    fill(opened.store, 1, lambda shown, green: AnnotatorAnswer(preference="unsure"))
    written = export(opened.store, tmp_path / "export")
    assert {row["choice"] for row in rows(tmp_path / "export" / "judgments.jsonl")} == {"equal"}
    assert "pairs.jsonl" not in {path.name for path in written}


def test_mode_pairs_gives_ratings_by_label(tmp_path):
    opened = study(tmp_path)

    def decide(shown, green_first):
        good, bad = scores(5), scores(2)
        return AnnotatorAnswer(
            preference="unsure", first=good if green_first else bad, second=bad if green_first else good
        )

    fill(opened.store, 2, decide)
    assert [path.name for path in export(opened.store, tmp_path / "export")] == ["annotations.jsonl"]
    found = rows(tmp_path / "export" / "annotations.jsonl")
    assert len(found) == 6
    assert {row["chosen_helpfulness"] for row in found} == {5}
    assert {row["rejected_factuality"] for row in found} == {2}
    assert {row["shown_first"] for row in found} == {"chosen", "rejected"}
    assert set(found[0]) == {
        *("annotator", "pair", "shown_first", "preference", "versions", "saved_at"),
        *(f"{side}_{name}" for side in ("chosen", "rejected") for name in ("factuality", "relevance", "helpfulness")),
    }


def test_nothing_to_export_is_said(tmp_path):
    opened = study(tmp_path)
    with pytest.raises(ConfigError, match="no judgment yet"):
        export(opened.store, tmp_path / "export")
    fill(opened.store, 1, prefer_green)
    assert export(opened.store, tmp_path / "export")
