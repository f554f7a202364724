"""The suites that ship: exact by construction, in step with their sources, and sound by their own audit."""

import hashlib
import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench import evaluate, load_pairs
from prbench.audit import audit, load_people
from prbench.stats import Estimate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mirror():
    return load_pairs("mirror")


def test_what_ships(mirror):
    assert len(mirror.by_user()) == 50
    assert mirror.is_mirrored
    assert len(mirror) >= 10_000
    assert mirror.record.splits["test"] >= 2_500
    assert set(mirror.record.splits) == {"train", "validation", "test", "seen-users"}
    assert len({pair.category for pair in mirror}) == 12
    assert len({axis for pair in mirror for axis in pair.tags["axis"].split("+")}) == 20
    couples = {split: {p.tags["couple"] for p in mirror if p.tags["split"] == split} for split in mirror.record.splits}
    assert [len(couples[split]) for split in ("train", "validation", "test", "seen-users")] == [10, 5, 10, 10]
    questions = {split: {p.question for p in mirror if p.tags["split"] == split} for split in mirror.record.splits}
    assert [len(questions[split]) for split in ("train", "validation", "test")] == [96, 24, 60]
    assert not questions["train"] & questions["test"]
    assert not questions["train"] & questions["validation"]
    assert couples["seen-users"] == couples["train"]


def test_unseen_axes_are_in_test_only(mirror):
    splits = defaultdict(set)
    for pair in mirror:
        for axis in pair.tags["axis"].split("+"):
            splits[axis].add(pair.tags["split"])
    unseen = {axis for axis, found in splits.items() if "train" not in found}
    assert unseen == {"humour", "candour", "tools"}
    assert all(
        pair.tags["unseen"] == ("yes" if unseen & set(pair.tags["axis"].split("+")) else "no") for pair in mirror
    )


@given(salt=st.text(max_size=10), levels=st.integers(1, 9))
@settings(max_examples=8, deadline=None)
def test_any_function_of_question_and_answer_scores_exactly_half_everywhere(salt, levels):
    scores: dict[tuple[str, str], int] = {}

    def score(question: str, answer: str) -> int:
        key = (question, answer)
        if key not in scores:
            scores[key] = hashlib.sha256(f"{salt}{question}{answer}".encode()).digest()[0] % levels
        return scores[key]

    earned: Counter[tuple[str, str]] = Counter()
    count: Counter[tuple[str, str]] = Counter()
    for pair in load_pairs("mirror"):
        difference = score(pair.question, pair.chosen) - score(pair.question, pair.rejected)
        credit = Fraction(1, 2) if difference == 0 else Fraction(int(difference > 0))
        for stratum in ("split", "axis", "family"):
            earned[stratum, pair.tags[stratum]] += credit
            count[stratum, pair.tags[stratum]] += 1
        earned["category", f"{pair.tags['split']} {pair.category}"] += credit
        count["category", f"{pair.tags['split']} {pair.category}"] += 1
    assert all(2 * earned[stratum] == count[stratum] for stratum in count)


@pytest.mark.parametrize("model", ["longer", "shorter", "overlap", "random"])
def test_content_blind_models_score_exactly_half(model):
    found = evaluate(model, "mirror", split="test", contexts=["none"], by=["axis", "family"], resamples=100)
    none = found.contexts["none"]
    assert none.accuracy == Estimate(0.5, 0.5, 0.5, 2668)
    groups = [*none.categories.values(), *none.by["axis"].values(), *none.by["family"].values()]
    assert {group.value for group in groups} == {0.5}
    assert none.couple_coverage.value == 0.0
    assert none.mirror_consistency.value == 0.0


def test_the_shipped_files_are_what_the_sources_give(tmp_path):
    for script in (["suite/check.py", *map(str, sorted((ROOT / "suite").glob("[dp]*/*.toml")))], ["suite/compile.py"]):
        out = ["--out", str(tmp_path)] if script[0].endswith("compile.py") else []
        done = subprocess.run([sys.executable, *script, *out], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("mirror", "generic", "training/passages"):
        shipped = ROOT / "src" / "prbench" / "data" / "embedded" / f"{name}.parquet"
        assert shipped.read_bytes() == (tmp_path / f"{name}.parquet").read_bytes(), f"run `make suite`: {name} is stale"
        assert shipped.stat().st_size < 15e6


def test_the_shipped_suite_passes_its_audit(mirror):
    people = load_people(ROOT / "suite" / "design.toml", set(mirror.by_user()))
    found = audit(mirror, people=people)
    assert [(finding.check, finding.verdict) for finding in found.findings if finding.verdict == "fail"] == []


def test_the_companion_has_a_sound_and_a_flawed_answer():
    generic = load_pairs("generic")
    assert len(generic) == 720
    assert all(not pair.profile and pair.narrative.startswith("Flaw") for pair in generic)
    assert Counter(pair.rejected for pair in generic).most_common(1)[0][1] == 4
