"""A model that sees answers together: antisymmetric to the bit, lists, single answers, judged pairs, and its floor."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tiny_models
from prbench.config import ModelOptions
from prbench.data.passages import load_sayings
from prbench.errors import ModelError
from prbench.models import load_model
from prbench.models.lists import OneByOne, alone, as_ranker
from prbench.models.personal import rater, traits
from prbench.models.personal.contrast import FlawTrust, judged, margin, stated_odds, taste, weighed
from prbench.models.personal.contrast_ranker import ContrastRanker
from prbench.models.personal.statements import Attitude
from prbench.run.work import orders_of
from prbench.train.contrast import ContrastConfig, train_contrast
from prbench.types import AnswerView, Judgment, ListView, Message, PairView, Post, Prompt
from split_suite import split_pairs, write_suite


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contrast")
    base, suite = tiny_models.save_encoder(folder / "base"), str(write_suite(folder / "suite.jsonl"))
    options = ContrastConfig(encoder=f"embed:{base}", also="", folds=2)
    record = train_contrast(options, folder / "model", suite=suite)
    assert record.method == "contrast"
    return folder / "model"


@pytest.fixture
def model(trained: Path) -> ContrastRanker:
    found = load_model(f"personal:{trained}")
    assert isinstance(found, ContrastRanker)
    return found


def views() -> list[PairView]:
    return [
        PairView(pair.question, pair.chosen, pair.rejected, pair.profile, (), pair.user) for pair in split_pairs("test")
    ]


def test_swapping_the_answers_changes_the_sign_and_nothing_else(model: ContrastRanker) -> None:
    shown = views()
    straight = [outcome.margin for _, outcome in model.compare(shown)]
    swapped = [outcome.margin for _, outcome in model.compare([view.swap() for view in shown])]
    assert straight == [-margin for margin in swapped if margin is not None]
    assert any(straight)


def test_equal_answers_tie(model: ContrastRanker) -> None:
    ((_, outcome),) = model.compare([PairView("Tea?", "Green.", "Green.", (), ("Blue.",))])
    assert (outcome.verdict, outcome.margin) == ("tie", 0.0)


def test_a_list_of_two_is_a_pair_and_a_longer_one_means_over_its_pairs(model: ContrastRanker) -> None:
    view = views()[0]
    answers = (view.first, view.second, "Something else entirely, with numbers 1 and 2.")
    ((_, outcome),) = model.rank([ListView(view.question, answers, view.posts, (), view.user)])
    found = list(outcome.scores)
    pairs = [PairView(view.question, one, two, view.posts, (), view.user) for one in answers for two in answers]
    margins = np.array([outcome.margin for _, outcome in model.compare(pairs)]).reshape(3, 3)
    assert found == pytest.approx(list(margins.sum(1) / 3))
    assert sum(found) == pytest.approx(0.0, abs=1e-9)


def test_a_pair_is_shown_together_and_an_answer_can_be_rated_alone(model: ContrastRanker) -> None:
    pair = split_pairs("test")[0]
    assert orders_of(model, pair, both=True, seed=0) == ("chosen-first", "chosen-second")
    single = alone(model)
    assert isinstance(single, OneByOne)
    assert orders_of(single, pair, both=True, seed=0) == ("rated",)
    assert not hasattr(single, "compare")
    assert single.fit_user == model.fit_user, "whatever else it offers"
    rated = [outcome.score for _, outcome in single.rate(views()[0].answers())]
    assert len(set(rated)) == 2


def test_raters_are_lifted_to_lists_and_comparers_are_not(model: ContrastRanker) -> None:
    assert as_ranker(model) is model
    ((_, outcome),) = as_ranker(load_model("longer")).rank([ListView("Tea?", ("Green tea.", "Black."))])
    assert outcome.scores == (2.0, 1.0)

    class Judge:
        card = load_model("longer").card

        def compare(self, views: object) -> None: ...

    with pytest.raises(ModelError, match="cannot rank a list"):
        as_ranker(Judge())  # type: ignore[arg-type]
    assert alone(Judge()) is None  # type: ignore[arg-type]


def test_the_user_decides_and_a_stranger_does_not() -> None:
    told_apart = np.array([[0.7, 0.1], [0.1, 0.1]])
    assert taste(told_apart, np.array([3.0, 0.0])) > 0
    assert taste(told_apart, np.array([-3.0, 0.0])) == pytest.approx(-taste(told_apart, np.array([3.0, 0.0])))
    assert taste(told_apart, np.zeros(2)) == pytest.approx(0.0)


@pytest.mark.parametrize("preferred", [-6.0, 0.0, 6.0])
def test_a_text_that_is_no_answer_loses_whatever_the_taste(preferred: float) -> None:
    assert margin(preferred, -8.0, 8.0) > 7
    assert margin(preferred, 8.0, -8.0) == pytest.approx(-margin(-preferred, -8.0, 8.0))
    assert margin(preferred, -8.0, -8.0) == preferred


def test_a_flaw_counts_before_taste_and_taste_decides_where_there_is_none() -> None:
    trust = FlawTrust(trust=1.0, slope=2.0, doubt=4.0)
    assert weighed(-3.0, 6.0, trust) > 3, "the answer that the user would like is flawed"
    assert weighed(-3.0, 0.1, trust) == pytest.approx(-3.0, abs=0.3)
    assert weighed(3.0, -0.7, trust) == -weighed(-3.0, 0.7, trust)


def test_a_judged_pair_moves_the_side_that_decided_it() -> None:
    moved = judged(np.array([[0.8, 0.1], [0.0, 0.1]]))
    assert moved[0] > 1.0
    assert moved[1] == pytest.approx(0.0)
    assert judged(np.array([[0.0, 0.1], [0.8, 0.1]]))[0] == pytest.approx(-moved[0])


def test_a_judged_pair_says_what_is_liked_beyond_the_axes(trained: Path, tmp_path: Path) -> None:
    weights, view, found = load_file(trained / "weights.safetensors"), views()[0], []
    for gains in (weights["other_gains"], weights["other_gains"][:2]):
        shutil.copytree(trained, tmp_path / str(len(gains)), ignore=shutil.ignore_patterns("SHA256SUMS"))
        save_file({**weights, "other_gains": gains}, tmp_path / str(len(gains)) / "weights.safetensors")
        model = load_model(f"personal:{tmp_path / str(len(gains))}")
        assert isinstance(model, ContrastRanker)
        better, worse = model._reader.read(view.question, (view.first, view.second))
        nobody = model.contrast.person((), ())
        person = model.contrast.told_by(nobody, [(better, worse)])
        often = model.contrast.told_by(nobody, [(better, worse)] * 500)
        assert np.linalg.norm(often.wish) <= 4.0001, "no number of pairs outweighs everything"
        found.append((person.wish, better.vector - worse.vector))
    assert found[0][0] == pytest.approx(0.25 * found[0][1])
    assert np.abs(found[0][0]).max() > 0
    assert not found[1][0].any(), "a model of an earlier version answers as it did"


def test_posts_say_what_is_liked_beyond_the_axes(trained: Path, tmp_path: Path) -> None:
    weights, posts, found = load_file(trained / "weights.safetensors"), ("I was glad of the tea.", "So was she."), []
    for gains in (weights["other_gains"], weights["other_gains"][:3]):
        shutil.copytree(trained, tmp_path / str(len(gains)), ignore=shutil.ignore_patterns("SHA256SUMS"))
        save_file({**weights, "other_gains": gains}, tmp_path / str(len(gains)) / "weights.safetensors")
        model = load_model(f"personal:{tmp_path / str(len(gains))}")
        assert isinstance(model, ContrastRanker)
        found.append(model.contrast.person(posts, ()))
        mean = model._encoder.encode(list(posts)).mean(0)
    assert found[0].wish == pytest.approx(mean, abs=1e-6)
    assert not found[1].wish.any(), "a model of an earlier version answers as it did"
    assert found[0].odds == pytest.approx(found[1].odds)


def test_a_sentence_of_a_post_that_says_what_is_wanted_counts_as_a_statement(trained: Path, tmp_path: Path) -> None:
    weights = load_file(trained / "weights.safetensors")
    found = {}
    for name, gains in (("now", weights["other_gains"]), ("before", weights["other_gains"][:4])):
        shutil.copytree(trained, tmp_path / name, ignore=shutil.ignore_patterns("SHA256SUMS"))
        save_file({**weights, "other_gains": gains}, tmp_path / name / "weights.safetensors")
        model = load_model(f"personal:{tmp_path / name}")
        assert isinstance(model, ContrastRanker)
        found[name] = model
    contrast = found["now"].contrast
    sure = [saying for saying in load_sayings() if contrast.sayings([saying.text]) == [saying.text]]
    said, refused = (next(saying.text for saying in sure if saying.wants is wants) for wants in (True, False))
    post = f"The ferry was late again. {said} {refused}"
    assert contrast.sayings([post, post]) == [said, refused]
    assert found["before"].contrast.sayings([post]) == []
    wishes = {name: model.contrast.person((post,), ()).wish for name, model in found.items()}
    vectors = found["now"]._encoder.encode([said, refused])
    willing = contrast._attitude.willing(vectors.astype(float), contrast.grams.rows([said, refused]))
    assert willing[0] > 0 > willing[1]
    assert wishes["now"] - wishes["before"] == pytest.approx(willing @ vectors, abs=1e-5)
    other = next(saying.text for saying in sure if saying.text not in post)
    assert other in found["now"].fresh_texts([Prompt((Message("post", f"It rained. {other}"),))])


def test_a_statement_is_read_by_its_vector_and_a_denial_turns_it() -> None:
    coffee, no_coffee = np.array([1.0, 0.0]), np.array([0.8, 0.6])
    attitude, stated = Attitude(np.array([0.0, -20.0]), np.zeros(0), 6.0), np.zeros((3, 1, 2))
    stated[0, 0], stated[-1, 0] = (-4.0, 4.0), (-4.0, -4.0)
    said = np.stack([coffee, no_coffee])
    ((wanted,), (denied,)) = stated_odds(said, attitude.willing(said, None), stated)
    assert wanted > 1
    assert denied < -0.5


def test_it_adapts_to_judgments_and_forgets_them(model: ContrastRanker) -> None:
    view = views()[0]
    stranger = PairView(view.question, view.first, view.second, (), (), "ann")
    before = next(model.compare([stranger]))[1].margin
    prompt = model.render(stranger)
    model.fit_user("ann", [Judgment(question=view.question, chosen=view.first, rejected=view.second)])
    after = next(model.compare([stranger]))[1].margin
    assert model.render(stranger) != prompt, "what a user has judged is in the call's key"
    model.fit_user("ann", [])
    assert before is not None
    assert after is not None
    assert after > before
    assert next(model.compare([stranger]))[1].margin == before
    with pytest.raises(ModelError, match="which is no Judgment"):
        model.fit_user("ann", [{"question": "Tea?"}])  # type: ignore[list-item]


def test_opened_twice_it_says_the_same(trained: Path) -> None:
    said = []
    for _ in range(2):
        found = rater.load(str(trained), ModelOptions())
        assert isinstance(found, ContrastRanker)
        said.append([outcome.margin for _, outcome in found.compare(views())])
    assert said[0] == said[1]
    assert found.card.revision


def test_damaged_weights_are_named(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "personal.json").write_bytes((trained / "personal.json").read_bytes())
    (tmp_path / "weights.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelError, match=r"weights\.safetensors is damaged"):
        rater.load(str(tmp_path), ModelOptions())


@pytest.mark.parametrize("answer", ["", "  ", ".....", "…", "\u200b"])
def test_an_empty_answer_is_read_without_failing(model: ContrastRanker, answer: str) -> None:
    post = Post(id="1", text="I like blue tea.")
    ((_, outcome),) = model.compare([PairView("Tea?", "Blue tea is good.", answer, (post,), (), "ann")])
    assert outcome.status == "ok"
    ((_, rated),) = model.rate([AnswerView("Tea?", answer, (post,), (), "ann")])
    assert rated.status == "ok"


def test_margins_do_not_depend_on_what_else_is_asked(model: ContrastRanker) -> None:
    shown = views()
    random.Random(0).shuffle(shown)
    together = [outcome.margin for _, outcome in model.compare(shown)]
    assert together == pytest.approx([next(model.compare([view]))[1].margin for view in shown], abs=1e-6)


def test_a_form_of_preferences_is_read_as_statements(model: ContrastRanker) -> None:
    form = '{"likes_blue": true, "likes_green": false}'
    stated = PairView("Tea?", "Blue tea.", "Green tea.", (), ("likes blue: yes", "likes green: no"))
    as_plan = PairView("Tea?", "Blue tea.", "Green tea.", (), (form,))
    as_post = PairView("Tea?", "Blue tea.", "Green tea.", (Post(id="1", text=form),))
    margins = [outcome.margin for _, outcome in model.compare([stated, as_plan])]
    assert margins[0] == margins[1]
    assert model.contrast.person((form,), ()).odds == pytest.approx(model.contrast.person((), (form,)).odds)
    assert next(model.compare([as_post]))[1].margin is not None


def test_what_is_still_to_be_embedded_is_foreseen(
    trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path))
    model = load_model(f"personal:{trained}")
    assert isinstance(model, ContrastRanker)
    prompts = [model.render(view) for view in views()]
    fresh = model.fresh_texts(prompts)
    assert fresh
    posts = {message.content for prompt in prompts for message in prompt.messages if message.role == "post"}
    assert posts <= fresh, "posts say something by their vectors too"
    assert model.foreseen_seconds(1000, 100) > model.foreseen_seconds(10, 100) > 0
    list(model.compare(views()))
    assert model.fresh_texts(prompts) == set()


def test_answers_are_read_once_and_dropped_together_when_there_are_many(
    model: ContrastRanker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traits, "_KEPT", 3)
    reader = model._reader
    texts = ["blue tea", "red tea", "no tea at all", "green tea"]
    alone = [reader.read("Which tea?", [text])[0] for text in texts]
    for listed in (texts, texts[::-1], texts[1:3]):
        found = reader.read("Which tea?", listed)
        for text, one in zip(listed, found, strict=True):
            assert np.allclose(one.dense, alone[texts.index(text)].dense, atol=1e-6)
    assert len(reader._kept) <= 4
    pasted = reader.read("Which tea?", ["I like blue tea in the morning"], ["I like blue tea in the morning, mostly."])
    plain = reader.read("Which tea?", ["I like blue tea in the morning"])
    assert not np.array_equal(pasted[0].dense, plain[0].dense), "what was pasted from one user's posts is not another's"
    reader.forget()
    assert not reader._kept
    assert reader._posts == ((), frozenset())


def test_margins_of_a_list_are_those_of_its_pairs(model: ContrastRanker) -> None:
    texts = ["blue tea", "red tea of ann", "no tea at all", "green food", ""]
    found = model._reader.read("Which tea?", texts)
    person = model.contrast.person(("I like blue.",), ())
    whole = model.contrast.margins(found, person)
    assert np.array_equal(whole, -whole.T)
    for one in range(len(texts)):
        for two in range(len(texts)):
            if one != two:
                pair = model.contrast.margins([found[one], found[two]], person)[0, 1]
                assert whole[one, two] == pytest.approx(pair, abs=1e-9)
