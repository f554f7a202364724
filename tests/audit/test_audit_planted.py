"""One planted fault for every check: it must be found, and named. The sound suite passes them all."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pair_factory import make_pair
from prbench.audit import Audit, AuditConfig, CheckVerdict, Figure, audit, default_settings, load_people, load_settings
from prbench.errors import ConfigError, DataError
from prbench.texts import Shingles, near_duplicates, words
from prbench.types import Pair, Post

Change = Callable[[Pair], Pair]


def changed(pairs: Sequence[Pair], where: Callable[[Pair], bool], change: Change) -> list[Pair]:
    """The pairs with a change wherever the condition holds; it must hold somewhere."""
    assert any(map(where, pairs))
    return [change(pair) if where(pair) else pair for pair in pairs]


def with_(pair: Pair, **fields: object) -> Pair:
    return pair.model_copy(update=fields)


def tagged(pair: Pair, **tags: str) -> Pair:
    return with_(pair, tags={**pair.tags, **tags})


def rewritten(pairs: Sequence[Pair], rewrite: Callable[[str, str], str]) -> list[Pair]:
    """Rewrite every answer, given its pole on the pair's axis; an answer has one text wherever it stands."""
    texts: dict[tuple[str, str], str] = {}
    other = {
        "steady": "swift",
        "swift": "steady",
        "faraway": "nearby",
        "nearby": "faraway",
        "gentle": "severe",
        "severe": "gentle",
    }
    for pair in pairs:
        for text, pole in ((pair.chosen, pair.tags["pole"]), (pair.rejected, other[pair.tags["pole"]])):
            texts[pair.question, text] = rewrite(texts.get((pair.question, text), text), pole)
    return [
        with_(pair, chosen=texts[pair.question, pair.chosen], rejected=texts[pair.question, pair.rejected])
        for pair in pairs
    ]


def with_post(pairs: Sequence[Pair], user: str, text: str) -> list[Pair]:
    """The last post of a user says something else."""

    def change(pair: Pair) -> Pair:
        return with_(pair, profile=(*pair.profile[:-1], Post(id=pair.profile[-1].id, text=text)))

    return changed(pairs, lambda pair: pair.user == user, change)


def verdict(found: Audit, check: str) -> str:
    return str(found.finding(check).verdict)


def figure(found: Audit, check: str, start: str) -> Figure:
    return next(figure for figure in found.finding(check).figures if figure.name.startswith(start))


def test_a_sound_suite_passes_every_check(sound):
    people = {f"u{couple}{half}": {"age": "old" if couple < 4 else "young"} for couple in range(8) for half in "ab"}
    found = audit(sound, people=people)
    assert {finding.check: str(finding.verdict) for finding in found.findings} == {
        finding.check: "pass" for finding in found.findings
    }
    assert len(found.findings) == 17
    assert not found.failed
    assert figure(found, "probe", "mean").low > 0.9
    assert figure(found, "user-blind accuracy", "overlap: accuracy").value == 0.5
    assert figure(found, "user-blind accuracy", "overlap: couple").value == 0.0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda pair: with_(pair, chosen=pair.rejected, rejected=pair.chosen), "the answers are not swapped"),
        (lambda pair: with_(pair, question="Something else?"), "the questions differ"),
        (lambda pair: with_(pair, user="u0b", profile=()), "the same user"),
        (
            lambda pair: tagged(pair, pole="swift" if pair.tags["pole"] == "steady" else "steady"),
            "want the same on tempo",
        ),
        (lambda pair: tagged(pair, split="test"), "different splits"),
    ],
)
def test_a_half_that_is_no_mirror_image(sound, change, why):
    planted = changed(sound, lambda pair: pair.id == "u0a:q0:tempo:nearby", change)
    found = audit(planted, checks=["mirror"])
    assert verdict(found, "mirror") == "fail"
    (example,) = figure(found, "mirror", "mirror tags").examples
    assert why in example.detail
    assert "u0a:q0:tempo:nearby" in example.ids


def test_a_half_alone_tilts_its_answers_and_the_baselines(sound):
    found = audit(
        [pair for pair in sound if pair.id != "u0a:q0:tempo:nearby"], checks=["mirror", "user-blind accuracy"]
    )
    assert "1 halves" in figure(found, "mirror", "mirror tags").examples[0].detail
    assert len(figure(found, "mirror", "answers chosen").examples) == 2
    accuracy = figure(found, "user-blind accuracy", "random: accuracy")
    assert accuracy.verdict is CheckVerdict.FAIL
    assert "split train" in {example.ids[0] for example in accuracy.examples}
    assert "split test" not in {example.ids[0] for example in accuracy.examples}


