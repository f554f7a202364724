"""Pairs and records are kept by column: what the garbage collector has to walk over does not grow with them."""

import gc

import pytest

from pair_factory import make_pair
from prbench import evaluate
from prbench.data import write_pairs
from prbench.report.page import evidence
from prbench.report.page.columns import pack
from prbench.report.page.texts import load_texts
from prbench.results import verify
from prbench.types import Aspect, Pair, Post

SMALL, LARGE = 400, 2400
SHOWN = 200
"""Pairs that a page lists."""
MOST = 0.1
"""Objects that the collector tracks, for each further record."""


def mirrored(pairs: int) -> list[Pair]:
    """Couples of opposite pairs of twenty users, all texts distinct."""
    found = []
    for number in range(pairs // 2):
        answers = [f"answer {number} long enough", f"answer {number}"]
        for half in range(2):
            user = f"u{2 * (number % 10) + half}"
            found.append(
                make_pair(
                    id=f"{number}-{half}",
                    user=user,
                    question=f"question {number}",
                    profile=(Post(id=f"{user}-1", text=f"I am {user}."),),
                    rubric_aspects=(Aspect(aspect=f"wants {half}"),),
                    chosen=answers[half],
                    rejected=answers[1 - half],
                    tags={"split": "test", "mirror": f"m{number}", "couple": f"c{number % 10}"},
                )
            )
    return found


def tracked() -> int:
    gc.collect()
    return len(gc.get_objects())


def grown(pairs: int, folder) -> dict[str, int]:
    """Tracked objects in the middle of a run, after it, after verifying and while a report is made."""
    counts: dict[str, int] = {}
    asked = 0

    def score(question: str, answer: str) -> float:
        nonlocal asked
        asked += 1
        if asked == pairs - 10:  # of as many distinct answers
            counts["asking"] = tracked()
        return float(len(answer))

    suite = folder.with_suffix(".jsonl")
    write_pairs(mirrored(pairs), suite)
    before = tracked()
    found = evaluate(score, str(suite), contexts=["none"], out=folder, cache=False, resamples=100)
    counts["run"] = tracked()
    assert len(found.records) == pairs
    del found
    assert not verify(folder).mismatches
    counts["verified"] = tracked()
    read = evidence.read_runs([folder])
    texts = load_texts(read)
    payload = pack(read, texts, room=10**7)
    counts["reported"] = tracked()
    assert texts.pairs
    assert payload.index["pairs"] == SHOWN
    return {step: count - before for step, count in counts.items()}


@pytest.mark.filterwarnings("ignore")
def test_tracked_objects_do_not_grow_with_records(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "MOST_SHOWN", SHOWN)
    grown(SMALL, tmp_path / "first")  # what is imported on the way does not count
    small, large = grown(SMALL, tmp_path / "small"), grown(LARGE, tmp_path / "large")
    assert set(large) == {"asking", "run", "verified", "reported"}
    per_record = {step: (large[step] - small[step]) / (LARGE - SMALL) for step in large}
    assert max(per_record.values()) < MOST, per_record
