"""The suites that ship: exact by construction, in step with their sources, and sound by their own audit."""

import hashlib
import subprocess
import sys
import tomllib
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
    assert (mirror.record.name, mirror.record.revision) == ("mirror@2", "2")
    assert len(mirror.by_user()) == 250
    assert mirror.is_mirrored
    splits = ("train", "validation", "test", "seen-users")
    assert set(mirror.record.splits) == set(splits)
    assert [mirror.record.splits[split] for split in splits] == [20_736, 1_064, 3_428, 5_546]
    assert len({pair.category for pair in mirror}) == 12
    assert len({axis for pair in mirror for axis in pair.tags["axis"].split("+")}) == 20
    couples = {split: {p.tags["couple"] for p in mirror if p.tags["split"] == split} for split in splits}
    assert [len(couples[split]) for split in splits] == [70, 15, 40, 70]
    questions = {split: {p.question for p in mirror if p.tags["split"] == split} for split in splits}
    assert [len(questions[split]) for split in splits[:3]] == [96, 24, 60]
    assert not questions["train"] & questions["test"]
    assert not questions["train"] & questions["validation"]
    assert couples["seen-users"] == couples["train"]
    ships = ROOT / "src" / "prbench" / "data" / "embedded"
    assert (
        sum(
            (ships / f"{name}.parquet").stat().st_size
            for name in ("mirror", "generic", "training/passages", "training/forms", "training/flaws")
        )
        < 4e6
    )


def test_a_couple_and_a_question_give_few_pairs_and_none_is_left_out(mirror):
    design = tomllib.loads((ROOT / "suite" / "design.toml").read_text(encoding="utf-8"))
    found = Counter()
    for pair in mirror:
        user, question, _ = pair.id.split(":")
        found[pair.tags["split"], user, question] += 1
    asked = {question: row for rows in design["questions"].values() for question, row in rows.items()}
    wanted = {}
    for user, person in design["personas"].items():
        for question, row in asked.items():
            split = "seen-users" if (person["split"], row["split"]) == ("train", "test") else person["split"]
            if split == "seen-users" or row["split"] == split:
                most = 2 if split in ("train", "validation") else 1
                if {row["content"], row["manner"]} & person["stances"].keys():
                    wanted[split, user, question] = most
    assert found == wanted


def test_pairs_are_spread_over_axes_domains_and_answers(mirror):
    for split, least in (("train", 0.9), ("test", 0.6), ("seen-users", 0.65)):
        pairs = [pair for pair in mirror if pair.tags["split"] == split]
        axes = Counter(pair.tags["axis"] for pair in pairs if pair.tags["axes"] == "1")
        assert min(axes.values()) >= least * max(axes.values())
        domains = Counter(pair.category for pair in pairs)
        assert min(domains.values()) >= 0.5 * max(domains.values())
    answers = {pair.chosen for pair in mirror}
    assert len(answers) == 720  # every sound answer is wanted by somebody


def test_histories_are_of_three_lengths_and_equal_in_a_couple(mirror):
    users = {pair.user: pair for pair in mirror}
    lengths = Counter(pair.tags["history"] for pair in users.values())
    assert lengths == {"short": 50, "medium": 150, "long": 50}
    for user, pair in users.items():
        posts, history = len(pair.profile), pair.tags["history"]
        assert posts in {"short": range(5, 8), "medium": range(12, 15), "long": range(20, 26)}[history]
        assert users[f"{user[:-1]}a"].tags["history"] == users[f"{user[:-1]}b"].tags["history"]


def test_the_first_version_stays_as_it_was():
    first = load_pairs("mirror@1")
    assert (first.record.name, first.record.revision, len(first)) == ("mirror@1", "1", 11_008)
    assert first.record.fingerprint == "2b9bbd85d4d3ce08a074cbdcda1e8cdc169eb61f2eba727cfcbace20de243372"
    assert len(load_pairs("generic@1")) == 720
    for name, checksum in (("mirror-1", "40b1592f6269649b"), ("generic-1", "6e95d0ad91f494e8")):
        shipped = ROOT / "src" / "prbench" / "data" / "embedded" / f"{name}.parquet"
        assert hashlib.sha256(shipped.read_bytes()).hexdigest().startswith(checksum)


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
        for stratum in ("split", "axis", "family", "history", "unseen", "mirror"):
            earned[stratum, pair.tags[stratum]] += credit
            count[stratum, pair.tags[stratum]] += 1
        earned["category", f"{pair.tags['split']} {pair.category}"] += credit
        count["category", f"{pair.tags['split']} {pair.category}"] += 1
    assert all(2 * earned[stratum] == count[stratum] for stratum in count)


@pytest.mark.parametrize("model", ["longer", "shorter", "overlap", "random"])
def test_content_blind_models_score_exactly_half(model):
    found = evaluate(model, "mirror", split="test", contexts=["none"], by=["axis", "family", "history"], resamples=100)
    none = found.contexts["none"]
    assert none.accuracy == Estimate(0.5, 0.5, 0.5, 3428)
    groups = [
        *none.categories.values(),
        *none.by["axis"].values(),
        *none.by["family"].values(),
        *none.by["history"].values(),
    ]
    assert {group.value for group in groups} == {0.5}
    assert none.couple_coverage.value == 0.0
    assert none.mirror_consistency.value == 0.0


def test_the_shipped_files_are_what_the_sources_give(tmp_path):
    for script in (["suite/check.py", "--all"], ["suite/compile.py"]):
        out = ["--out", str(tmp_path)] if script[0].endswith("compile.py") else []
        done = subprocess.run([sys.executable, *script, *out], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("mirror", "generic", "training/passages", "training/forms", "training/flaws"):
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