def test_a_pair_without_a_mirror_tag(sound):
    found = audit(
        changed(sound, lambda pair: pair.id == "u1a:q3:reach:swift", lambda pair: tagged(pair, mirror="")),
        checks=["mirror"],
    )
    assert figure(found, "mirror", "pairs without").examples[0].ids == ("u1a:q3:reach:swift",)


@pytest.mark.parametrize(
    ("addition", "measure"),
    [
        (" Bado lemi kuvo tazi reno pilu sagu.", "words"),
        ("\n1. Bado lemi.\n2. Kuvo tazi.", "list markers"),
        (" 1234 5678 90123.", "digits"),
        (" Bado? Lemi? Kuvo?", "question marks"),
        (" Bado! Lemi! Kuvo!", "exclamation marks"),
        (" You said your bado.", "second person"),
    ],
)
def test_a_pole_that_looks_different(sound, addition, measure):
    planted = rewritten(sound, lambda text, pole: text + addition if pole == "swift" and addition not in text else text)
    found = audit(planted, checks=["style"])
    wrong = figure(found, "style", f"tempo: {measure}")
    assert wrong.verdict is CheckVerdict.FAIL
    assert wrong.value < 0
    assert ":tempo:" in wrong.examples[0].ids[0]
    exempt = default_settings().model_copy(update={"exempt": {"tempo": (measure,)}})
    assert (
        figure(audit(planted, settings=exempt, checks=["style"]), "style", f"tempo: {measure}").verdict
        is CheckVerdict.PASS
    )


def test_a_pole_that_is_hard_to_read(sound):
    heavy = " Incomprehensibility notwithstanding institutionalization."
    planted = rewritten(sound, lambda text, pole: text + heavy * 3 if pole == "severe" and heavy not in text else text)
    found = audit(planted, checks=["reading level"])
    assert verdict(found, "reading level") == "warn"
    assert figure(found, "reading level", "manner").value > 10
    assert figure(found, "reading level", "reach").verdict is CheckVerdict.PASS


def test_a_rater_that_prefers_a_pole(sound):
    planted = rewritten(sound, lambda text, pole: text + " Bado" if pole == "nearby" and "Bado" not in text else text)
    found = audit(planted, checks=["preference", "user-blind accuracy"])
    wrong = figure(found, "preference", "reach: longer")
    assert (wrong.verdict, wrong.value) == (CheckVerdict.WARN, 0.0)
    assert figure(found, "user-blind accuracy", "longer").value == 0.5


def test_answers_that_are_nearly_the_same(sound):
    target = next(pair for pair in sound if pair.tags["split"] == "test")
    copy = sound[0].chosen.replace("a", "o", 1)
    swap = {target.chosen: copy}
    planted = [
        with_(pair, chosen=swap.get(pair.chosen, pair.chosen), rejected=swap.get(pair.rejected, pair.rejected))
        for pair in sound
    ]
    found = audit(planted, checks=["duplicates"])
    wrong = figure(found, "duplicates", "answers that are nearly")
    assert wrong.verdict is CheckVerdict.FAIL
    assert wrong.examples[0].ids[0].startswith("u0a:q0:")


def test_a_sentence_shared_by_two_answers(sound):
    shared = sound[0].rejected.split(". ")[2] + "."
    mine = sound[0].chosen
    swap = {mine: f"{mine} {shared}"}
    planted = [
        with_(pair, chosen=swap.get(pair.chosen, pair.chosen), rejected=swap.get(pair.rejected, pair.rejected))
        for pair in sound
    ]
    found = audit(planted, checks=["sentences"])
    assert verdict(found, "sentences") == "fail"
    assert shared.lower().rstrip(".") in figure(found, "sentences", "sentences").examples[0].detail


def test_a_post_that_two_users_share(sound):
    theirs = next(pair for pair in sound if pair.user == "u3a").profile[0]
    found = audit(with_post(sound, "u5b", theirs.text), checks=["duplicates"])
    assert figure(found, "duplicates", "posts that stand").examples[0].ids == ("u3a-0", "u5b-11")


def _own(sound: Sequence[Pair], user: str = "u5b") -> Pair:
    return next(pair for pair in sound if pair.user == user)


