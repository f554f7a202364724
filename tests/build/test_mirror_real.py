"""Real people's logs, where they are at hand: read in place, never copied. Their README says what they are."""

from collections import Counter
from pathlib import Path

import pytest

from prbench.build import MirrorConfig, build_mirror, count_mirrored
from prbench.build.columns import ITEM_FIELDS, Columns
from prbench.build.items import read_items
from prbench.build.judgments import JudgmentLog
from prbench.build.log import read_log

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
ARGUMENTS, JUDGMENTS = DATA / "ukpconvarg1_arguments.jsonl.gz", DATA / "ukpconvarg1_judgments.csv.gz"
JOKES, RATINGS = DATA / "jester_jokes.json", DATA / "jester5k_ratings.csv.gz"

needs_arguments = pytest.mark.skipif(not JUDGMENTS.is_file(), reason="the log of arguments is not at hand")
needs_jokes = pytest.mark.skipif(not RATINGS.is_file(), reason="the log of jokes is not at hand")


@needs_arguments
def test_arguments_have_the_known_number_of_mirrored_judgments():
    items = read_items(ARGUMENTS, Columns({}, ITEM_FIELDS))
    read = read_log(JUDGMENTS, items, {}, None)
    assert (len(items), read.rows, len(read.log.users)) == (1052, 84_445, 3815)
    assert isinstance(read.log, JudgmentLog)
    found = count_mirrored(read.log.preferences, len(items))
    assert (found.disputed, found.judgments) == (8221, 20_858)


@needs_arguments
def test_arguments_make_an_exact_suite(tmp_path: Path):
    build = build_mirror(JUDGMENTS, ARGUMENTS, tmp_path / "suite")
    card = build.card
    assert card.exactness.exact
    assert card.mirrorable["judgments"] == 20_858
    assert card.log.rows == sum(card.dropped.values()) + card.context["rows"] + len(build.suite)
    assert card.splits["test"].pairs > 400
    assert card.splits["train"].pairs > 1500
    assert all(split.users >= 200 for split in card.splits.values())
    topics = {split: {pair.category for pair in build.suite if pair.tags["split"] == split} for split in card.splits}
    assert not topics["train"] & topics["test"]


@pytest.mark.slow
@needs_jokes
def test_jokes_make_an_exact_suite():
    options = MirrorConfig(columns={"item": "joke"}, max_pairs=2000, max_per_user=10)
    build = build_mirror(RATINGS, JOKES, options=options)
    assert build.card.exactness.exact
    assert len(build.suite) == 2000
    assert build.card.splits["test"].pairs > 300
    asked = Counter((pair.tags["split"], pair.user) for pair in build.suite)
    assert max(asked.values()) <= 10
