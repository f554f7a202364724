"""Effects are defined once; the documents and every table say what the definition says."""

from pathlib import Path

import pytest

from golden_runs import RUNS
from prbench.report import run_tables
from prbench.results import EFFECTS, SOUNDNESS, Effects, RunFolder, own_context, read_result
from prbench.show import render

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: effect.key)
def test_documents_read_the_definition(effect):
    row = f"| {effect.name} | {effect.formula} | {effect.sentence} |"
    assert row in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert f"**{effect.name}** = {effect.formula}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_effect_is_a_field_of_the_result():
    assert [effect.key for effect in EFFECTS] == list(Effects.model_fields)


def test_tables_read_the_definition():
    result = read_result(RunFolder(Path(__file__).parent / "golden" / "rater"))
    shown = " ".join(render(run_tables(result), "table").split())
    for effect in EFFECTS:
        if effect is SOUNDNESS:  # on suites with lent posts alone: tests/scorecard/test_soundness.py
            continue
        assert effect.title in shown
        assert f"{effect.name}: {effect.sentence}" in shown


@pytest.mark.parametrize("name", RUNS)
def test_an_effect_is_the_difference_of_its_contexts(name):
    result = read_result(RunFolder(Path(__file__).parent / "golden" / name))
    own = own_context(result.contexts)
    for effect in EFFECTS[:3]:
        found = result.effects.of(effect)
        if own is None or effect.control not in result.contexts:
            assert found is None
        elif found.n and found.n == result.contexts[own].accuracy.n == result.contexts[effect.control].accuracy.n:
            difference = result.contexts[own].accuracy.value - result.contexts[effect.control].accuracy.value
            assert found.value == pytest.approx(difference)