@pytest.mark.parametrize(
    ("check", "what", "text"),
    [
        ("standard", "aspect titles", lambda pair: pair.rubric_aspects[0].aspect),
        ("standard", "reasons", lambda pair: pair.rubric_aspects[0].reason),
        ("standard", "reasons", lambda pair: pair.narrative),
        ("profile leaks", "answers", lambda pair: pair.rejected[: len(pair.rejected) // 3]),
        ("profile leaks", "questions", lambda pair: pair.question),
    ],
)
def test_a_text_copied_into_the_profile(sound, check, what, text):
    own = _own(sound)
    found = audit(with_post(sound, "u5b", f"Kaba lido nemo. {text(own).upper()} Zuva pero."), checks=[check])
    wrong = figure(found, check, f"{what}")
    assert wrong.verdict is CheckVerdict.FAIL
    assert wrong.examples[0].ids[0] == "u5b-11"


def test_the_standard_copied_into_an_answer(sound):
    mine = sound[0].chosen
    swap = {mine: f"{mine} {sound[0].rubric_aspects[0].reason}"}
    planted = [
        with_(pair, chosen=swap.get(pair.chosen, pair.chosen), rejected=swap.get(pair.rejected, pair.rejected))
        for pair in sound
    ]
    wrong = figure(audit(planted, checks=["standard"]), "standard", "reasons, narratives in answers")
    assert wrong.verdict is CheckVerdict.FAIL
    assert wrong.examples[0].ids[0] == f"{sound[0].id}#chosen"


def test_somebody_elses_standard_is_no_leak(sound):
    stranger = next(pair for pair in sound if pair.tags["split"] == "train")
    found = audit(with_post(sound, "u5b", f"Kaba lido. {stranger.rubric_aspects[0].reason}"), checks=["standard"])
    assert verdict(found, "standard") == "pass"


def test_a_post_that_names_its_pole(sound):
    found = audit(with_post(sound, "u5b", "Tempo: swift, please. " + "Kaba lido nemo. " * 15), checks=["names"])
    wrong = figure(found, "names", "posts")
    assert wrong.verdict is CheckVerdict.FAIL
    assert wrong.examples[0].ids == ("u5b-11",)
    assert wrong.examples[0].detail == "'tempo', 'swift'"


def test_a_name_that_everybody_uses_is_no_label(sound):
    def change(pair: Pair) -> Pair:
        posts = [Post(id=post.id, text=f"{post.text} Severe.") for post in pair.profile]
        return with_(pair, profile=tuple(posts))

    # `manner` concerns the users of all splits through seen-users, but not the answers to questions without it.
    everyday = default_settings().model_copy(update={"everyday": ("severe",)})
    planted = [change(pair) for pair in sound]
    assert figure(audit(planted, checks=["names"]), "names", "posts").verdict is CheckVerdict.FAIL
    assert figure(audit(planted, settings=everyday, checks=["names"]), "names", "posts").verdict is CheckVerdict.PASS
    common = rewritten(planted, lambda text, pole: text if text.endswith("Severe.") else f"{text} Severe.")
    assert figure(audit(common, checks=["names"]), "names", "posts").verdict is CheckVerdict.PASS


@pytest.mark.parametrize(
    ("evidence", "which", "name"),
    [("u5b-0, u5b-99", "aspects with evidence", "u5b-99"), ("u5b-0", "aspects with too little", None)],
)
def test_evidence_that_does_not_hold(sound, evidence, which, name):
    def change(pair: Pair) -> Pair:
        return with_(pair, rubric_aspects=tuple(with_evidence(aspect, evidence) for aspect in pair.rubric_aspects))

    def with_evidence(aspect, evidence):
        return aspect.model_copy(update={"evidence": evidence})

    target = _own(sound).id
    found = audit(changed(sound, lambda pair: pair.id == target, change), checks=["evidence"])
    wrong = figure(found, "evidence", which)
    assert wrong.verdict is CheckVerdict.FAIL
    assert wrong.examples[0].ids[0] == target
    assert name is None or name in wrong.examples[0].ids


def test_evidence_that_is_quotations_is_not_looked_up(sound):
    quoted = [
        with_(pair, rubric_aspects=[a.model_copy(update={"evidence": "I said so, twice"}) for a in pair.rubric_aspects])
        for pair in sound
    ]
    assert verdict(audit(quoted, checks=["evidence"]), "evidence") == "not applicable"


def test_short_profiles_and_posts(sound):
    planted = changed(sound, lambda pair: pair.user == "u5b", lambda pair: with_(pair, profile=pair.profile[:4]))
    found = audit(with_post(planted, "u2a", "Kaba."), checks=["profiles"])
    assert verdict(found, "profiles") == "warn"
    assert figure(found, "profiles", "profiles").examples[0].ids == ("u5b",)
    assert figure(found, "profiles", "posts").examples[0].ids == ("u2a-11",)


def longer_posts(pair, words):
    """The same profile, each post with so many words more."""
    posts = [post.model_copy(update={"text": f"{post.text} {'lume ' * words}".strip()}) for post in pair.profile]
    return with_(pair, profile=tuple(posts))


def test_a_pole_whose_people_write_more(sound):
    at = {pair.user: pair.tags["pole"] for pair in sound if pair.tags["axis"] == "tempo"}
    planted = [longer_posts(pair, 30 if at.get(pair.user) == "swift" else 0) for pair in sound]
    found = audit(planted, checks=["histories"])
    assert verdict(found, "histories") == "warn"
    assert figure(found, "histories", "tempo: words").verdict is CheckVerdict.WARN
    exempt = AuditConfig(exempt={"tempo": ("words",)})
    assert (
        figure(audit(planted, settings=exempt, checks=["histories"]), "histories", "tempo").verdict is CheckVerdict.PASS
    )


def test_halves_with_unlike_numbers_of_posts(sound):
    planted = changed(sound, lambda pair: pair.user == "u5b", lambda pair: with_(pair, profile=pair.profile[:-1]))
    found = audit(planted, checks=["histories"])
    assert figure(found, "histories", "couples").examples[0].ids == ("u5a", "u5b")


def test_posts_that_show_something_and_are_longer(sound):
    filler = [Post(id=f"silent-{number}", text="Moni rela tiso.", category="x") for number in range(4)]
    planted = [with_(pair, profile=(*pair.profile, *filler)) for pair in sound]
    assert figure(audit(planted, checks=["histories"]), "histories", "words of posts").verdict is CheckVerdict.WARN
    assert figure(audit(sound, checks=["histories"]), "histories", "words of posts").verdict is CheckVerdict.PASS


def test_a_user_who_wants_both_poles(sound):
    planted = changed(
        sound,
        lambda pair: pair.id == "u0a:q0:tempo:nearby",
        lambda pair: tagged(pair, pole="swift" if pair.tags["pole"] == "steady" else "steady"),
    )
    assert figure(audit(planted, checks=["stances"]), "stances", "stances that").examples[0].ids == ("u0a", "tempo")


def test_poles_held_unequally(sound):
    planted = [pair for pair in sound if not (pair.user == "u4a" and pair.tags["axis"] == "manner")]
    (example,) = figure(audit(planted, checks=["stances"]), "stances", "axes held").examples
    assert example.ids == ("manner",)
    assert "'test'" in example.detail


def test_axes_that_go_together(sound):
    def follow(pair: Pair) -> Pair:
        """Whoever wants speed wants nearness, in forty copies of the couples."""
        together = {"steady": "faraway", "swift": "nearby"}
        return tagged(pair, pole=together[tempo[pair.user]])

    tempo = {pair.user: pair.tags["pole"] for pair in sound if pair.tags["axis"] == "tempo"}
    linked = changed(sound, lambda pair: pair.tags["axis"] == "reach", follow)
    many = [
        with_(tagged(pair, couple=f"{pair.tags['couple']}.{copy}"), id=f"{pair.id}.{copy}", user=f"{pair.user}.{copy}")
        for pair in linked
        for copy in range(2)
        if pair.tags["split"] != "seen-users"
    ]
    found = audit(many, checks=["stances"])
    assert figure(found, "stances", "couples of axes").examples[0].ids == ("reach", "tempo")
    assert figure(found, "stances", "largest").value == pytest.approx(1.0)


def test_a_stance_that_goes_with_age(sound, tmp_path):
    tempo = {pair.user: pair.tags["pole"] for pair in sound if pair.tags["axis"] == "tempo"}
    lines = [
        f"[personas.{user}]\nage = {20 + 3 * n + 40 * (pole == 'swift')}\nsplit = 'x'\nstances = {{ a = 'b' }}"
        for n, (user, pole) in enumerate(tempo.items())
    ]
    file = tmp_path / "design.toml"
    file.write_text("[questions.food]\nq1 = 1\n" + "\n".join(lines))
    people = load_people(file, tempo)
    assert set(people["u0a"]) == {"age"}
    assert len({person["age"] for person in people.values()}) == 3
    found = audit(sound, people=people, checks=["demographics"])
    assert verdict(found, "demographics") == "fail"
    assert figure(found, "demographics", "associations").examples[0].ids == ("tempo", "age")


def test_association_is_judged_as_by_fisher(sound):
    """Of each pole's eight users six are of one group: Fisher's exact test says 0.132."""
    tempo = {pair.user: pair.tags["pole"] for pair in sound if pair.tags["axis"] == "tempo"}
    poles = {pole: sorted(user for user in tempo if tempo[user] == pole) for pole in ("steady", "swift")}
    people = {user: {"age": "old" if n < 6 else "young"} for n, user in enumerate(poles["steady"])}
    people |= {user: {"age": "old" if n < 2 else "young"} for n, user in enumerate(poles["swift"])}
    alone = [pair for pair in sound if pair.tags["axis"] == "tempo"]
    smallest = figure(audit(alone, people=people, checks=["demographics"]), "demographics", "smallest p")
    assert smallest.n == 1
    assert smallest.value == pytest.approx(0.132, abs=0.015)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("people.csv", "user,age\nu0a,old\nu0b,young\n"),
        ("people.json", '{"people": {"u0a": {"age": "old"}, "u0b": {"age": "young"}}}'),
        ("people.json", '[{"user": "u0a", "age": "old"}, {"user": "u0b", "age": "young"}]'),
    ],
)
def test_people_come_in_many_files(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text)
    assert load_people(file, ["u0a", "u0b", "u1a"]) == {"u0a": {"age": "old"}, "u0b": {"age": "young"}}


