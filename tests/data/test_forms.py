"""Data as people have it: JSON, TSV, compressed, a profile as one text."""

import gzip
import json

import pytest

from prbench import load_pairs
from prbench.errors import DataError

ROW = {
    "id": "1",
    "user": "ann",
    "question": "Tea?",
    "chosen": "Green.",
    "rejected": "Black.",
    "profile": "I like it mild.",
}
TSV = "\t".join(ROW) + "\n" + "\t".join(ROW.values()) + "\n"
FORMS = {
    "pairs.json": json.dumps([ROW]),
    "wrapped.json": json.dumps({"version": 1, "data": [ROW]}, indent=2),
    "pairs.tsv": TSV,
    "pairs.jsonl": json.dumps(ROW) + "\n",
    "pairs.csv": TSV.replace("\t", ","),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "text"), FORMS.items(), ids=FORMS)
def test_every_form_gives_the_same_pair(tmp_path, name, text, packed):
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    [pair] = load_pairs(path)
    assert (pair.id, pair.question, pair.chosen) == ("1", "Tea?", "Green.")
    assert [post.text for post in pair.profile] == ["I like it mild."]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "expected a list of pairs"),
        ('{"a": [1], "b": [2]}', "expected a list of pairs"),
        ("[1]", "row 1: expected an object, found a number"),
        ("[", "not JSON"),
        ('"x"', "holds text"),
    ],
)
def test_other_json_is_refused_with_its_place(tmp_path, text, says):
    path = tmp_path / "pairs.json"
    path.write_text(text)
    with pytest.raises(DataError, match=says):
        load_pairs(path)


def test_a_json_file_in_a_folder_is_not_taken_for_pairs(tmp_path):
    (tmp_path / "test.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "dataset_info.json").write_text('{"features": {}}')
    assert len(load_pairs(tmp_path)) == 1
