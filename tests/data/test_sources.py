"""What a user may name: suites, files, folders; and what happens when it is not there."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pair_factory import make_pair
from prbench._version import __version__
from prbench.data import load_pairs, load_questions, registry, suites, write_pairs
from prbench.data.compact import read_compact, write_compact
from prbench.errors import DataError
from prbench.types import Post


def pair(name, **tags):
    return make_pair(name, question=f"Tea {name}?", tags=tags)


def fails(source, **options):
    with pytest.raises(DataError) as caught:
        load_pairs(source, **options)
    return caught.value


def test_a_single_files_split(tmp_path):
    assert load_pairs(write_pairs([pair("1")], tmp_path / "mine.jsonl")).record.splits == {"test": 1}
    assert load_pairs(write_pairs([pair("1")], tmp_path / "train.csv")).record.splits == {"train": 1}
    assert load_pairs(write_pairs([pair("1", split="dev")], tmp_path / "train.parquet")).record.splits == {"dev": 1}


def test_a_folder_of_splits(tmp_path):
    write_pairs([pair("1")], tmp_path / "train.jsonl")
    write_pairs([pair("2")], tmp_path / "test-00000-of-00002.parquet")
    write_pairs([pair("3")], tmp_path / "test-00001-of-00002.parquet")
    (tmp_path / "README.md").write_text("about")
    (tmp_path / ".hidden.jsonl").write_text("broken")
    suite = load_pairs(str(tmp_path))
    assert suite.record.splits == {"test": 2, "train": 1}
    assert suite.record.name == tmp_path.name
    assert [item.id for item in load_pairs(tmp_path, split="train")] == ["1"]
    error = fails(tmp_path, split="tets")
    assert "no split 'tets'" in error.message
    assert error.hint == "splits present: test, train"


def test_ids_are_unique_over_a_folder(tmp_path):
    write_pairs([pair("1")], tmp_path / "a.jsonl")
    write_pairs([pair("1")], tmp_path / "b.csv")
    message = fails(tmp_path).message
    assert "b.csv, line 2" in message
    assert "a.jsonl, line 1" in message


def test_the_record_names_the_source(tmp_path):
    path = write_pairs([pair("1")], tmp_path / "mine.jsonl.gz")
    record = load_pairs(str(path)).record
    assert (record.name, record.source, record.revision) == ("mine", str(path), "")
    assert type(record).model_validate_json(record.model_dump_json()) == record


def test_a_path_that_does_not_exist_suggests_its_neighbours(tmp_path):
    write_pairs([pair("1")], tmp_path / "pairs.jsonl")
    error = fails(tmp_path / "pair.jsonl")
    assert "does not exist" in error.message
    assert "'pairs.jsonl'" in error.hint
    assert "nor does its folder" in fails(tmp_path / "no" / "pairs.jsonl").message


def test_unsupported_extension_and_empty_folder(tmp_path):
    (tmp_path / "pairs.xlsx").write_text("x")
    error = fails(tmp_path / "pairs.xlsx")
    assert "unsupported extension '.xlsx'" in error.message
    assert ".parquet" in error.hint
    error = fails(tmp_path)
    assert "no JSONL, Parquet or CSV file" in error.message
    assert f"prb={tmp_path}" in error.hint


@pytest.mark.parametrize(
    ("source", "hint"),
    [("prp", "did you mean 'prb'?"), ("prb/Arts", "did you mean 'prb/Art'?"), ("prims=/tmp", "did you mean 'prism'?")],
)
def test_an_unknown_suite(source, hint):
    assert fails(source).hint == hint


def test_an_unknown_suite_without_a_near_name_lists_all():
    assert fails("zzzz").hint.startswith("known: ")


def test_a_copy_that_is_no_folder(tmp_path):
    error = fails(f"prb={tmp_path / 'none'}")
    assert "is no folder" in error.message
    assert "prb=DIR" in error.hint


def test_a_revision_means_nothing_for_files(tmp_path):
    path = write_pairs([pair("1")], tmp_path / "pairs.jsonl")
    assert "revision 'main'" in fails(path, revision="main").message


def test_lamp_qa_has_no_pairs(tmp_path):
    for source in ("lamp-qa", f"lamp-qa={tmp_path}"):
        error = fails(source)
        assert "no answers" in error.message
        assert "load_questions" in error.hint
        assert "prbench build" in error.hint


def test_a_lone_half_of_a_couple_in_a_file(tmp_path):
    path = write_pairs([pair("1", mirror="m")], tmp_path / "pairs.jsonl")
    message = fails(path).message
    assert "'m'" in message
    assert "'1' has no other half" in message


def test_suites_are_listed_with_where_they_are():
    listed = {suite.name: suite for suite in suites()}
    assert {"prb", "prb/Art", "lamp-qa", "prism", "arena", "rewardbench-2"} <= set(listed)
    assert "QiyaoMa/Personalized-RewardBench" in listed["prb"].where
    assert {name for name, suite in listed.items() if suite.kind == "questions"} == {
        "lamp-qa",
        "lamp-qa/Art",
        "lamp-qa/Lifestyle",
        "lamp-qa/Society",
    }


def test_an_embedded_suite_exists_when_its_file_does(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_EMBEDDED_FOLDER", tmp_path)
    assert "starter" not in [suite.name for suite in suites()]
    assert "neither a suite nor a file" in fails("starter").message
    write_pairs([pair("1", split="train"), pair("2")], tmp_path / "starter.jsonl")
    write_compact([pair("3")], tmp_path / "mirror.parquet")
    assert [suite.name for suite in suites()][:2] == ["mirror", "starter"]
    suite = load_pairs("starter")
    assert suite.record.splits == {"test": 1, "train": 1}
    assert (suite.record.name, suite.record.source, suite.record.revision) == ("starter", "embedded", __version__)
    assert load_pairs("mirror")[0].id == load_pairs("mirror@2")[0].id == "3"
    assert load_pairs("mirror").record.name == "mirror@2"
    assert "neither a suite nor a file" in fails("mirror@1").message
    write_compact([pair("4")], tmp_path / "mirror-1.parquet")
    assert [suite.name for suite in suites()][:3] == ["mirror", "mirror@1", "starter"]
    first = load_pairs("mirror@1")
    assert (first[0].id, first.record.name, first.record.revision) == ("4", "mirror@1", "1")


def test_a_suites_name_comes_before_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pairs([pair("1")], tmp_path / "x.jsonl")
    shutil.copy(tmp_path / "x.jsonl", tmp_path / "lamp-qa")
    assert "no answers" in fails("lamp-qa").message
    assert "unsupported extension" in fails("./lamp-qa").message


def test_questions_from_a_source_of_pairs(tmp_path):
    path = write_pairs([pair("1"), pair("2", split="train")], tmp_path / "pairs.jsonl")
    assert [question.id for question in load_questions(path, split="train")] == ["2"]
    with pytest.raises(DataError, match="has no split 'x'"):
        load_questions(path, split="x")


def test_importing_and_listing_loads_nothing_heavy():
    code = (
        "import sys, prbench.data as data; data.suites();"
        "print([m for m in ('pyarrow', 'datasets', 'torch', 'huggingface_hub', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ten_thousand_pairs_share_fifty_profiles(tmp_path):
    profiles = [[{"id": f"{u}-{n}", "text": f"Post {n} of {u}. " * 20} for n in range(12)] for u in range(50)]
    path = tmp_path / "pairs.jsonl"
    with Path(path).open("w") as file:
        for number in range(10_000):
            row = {"id": number, "user": f"u{number % 50}", "question": f"Q{number}?", "chosen": "a", "rejected": "b"}
            file.write(json.dumps({**row, "profile": profiles[number % 50]}) + "\n")
    suite = load_pairs(path)
    assert len(suite) == 10_000
    assert len({id(item.profile) for item in suite}) == 50


def test_the_compact_layout_round_trips_and_shares_profiles(tmp_path):
    posts = (Post(id="p", text="I bake."),)
    pairs = [pair(name, axis=name).model_copy(update={"profile": posts}) for name in ("1", "2")]
    write_compact(pairs, tmp_path / "one.parquet")
    write_compact(pairs, tmp_path / "two.parquet")
    found = read_compact(tmp_path / "one.parquet")
    assert found == pairs
    assert found[0].profile is found[1].profile
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