def test_people_that_nobody_knows(tmp_path):
    file = tmp_path / "people.toml"
    file.write_text("[someone]\nage = 3")
    with pytest.raises(DataError, match="tells nothing of the users"):
        load_people(file, ["u0a"])


def _moved(pairs: Sequence[Pair], **fields: object) -> list[Pair]:
    """One more mirrored couple of pairs, in test, that differs from a train couple in these fields."""
    twins = [pair for pair in pairs if pair.tags["mirror"] == "c0:q0:tempo:nearby:train"]
    extra = [
        with_(tagged(pair, split="test", mirror="extra", couple="cx"), id=f"{pair.id}.x", **fields) for pair in twins
    ]
    return [*pairs, *extra]


def test_a_question_in_two_splits(sound):
    nearly = sound[0].question + " Kaba."
    planted = _moved(sound, question=nearly)
    found = audit(planted, checks=["splits"])
    assert verdict(found, "splits") == "fail"
    wrong = figure(found, "splits", "questions").examples[0]
    assert set(wrong.ids) == {"u0a:q0:tempo:faraway", "u0a:q0:tempo:nearby.x"}
    assert figure(found, "splits", "answers").examples
    assert figure(found, "splits", "users").examples[0].detail == "'u0a' in seen-users and test"


def test_a_couple_in_two_splits(sound):
    planted = changed(sound, lambda pair: pair.tags["couple"] == "c5", lambda pair: tagged(pair, couple="c0"))
    assert figure(audit(planted, checks=["splits"]), "splits", "couples").verdict is CheckVerdict.FAIL


