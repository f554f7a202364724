"""`prbench study correlate` on real runs of graded raters and studies with known outcomes."""

import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from prbench import evaluate
from prbench.cli import app
from prbench.data import write_pairs
from prbench.errors import ConfigError, RunError, StudyError
from prbench.models import ModelCard
from prbench.stats.correlation import coefficient
from prbench.studies import CorrelateConfig, Study, correlation_tables, read_study
from prbench.studies import correlate as compute
from prbench.studies.agreement import Correlated
from prbench.studies.benchmark import Wanted, earned, read_benchmarks
from prbench.types import AnswerView, Channel, Outcome
from small_suite import Spy, follows_posts, mirrored

FAST = CorrelateConfig(resamples=100, permutations=200)
QUALITY = {"py:graded:a": 0.55, "py:graded:b": 0.65, "py:graded:c": 0.75, "py:graded:d": 0.85, "py:graded:e": 0.97}
BLIND = "shorter"


def correlate(*arguments, **options):
    """What is found, as it is printed."""
    return compute(*arguments, **options).to_json()


MODELS = [*QUALITY, BLIND]


class Graded(Spy):
    """Follows the user's posts on a share of the questions, and goes against them on the rest."""

    def __init__(self, address: str, quality: float) -> None:
        super().__init__()
        self.quality = quality
        self.card = ModelCard(address=address, revision="1", reads=frozenset(Channel))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        for index, view in enumerate(views):
            coin = zlib.crc32(f"{view.question} {view.user}".encode()) / 2**32
            score = follows_posts(view.question, view.answer, view.posts)
            yield index, Outcome.scored(score if coin < self.quality else -score)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Six runs on the benchmark below `mirror`, six below `rival`, where the graded ones stand the other way round."""
    folder = tmp_path_factory.mktemp("runs")
    for suite, turned in (("mirror", False), ("rival", True)):
        pairs = mirrored(couples=5, questions=6)
        if turned:
            pairs = [pair.model_copy(update={"question": f"Pray, {pair.question}"}) for pair in pairs]
        file = write_pairs(pairs, folder / f"{suite}.jsonl")
        grades = dict(zip(QUALITY, reversed(QUALITY.values()), strict=True)) if turned else QUALITY
        models = {address: Graded(address, quality) for address, quality in grades.items()} | {BLIND: BLIND}
        for number, model in enumerate(models.values()):
            out = folder / suite / str(number)
            evaluate(model, file, contexts=["none", "profile"], resamples=100, out=out, cache=False)
    return folder


def study(models: Sequence[str] = MODELS, *, count: int = 40, **changes) -> dict:
    """A study in which models do better the later they stand in the list, but the blind one worst."""
    rng = np.random.default_rng(0)
    places = {name: 0.0 if name == BLIND else 1.0 + index for index, name in enumerate(models)}
    scores = {
        name: {f"i{item}": place / 10 + float(rng.normal()) / 50 for item in range(count)}
        for name, place in places.items()
    }
    labels = {f"i{item}": {"unit": f"u{item // 4}", "question": f"q{item % 4}"} for item in range(count)}
    outcomes = {
        name: {"score": {"value": float(np.mean(list(found.values()))), "n": count}, "items": found}
        for name, found in scores.items()
    }
    return {
        "kind": "best-of-n",
        "suite": "mirror",
        "policy": "lm:small",
        "judge": {"address": "probe", "accuracy": {"value": 0.9, "low": 0.85, "high": 0.93, "n": 300}},
        "models": outcomes,
        "items": labels,
        **changes,
    }


@pytest.fixture
def write(tmp_path):
    def write(content: dict, name: str = "study.json"):
        path = tmp_path / name
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write


def test_an_empty_mirror_is_no_mirror(tmp_path):
    pairs = [
        pair.model_copy(update={"tags": {**pair.tags, "mirror": ""}}) for pair in mirrored(couples=1, questions=2)[:3]
    ]
    evaluate(BLIND, pairs, contexts=["none"], resamples=100, out=tmp_path / "run")
    (benchmark,) = read_benchmarks([tmp_path / "run"])
    assert earned(benchmark, [Wanted(BLIND, "none")]).items.scores.shape == (1, 3)


def test_a_ranking_that_carries_over_is_found_with_its_uncertainty(runs, write):
    found = correlate([runs / "mirror"], [write(study())], options=FAST)
    (one,) = found["studies"]
    assert one["n"] == 6
    accuracy = {model["address"]: model["benchmark"] for model in one["models"]}
    assert accuracy[BLIND] == 0.5
    assert [accuracy[name] for name in QUALITY] == sorted({accuracy[name] for name in QUALITY})
    assert {model["address"]: model["context"] for model in one["models"]} == {
        **dict.fromkeys(QUALITY, "profile"),
        BLIND: "none",  # it does not read the profile
    }
    downstream = {model["address"]: model["downstream"] for model in one["models"]}
    for name, scored in one["coefficients"].items():
        expected = coefficient(name, [accuracy[m] for m in MODELS], [downstream[m] for m in MODELS])
        assert scored["over_models"]["value"] == pytest.approx(expected)
        assert scored["over_items"]["value"] == pytest.approx(expected)
        assert scored["permutation"]["exact"]
        assert set(scored["jackknife"]["values"]) == set(MODELS)
    assert (one["pairs"], one["items"]) == (60, 40)
    assert found["models_needed"] == {"0.8": 10, "0.7": 15, "0.6": 21, "0.5": 31, "0.3": 90}


def test_a_rival_that_ranks_the_other_way_round_is_beaten_on_paper_but_not_past_the_data(runs, write):
    found = correlate([runs / "mirror"], [write(study())], [runs / "rival"], FAST)
    (rival,) = found["studies"][0]["rivals"]
    versus = rival["coefficients"]["spearman"]
    assert versus["difference"]["value"] == pytest.approx(versus["benchmark"] - versus["rival"])
    assert versus["benchmark"] > 0.5 > versus["rival"]
    assert versus["exact"]
    assert rival["missing"] == []
    assert rival["partial"]["spearman"]["n"] == 6
    assert rival["verdict"]["significant"] == ("is significant" in rival["verdict"]["sentence"])


def test_a_rival_without_variation_decides_nothing(runs, write):
    options = CorrelateConfig(baseline_context="none", resamples=100, permutations=200)
    found = correlate([runs / "mirror"], [write(study())], [runs / "mirror"], options)
    (rival,) = found["studies"][0]["rivals"]
    assert set(rival["models"].values()) == {0.5}
    assert rival["coefficients"]["spearman"]["rival"] is None
    assert rival["partial"]["spearman"]["value"] is None
    assert "nothing can be said" in rival["verdict"]["sentence"]
    assert correlation_tables(Correlated.model_validate(found))


def test_one_address_may_stand_in_several_contexts(runs, write):
    content = study()
    content["models"]["c without profile"] = {
        **content["models"]["py:graded:c"],
        "address": "py:graded:c",
        "context": "none",
    }
    (one,) = correlate([runs / "mirror"], [write(content)], options=FAST)["studies"]
    found = {model["name"]: (model["context"], model["benchmark"]) for model in one["models"]}
    assert found["c without profile"] == ("none", 0.5)
    assert found["py:graded:c"][0] == "profile"
    assert one["n"] == 7


def test_ladders_and_strangers_stay_out(runs, write):
    content = study()
    content["models"]["py:graded:a"]["apart"] = True
    content["models"]["hf:unknown"] = content["models"]["py:graded:b"]
    (one,) = correlate([runs / "mirror"], [write(content)], options=FAST)["studies"]
    assert one["n"] == 5
    assert list(one["apart"]) == ["py:graded:a"]
    assert one["unmatched"] == ["hf:unknown"]


def test_items_that_some_model_lacks_are_left_out_and_counted(runs, write):
    content = study()
    outcome = content["models"]["py:graded:b"]
    del outcome["items"]["i7"]
    outcome["score"]["value"] = float(np.mean(list(outcome["items"].values())))
    (one,) = correlate([runs / "mirror"], [write(content)], options=FAST)["studies"]
    assert (one["items"], one["items_left_out"]) == (39, 1)
    content["items"]["i6"] = content["items"]["i7"]  # the other user of a couple, with the same question
    (one,) = correlate([runs / "mirror"], [write(content)], options=FAST)["studies"]
    assert (one["items"], one["items_left_out"]) == (38, 2)
    outcome["items"] = {}
    with pytest.raises(StudyError, match=r"no item in common; 'py:graded:b' has 0 of 40"):
        correlate([runs / "mirror"], [write(content)], options=FAST)
    for outcome in content["models"].values():
        outcome["items"] = {}
    (bare,) = correlate([runs / "mirror"], [write(content)], options=FAST)["studies"]
    assert bare["coefficients"]["spearman"]["over_items"] is None


def test_several_studies_are_corrected_for_their_number(runs, write):
    paths = [write(study(), "one.json"), write(study(kind="ppo"), "two.json")]
    alone = correlate([runs / "mirror"], paths[:1], options=FAST)["studies"][0]["verdict"]["p_corrected"]
    both = correlate([runs / "mirror"], paths, options=FAST)["studies"]
    assert both[0]["verdict"]["p_corrected"] == pytest.approx(min(1.0, 2 * alone))


def test_the_same_seed_gives_the_same_numbers(runs, write):
    paths = write(study()), write(study(), "elsewhere.json")
    one, two = (correlate([runs / "mirror"], [path], [runs / "rival"], FAST) for path in paths)
    for found in (one, two):
        del found["studies"][0]["study"]
    assert one == two


def test_runs_of_a_sample_are_compared_on_the_pairs_that_all_have(runs, write, tmp_path):
    quality = QUALITY["py:graded:c"]
    model = Graded("py:graded:c", quality)
    evaluate(model, runs / "mirror.jsonl", contexts=["profile"], limit=20, out=tmp_path / "c", cache=False)
    folders = [path for path in sorted((runs / "mirror").iterdir()) if path.name != "2"]
    found = correlate([*folders, tmp_path / "c"], [write(study())], options=FAST)
    (one,) = found["studies"]
    assert (one["n"], one["pairs"], one["pairs_left_out"]) == (6, 20, 40)
    assert len(found["benchmark"]["fingerprints"]) == 2


def test_a_mirrored_pair_counts_with_its_image_or_not_at_all(runs, write, tmp_path):
    class Unsure(Graded):
        def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
            for index, outcome in super().rate(views):
                silent = zlib.crc32(f"{views[index].user} {views[index].question}".encode()) % 5 == 0
                yield index, Outcome.invalid("nothing to say") if silent else outcome

    evaluate(Unsure("py:graded:c", 0.75), runs / "mirror.jsonl", contexts=["profile"], out=tmp_path / "c", cache=False)
    folders = [path for path in sorted((runs / "mirror").iterdir()) if path.name != "2"]
    (one,) = correlate([*folders, tmp_path / "c"], [write(study())], options=FAST)["studies"]
    assert one["pairs_left_out"] > 0
    assert one["pairs"] % 2 == 0
    assert next(model["benchmark"] for model in one["models"] if model["address"] == BLIND) == 0.5


def test_models_of_lineages_are_drawn_whole_and_told_apart(runs, write):
    content = study()
    for name, kind in zip(QUALITY, ("one", "one", "two", "two", "three"), strict=True):
        content["models"][name]["lineage"] = kind
    found = compute([runs / "mirror"], [write(content)], [runs / "rival"], FAST)
    shown = found.studies[0].coefficients["spearman"]
    assert shown.lineages.lineages == 4  # the blind one stands for itself
    assert shown.lineages.value.value == shown.over_models.value
    difference = found.studies[0].rivals[0].lineages.difference
    assert difference.value == pytest.approx(found.studies[0].rivals[0].coefficients["spearman"].difference.value)
    printed = "\n".join(note for table in correlation_tables(found) for note in table.notes)
    assert "ρ over 4 lineages drawn whole" in printed
    assert "with lineages and couples drawn anew" in printed
    assert found.studies[0].verdict.p_corrected >= shown.lineages.p
    plain = compute([runs / "mirror"], [write(study())], [runs / "rival"], FAST)
    assert plain.studies[0].coefficients["spearman"].lineages is None


def test_models_tied_by_construction_are_held_in_place(runs, write, tmp_path):
    """Nothing but “those who read the user stand above those who do not” agrees: no verdict may come of that."""
    blind = [f"py:blind:{number}" for number in range(6)]
    for address in blind:
        model = Graded(address, 0.5)
        model.card = ModelCard(address=address, revision="1", reads=frozenset())
        evaluate(model, runs / "mirror.jsonl", contexts=["none"], out=tmp_path / address[-1], cache=False)
    order = ["py:graded:c", "py:graded:e", "py:graded:a", "py:graded:d", "py:graded:b"]
    content = study([*blind, *order])
    for name in blind:
        content["models"][name] = {**content["models"][blind[0]], "context": "none"}
    benchmark = [runs / "mirror", *(tmp_path / address[-1] for address in blind)]
    found = correlate(benchmark, [write(content)], [runs / "rival"], FAST)
    (one,) = found["studies"]
    everybody, readers = one["coefficients"]["spearman"], one["shown_the_user"]["coefficients"]["spearman"]
    assert everybody["over_models"]["value"] > 0.8
    assert everybody["permutation"]["orders"] == 120
    assert everybody["permutation"]["two_sided"] > 0.5
    assert readers["over_models"]["value"] == pytest.approx(-0.3)
    assert one["shown_the_user"]["names"] == order
    assert not one["verdict"]["significant"]
    (rival,) = one["rivals"]
    assert (rival["n"], rival["partial"]["spearman"]["n"]) == (5, 5)
    tables = correlation_tables(Correlated.model_validate(found))
    shown = [table.title for table in tables]
    assert "Agreement over the 5 models that are shown the user" in shown
    assert "Against rival benchmarks (the 5 models that are shown the user, same outcome)" in shown
    notes = tables[1].notes
    assert notes[0] == "p from all 120 orders of 5 models; " + (
        "the 6 that are not shown the user are tied by construction and held in place"
    )


def test_a_model_that_has_changed_since_its_run_is_refused(runs, write):
    content = study()
    content["models"]["py:graded:d"]["revision"] = "2"
    with pytest.raises(StudyError, match=r"'py:graded:d' was used at revision '2'.*is a run of '1'"):
        correlate([runs / "mirror"], [write(content)], options=FAST)


def test_what_is_only_described_gets_no_verdict(runs, write):
    options = CorrelateConfig(resamples=100, permutations=200, describe=True)
    found = correlate([runs / "mirror"], [write(study())], [runs / "rival"], options)
    assert "verdict" not in json.dumps(found)
    assert not any(
        "verdict" in note for table in correlation_tables(Correlated.model_validate(found)) for note in table.notes
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judge": {"address": "p", "accuracy": {"value": 0.53, "low": 0.48, "high": 0.58, "n": 400}}}, "at chance"),
        ({"judge": {"address": "p", "accuracy": {"value": 0.9, "n": 3}}}, "lower bound unknown"),
        ({"judge": {"address": BLIND, "accuracy": {"value": 0.9, "low": 0.8, "n": 99}}}, "both judge and ranked"),
        ({"candidates": "suite"}, "the benchmark itself"),
        ({"kind": "guess"}, "'kind': Input should be 'best-of-n' or 'ppo'"),
        ({"surprise": 1}, "'surprise': Extra inputs"),
        ({"items": {"i0": {"unit": "u", "question": "q"}}}, "has an item 'i1' without labels"),
    ],
)
def test_studies_that_may_not_rank_are_refused(write, change, message):
    with pytest.raises(StudyError, match=message):
        read_study(write(study(**change)))


def test_a_score_must_follow_from_its_items(write):
    content = study()
    content["models"]["py:graded:a"]["score"]["value"] += 0.01
    with pytest.raises(StudyError, match="is not the mean of its items"):
        read_study(write(content))
    content["models"]["py:graded:a"]["score"]["value"] = float("nan")
    with pytest.raises(StudyError, match="finite"):
        read_study(write(content))


def test_three_models_are_refused(runs, write):
    with pytest.raises(StudyError, match=r"3 reward models have a run on .* at least 4 are needed"):
        correlate([runs / "mirror"], [write(study(MODELS[:3]))], options=FAST)


def test_mistakes_in_the_runs_are_named(runs, write, tmp_path):
    path = write(study())
    with pytest.raises(ConfigError, match="these are of 2"):
        correlate([runs], [path], options=FAST)
    with pytest.raises(ConfigError, match="holds no run"):
        correlate([tmp_path], [path], options=FAST)
    with pytest.raises(ConfigError, match="no downstream study"):
        correlate([runs / "mirror"], [], options=FAST)
    with pytest.raises(ConfigError, match="has runs of 1 of the 6"):
        correlate([runs / "mirror"], [path], [runs / "rival" / "0"], FAST)
    with pytest.raises(RunError, match="has no context 'plan'"):
        correlate([runs / "mirror"], [path], options=CorrelateConfig(context="plan"))
    with pytest.raises(StudyError, match="there is no study"):
        correlate([runs / "mirror"], [tmp_path / "nowhere.json"], options=FAST)


def test_a_folder_stands_for_its_study_file(write):
    assert isinstance(read_study(write(study()).parent), Study)


def test_the_command_takes_lists_and_prints_a_table(runs, write, tmp_path):
    out = tmp_path / "deep" / "found.json"
    benchmark = [str(runs / "mirror" / str(number)) for number in range(6)]
    words = ["study", "correlate", "--benchmark", *benchmark, "--downstream", str(write(study()))]
    words += ["--baseline", str(runs / "rival"), "--resamples", "100", "--permutations", "100", "-o", str(out)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "Spearman ρ" in done.stdout
    assert "judge probe: 90.0 [85.0, 93.0] % of 300 labelled answers right" in done.stdout
    assert "verdict: ρ = " in done.stdout
    assert json.loads(out.read_text())["studies"][0]["n"] == 6


def test_the_command_prints_json(runs, write):
    words = ["study", "correlate", "--benchmark", str(runs / "mirror"), "--downstream", str(write(study()))]
    done = CliRunner().invoke(app, [*words, "--resamples", "100", "--format", "json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["primary"] == "spearman"


def test_the_layout_in_the_documentation_is_read(write):
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    content = json.loads(text.split("```json\n")[1].split("```")[0])
    assert read_study(write(content)).address_of("hf:org/rm, no profile") == "hf:org/rm"