def test_an_unseen_axis_in_train(sound):
    planted = changed(
        sound, lambda pair: pair.tags["mirror"] == "c0:q0:reach:swift:train", lambda pair: tagged(pair, axis="manner")
    )
    assert {
        example.ids[0] for example in figure(audit(planted, checks=["splits"]), "splits", "pairs of train").examples
    } == {
        "u0a:q0:reach:swift",
        "u0b:q0:reach:swift",
    }


def test_a_stance_that_is_not_in_the_text(sound):
    """Every answer of a question loses the words of its poles: the labels remain, the probe must fail."""
    poles = ("ste", "swi", "far", "nea", "gen", "sev")

    def plain(text: str, pole: str) -> str:
        kept = [word for word in text.split() if not word.lower().startswith(poles)]
        return " ".join(kept)

    found = audit(rewritten(sound, plain), checks=["probe"])
    assert verdict(found, "probe") == "fail"
    assert figure(found, "probe", "mean").low <= 0.5
    assert figure(found, "probe", "tempo").verdict is CheckVerdict.WARN


def test_a_suite_without_tags_has_the_checks_that_apply():
    pairs = [
        make_pair(
            id=str(n), user=f"u{n}", question=f"What of number {n}?", chosen="Long and good. " * (n + 2), rejected="No."
        )
        for n in range(40)
    ]
    found = audit(pairs)
    assert verdict(found, "mirror") == "not applicable"
    assert figure(found, "user-blind accuracy", "longer").verdict is CheckVerdict.WARN
    assert figure(found, "user-blind accuracy", "longer").low == 1.0
    assert figure(found, "user-blind accuracy", "shorter").verdict is CheckVerdict.PASS
    assert figure(found, "style", "all pairs: words").verdict is CheckVerdict.WARN
    assert verdict(found, "duplicates") == "fail"


def test_a_rater_of_ones_own_is_asked_without_the_user(sound, tmp_path, monkeypatch):
    (tmp_path / "own_rater.py").write_text(
        "def likes_swift(question, answer):\n    return float('swi' in answer.lower())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = audit(sound, raters=["py:own_rater:likes_swift"], checks=["preference", "user-blind accuracy"])
    liked = figure(found, "preference", "tempo: py:own_rater:likes_swift")
    assert (liked.verdict, liked.value) == (CheckVerdict.WARN, 0.0)
    assert figure(found, "user-blind accuracy", "py:own_rater").value == 0.5


def test_a_rater_that_says_nothing_has_no_preference(sound, tmp_path, monkeypatch):
    (tmp_path / "silent_rater.py").write_text("def silent(question, answer):\n    return float('nan')\n")
    monkeypatch.syspath_prepend(tmp_path)
    address = "py:silent_rater:silent"
    found = audit(sound, raters=[address], checks=["user-blind accuracy", "preference"])
    assert figure(found, "user-blind accuracy", f"{address}: accuracy").value is None
    assert figure(found, "user-blind accuracy", f"{address}: couples of answers").verdict is CheckVerdict.WARN
    assert figure(found, "preference", f"tempo: {address}").verdict is CheckVerdict.NOT_APPLICABLE


def test_a_comparer_is_asked_in_both_orders(sound, tmp_path, monkeypatch):
    (tmp_path / "first_comparer.py").write_text("def likes_first(question, first, second):\n    return 'first'\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = audit(sound, raters=["py:first_comparer:likes_first"], checks=["preference"])
    assert figure(found, "preference", "tempo: py:first_comparer").value == 0.5


def test_settings_are_laid_over_those_that_ship(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('preference = 0.3\n[exempt]\ntempo = ["words"]\n')
    settings = load_settings(file)
    assert settings.preference == 0.3
    assert settings.is_exempt("tempo", "words")
    assert settings.is_exempt("brevity", "words")
    file.write_text("preferense = 0.3")
    with pytest.raises(ConfigError, match="did you mean 'preference'"):
        load_settings(file)


def test_json_has_every_figure_and_few_examples(sound):
    planted = [pair for pair in sound if pair.user != "u0a"]
    data = audit(planted).to_json(examples=2)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    mirror = data["checks"][0]
    assert (data["verdict"], mirror["verdict"]) == ("fail", "fail")
    assert {"name", "verdict", "value", "low", "high", "n", "examples", "examples_left_off"} == set(
        mirror["figures"][1]
    )
    assert len(mirror["figures"][1]["examples"]) == 2
    assert mirror["figures"][1]["examples_left_off"] == mirror["figures"][1]["value"] - 2


@given(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=12).map(" ".join), max_size=8), st.sampled_from([0.2, 0.5, 0.9])
)
def test_near_duplicates_are_exact(texts, threshold):
    def grams(text: str) -> set[tuple[str, ...]]:
        tokens = words(text)
        n = min(5, max(len(tokens), 1))
        return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}

    expected = {
        (i, j)
        for i in range(len(texts))
        for j in range(i + 1, len(texts))
        if grams(texts[i]) | grams(texts[j])
        and len(grams(texts[i]) & grams(texts[j])) >= threshold * len(grams(texts[i]) | grams(texts[j]))
    }
    assert {(near.first, near.second) for near in near_duplicates(texts, threshold, Shingles())} == expected


def test_settings_have_no_order_of_chance():
    assert AuditConfig().model_dump_json() == AuditConfig().model_dump_json()
    assert list(default_settings().everyday) == sorted(default_settings().everyday)


def test_the_shipped_exemptions_name_known_measures():
    from prbench.audit.style import MEASURES
    from prbench.models import BASELINES

    known = {*MEASURES, *BASELINES, "reading level"}
    assert {measure for measures in default_settings().exempt.values() for measure in measures} <= known


def test_no_file_of_settings(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"cannot read .*none\.toml"):
        load_settings(tmp_path / "none.toml")


def test_an_unknown_check(sound):
    with pytest.raises(ConfigError, match="did you mean 'stances'"):
        audit(sound, checks=["stance"])
