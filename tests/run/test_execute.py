"""What a run does: share calls, resume, keep the mirror guarantee, show both orders, and stop at a budget."""

import hashlib
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench import evaluate
from prbench.calls import Budget, CallCache, call_key, refuse_over_budget
from prbench.config import Price, RunConfig, digest
from prbench.data import Suite
from prbench.errors import BudgetError, ConfigError, ContextError, ModelError, RunError
from prbench.models import ModelCard
from prbench.models.python import wrap
from prbench.results import RunFolder, verify
from prbench.run import Session, execute, forecast
from prbench.stats import AccuracyBounds, Estimate
from prbench.types import Message, Outcome, Prompt
from small_suite import Spy, SpyComparer, follows_posts, likes_first, mirrored

OWN, NONE = "profile", "none"


def contexts_of(found):
    return found.contexts


def session(model, pairs=None, **settings):
    suite = Suite.of(pairs or mirrored(), name="small")
    settings = {"contexts": ("none", "profile", "other"), "resamples": 100, **settings}
    return Session(RunConfig(suite="small", model=model.card.address, **settings), model=model, suite=suite)


def without_timing(found):
    result = found.to_json()
    trimmed = {**result["result"]}
    trimmed.pop("timing")
    return {"result": trimmed, "baselines": result["baselines"]}


def test_a_personal_model_is_right_with_its_user_and_lost_without():
    found = evaluate(follows_posts, mirrored(), contexts=["none", "profile", "opposite", "other"])
    contexts = contexts_of(found)
    assert contexts["profile"].accuracy.value == 1.0
    assert contexts["none"].accuracy.value == 0.5
    assert contexts["opposite"].accuracy.value == 0.0
    assert contexts["profile"].couple_coverage.value == 1.0
    assert contexts["profile"].mirror_consistency.value == 1.0
    effects = found.effects
    assert effects.gain.value == 0.5
    assert effects.reversal.value == 1.0
    shown = contexts["other"].shown_user
    assert "agrees" not in shown or shown["agrees"].value == 1.0
    assert "opposes" not in shown or shown["opposes"].value == 0.0


@given(salt=st.text(max_size=8))
@settings(max_examples=25, deadline=None)
def test_any_function_of_question_and_answer_scores_exactly_half_on_mirrored_pairs(salt):
    def blind(question, answer):
        return hashlib.sha256(f"{salt}{question}{answer}".encode()).digest()[0] % 7  # ties happen

    contexts = contexts_of(evaluate(blind, mirrored(), contexts=["none"], resamples=100))
    none = contexts["none"]
    assert none.accuracy == Estimate(0.5, 0.5, 0.5, 36)
    assert all(group.value == 0.5 for group in none.categories.values())
    assert none.couple_coverage.value == 0.0


@given(lean=st.floats(-3, 3, allow_nan=False))
@settings(max_examples=15, deadline=None)
def test_a_two_order_comparer_that_ignores_the_user_scores_exactly_half(lean):
    found = evaluate(SpyComparer(lean), mirrored(), contexts=["none"], resamples=100)
    assert contexts_of(found)["none"].accuracy.value == 0.5


def test_the_posts_reach_the_model():
    spy = Spy()
    evaluate(spy, mirrored(), contexts=["profile"])
    assert all("I was glad of the" in prompt.messages[0].content for prompt in spy.prompts)


def test_both_orders_are_asked_and_position_bias_is_measured():
    spy = SpyComparer(lean=0.0)
    found = evaluate(spy, mirrored(couples=1, questions=1), contexts=["profile"])
    assert {(view.first, view.second) for view in spy.views} == {
        ("Get the red tea.", "Get the blue tea."),
        ("Get the blue tea.", "Get the red tea."),
    }
    assert {record.order for record in found.records} == {"chosen-first", "chosen-second"}
    biased = contexts_of(evaluate(likes_first, mirrored(), contexts=["profile"]))["profile"]
    assert biased.accuracy.value == 0.5
    assert biased.strict_accuracy.value == 0.0
    assert biased.position.flip_rate.value == 1.0
    assert biased.position.first_preferred.value == 1.0


def test_log_odds_are_averaged_over_both_orders_before_deciding():
    leaning = contexts_of(evaluate(SpyComparer(lean=5.0), mirrored(), contexts=["profile"]))["profile"]
    assert leaning.position.flip_rate.value == 1.0  # each verdict alone follows the position
    assert leaning.accuracy.value == 1.0
    assert leaning.strict_accuracy.value == 0.0


def test_one_order_says_nothing_of_the_label():
    found = evaluate(likes_first, mirrored(couples=6, questions=12), contexts=["profile"], both_orders=False)
    profile = contexts_of(found)["profile"]
    assert profile.accuracy.value == 0.5
    assert {record.order for record in found.records} == {"chosen-first", "chosen-second"}
    assert len(found.records) == 144
    assert any("one order only" in warning for warning in found.warnings)


def test_the_order_of_asking_says_nothing_of_the_label():
    class Alternating(Spy):
        def rate(self, views):
            for index, _ in enumerate(views):
                yield index, Outcome.scored(1 - index % 2)

    found = evaluate(Alternating(), mirrored(couples=6, questions=12), contexts=["profile"])
    assert 0.3 < contexts_of(found)["profile"].accuracy.value < 0.7


def test_call_keys_tell_models_prompts_and_samples_apart():
    prompt = Prompt((Message("user", "hello"),))
    card = ModelCard(address="m", revision="1", parameters={"t": 0})
    keys = {
        call_key(card, prompt),
        call_key(card.model_copy(update={"revision": "2"}), prompt),
        call_key(card.model_copy(update={"address": "n"}), prompt),
        call_key(card.model_copy(update={"parameters": {"t": 1}}), prompt),
        call_key(card, Prompt((Message("system", "hello"),))),
        call_key(card.model_copy(update={"deterministic": False}), prompt, 1),
    }
    assert len(keys) == 6
    assert call_key(card, prompt, 0) == call_key(card, prompt, 1)


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text()), min_size=1, max_size=3))
def test_call_keys_are_those_of_the_runs_before(turns):
    card = ModelCard(address="m", revision="1", parameters={"t": 0}, deterministic=False)
    prompt = Prompt(tuple(Message(*turn) for turn in turns))
    asked = list(card.identity.values())
    assert call_key(card, prompt) == digest([asked, prompt.messages])[:32]
    assert call_key(card, prompt, 2) == digest([asked, prompt.messages, 2])[:32]


def test_failures_are_never_cached():
    cache = CallCache()
    cache.keep("bad", Outcome.failed("lost"))
    cache.keep("good", Outcome.scored(1.0))
    assert set(cache.find(["bad", "good"])) == {"good"}
    cache.close()


def test_invalid_answers_are_not_asked_again(tmp_path):
    class Mute(Spy):
        def rate(self, views):
            for index, _ in super().rate(views):
                yield index, Outcome.invalid("nothing to say")

    first = Mute()
    execute(session(first, contexts=("none",)), RunFolder(tmp_path / "run"))
    again = Mute()
    execute(session(again, contexts=("none",)), RunFolder(tmp_path / "run"))
    assert (first.asked, again.asked) == (12, 0)


def test_a_resumed_run_costs_what_an_uninterrupted_one_does(tmp_path):
    class Priced(Flaky):
        def rate(self, views):
            for index, outcome in super().rate(views):
                bad = outcome.status == "failed"
                yield index, outcome if bad else outcome.model_copy(update={"cost_usd": 1.0})

    execute(session(Priced(True), contexts=("none",)), RunFolder(tmp_path / "run"))
    resumed = execute(session(Priced(False), contexts=("none",)), RunFolder(tmp_path / "run"))
    whole = execute(session(Priced(False), contexts=("none",)), RunFolder(tmp_path / "whole"))
    assert resumed.usage == whole.usage
    assert whole.usage.cost_usd == 12.0


def test_fresh_asks_anew_and_keeps_the_old_records_aside(tmp_path):
    execute(session(Spy()), RunFolder(tmp_path / "run"))
    spy = Spy()
    execute(session(spy), RunFolder(tmp_path / "run"), fresh=True)
    assert spy.asked > 0
    assert len(list((tmp_path / "run").glob("records.*Z.jsonl"))) == 1


def test_a_changed_function_is_another_run():
    def make(sign):
        return lambda question, answer, posts: sign * len(answer)

    one, two = wrap(make(1)), wrap(make(-1))
    assert one.card.revision != two.card.revision


def test_calibration_is_measured_of_log_odds_only():
    plain = contexts_of(evaluate(Spy(), mirrored(), contexts=["profile"]))["profile"]
    assert "calibration" not in plain
    spy = Spy()
    spy.card = spy.card.model_copy(update={"units": "log-odds"})
    measured = contexts_of(evaluate(spy, mirrored(), contexts=["profile"]))["profile"].calibration
    chance = 1 / (1 + math.exp(-3))  # the chosen answer scores three more: one word in each of three posts
    assert measured.brier.value == pytest.approx((1 - chance) ** 2)


def test_headroom_is_the_gain_as_a_share_of_what_the_rubric_gives():
    class Half(Spy):
        """Right under the rubric, right about half the topics with the profile, ties without."""

        def rate(self, views):
            for index, view in enumerate(views):
                colour = "red" if "red" in view.answer else "blue"
                shown = " ".join([*(post.text for post in view.posts), *view.plan])
                knows = view.plan or any(topic in view.question for topic in ("tea", "boots", "bread"))
                yield index, Outcome.scored(float(shown.count(colour)) if knows else 0.0)

    found = evaluate(Half(), mirrored(), contexts=["none", "profile", "oracle"])
    assert contexts_of(found)["oracle"].accuracy.value == 1.0
    assert contexts_of(found)["profile"].accuracy.value == 0.75
    headroom = found.effects.headroom_closed
    assert headroom.value == pytest.approx(0.5)
    assert headroom.leaks


def test_other_users_come_from_the_same_split_of_the_whole_suite():
    pairs = [*mirrored(couples=2), *[_moved(pair) for pair in mirrored(couples=2)]]
    found = evaluate(Spy(), pairs, contexts=["other"], split="test", limit=2)
    everybody = evaluate(Spy(), pairs, contexts=["other"], split="test")
    shown = {record.pair: record.shown_user for record in everybody.records}
    assert all(user.startswith("u") for user in shown.values())
    assert all(record.shown_user == shown[record.pair] for record in found.records)


def _moved(pair):
    tags = {**pair.tags, "split": "train", "mirror": f"t{pair.tags['mirror']}", "couple": f"t{pair.tags['couple']}"}
    return pair.model_copy(update={"id": f"t{pair.id}", "user": f"t{pair.user}", "tags": tags})


def test_a_model_that_forgets_an_answer_has_a_failed_record():
    class Forgetful(Spy):
        def rate(self, views):
            for index, outcome in super().rate(views):
                if "tea" not in views[index].question:
                    yield index, outcome

    profile = contexts_of(evaluate(Forgetful(), mirrored(), contexts=["profile"]))["profile"]
    assert profile.reasons == {"the model gave no outcome": 6}


def test_scores_without_a_finite_difference_are_still_verified(tmp_path):
    def huge(question, answer):
        return 1e308 if "red" in answer else -1e308

    evaluate(huge, mirrored(), contexts=["none"], out=tmp_path / "run")
    assert verify(tmp_path / "run").mismatches == ()


def test_a_function_that_breaks_is_said_at_once_or_recorded():
    with pytest.raises(ModelError, match="raised ZeroDivisionError"):
        evaluate(lambda question, answer: 1 / 0, mirrored(), contexts=["none"])
    found = evaluate(lambda question, answer: 1 / ("tea" not in question), mirrored(), contexts=["none"])
    assert contexts_of(found)["none"].reasons == {"ZeroDivisionError: division by zero": 6}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"contexts": ["profil"]}, "unknown context 'profil'"),
        ({"contexts": []}, "no context was given"),
        ({"limit": 0}, "limit is 0"),
    ],
)
def test_bad_settings_are_said_in_the_users_words(settings, message):
    with pytest.raises((ConfigError, ContextError), match=message):
        evaluate("longer", mirrored(), **settings)


def test_no_pairs_is_refused():
    with pytest.raises(ConfigError, match="no pairs to evaluate"):
        evaluate("longer", [])


def test_contexts_may_be_a_string():
    assert set(contexts_of(evaluate(follows_posts, mirrored(), contexts="none,profile"))) == {"none", "profile"}


def test_equal_inputs_are_one_call(tmp_path):
    spy = Spy()
    run = session(spy, contexts=("none",))
    found = execute(run, RunFolder(tmp_path / "run"))
    assert spy.asked == 12  # six questions, two answers each, whatever the number of users
    assert len(found.records) == 36
    usage = found.usage
    assert (usage.distinct_calls, usage.calls_without_sharing, usage.tokens_in) == (12, 72, 120)


def test_a_finished_run_costs_no_call_and_changes_nothing(tmp_path):
    first = execute(session(Spy()), RunFolder(tmp_path / "run"))
    spy = Spy()
    again = execute(session(spy), RunFolder(tmp_path / "run"))
    assert spy.asked == 0
    assert without_timing(again) == without_timing(first)


def test_another_run_takes_its_answers_from_the_cache(tmp_path):
    cache = CallCache()
    execute(session(Spy()), RunFolder(tmp_path / "one"), cache=cache)
    spy = Spy()
    execute(session(spy, seed=0, limit=12), RunFolder(tmp_path / "two"), cache=cache)
    assert spy.asked == 0
    changed = Spy(window=10_000)  # other parameters are another model
    execute(session(changed), RunFolder(tmp_path / "three"), cache=cache)
    assert changed.asked > 0
    cache.close()


def test_functions_are_never_taken_from_the_cache(tmp_path):
    calls = []

    def counting(question, answer):
        calls.append(answer)
        return len(answer)

    cache = CallCache()
    for name in ("one", "two"):
        execute(session(wrap(counting), contexts=("none",)), RunFolder(tmp_path / name), cache=cache)
    cache.close()
    assert len(calls) == 24


class Flaky(Spy):
    """Fails on some calls the first time round."""

    def __init__(self, broken):
        super().__init__()
        self.broken = broken

    def rate(self, views):
        for index, outcome in super().rate(views):
            bad = self.broken and "tea" in views[index].question
            yield index, Outcome.failed("connection lost") if bad else outcome


def test_failed_records_are_counted_bounded_and_asked_again(tmp_path):
    broken = execute(session(Flaky(True), contexts=("profile",)), RunFolder(tmp_path / "run"))
    profile = contexts_of(broken)["profile"]
    assert profile.failed_records == 6
    assert profile.reasons == {"connection lost": 6}
    assert (profile.accuracy.value, profile.accuracy.n) == (1.0, 30)
    assert profile.accuracy.low < 0.5  # three couples, all right: far from certain
    assert profile.bounds == AccuracyBounds(30 / 36, 1.0)
    assert any("no verdict" in warning for warning in broken.warnings)
    mended = Flaky(False)
    again = execute(session(mended, contexts=("profile",)), RunFolder(tmp_path / "run"))
    assert mended.asked == 12
    assert contexts_of(again)["profile"].failed_records == 0
    assert contexts_of(again)["profile"].accuracy.n == 36


def test_a_context_the_model_does_not_read_is_unsupported_and_no_number():
    found = evaluate("longer", mirrored(), contexts=["none", "profile", "oracle"])
    assert found.unsupported == ("profile", "oracle")
    assert set(contexts_of(found)) == {"none"}
    with pytest.raises(ConfigError, match="does not read"):
        evaluate("longer", mirrored(), contexts=["profile"])


def test_a_folder_that_holds_another_run_is_refused_and_untouched(tmp_path):
    execute(session(Spy()), RunFolder(tmp_path / "run"))
    before = (tmp_path / "run" / "config.toml").read_bytes()
    with pytest.raises(RunError, match="holds another run"):
        execute(session(Spy(), seed=1), RunFolder(tmp_path / "run"))
    assert (tmp_path / "run" / "config.toml").read_bytes() == before


def test_the_folder_is_named_by_what_can_change_an_answer():
    name = session(Spy()).default_folder().name
    assert name == session(Spy(), by=("axis",)).default_folder().name
    assert name != session(Spy(), seed=1).default_folder().name
    assert name != session(Spy(), pairs=mirrored(couples=2)).default_folder().name
    assert name.startswith("small-spy-")


def test_unfit_pairs_stop_the_run_before_the_first_call_unless_allowed():
    spy = Spy(window=12)
    with pytest.raises(ContextError, match="36 records cannot be made"):
        evaluate(spy, mirrored(), contexts=["none", "profile"])
    assert spy.asked == 0
    found = evaluate(Spy(window=12), mirrored(), contexts=["none", "profile"], allow_unfit=True)
    assert contexts_of(found)["profile"].invalid_records == 36
    assert contexts_of(found)["profile"].accuracy.value is None
    assert contexts_of(found)["none"].accuracy.n == 36


def test_limit_keeps_whole_couples():
    found = evaluate(follows_posts, mirrored(), contexts=["none"], limit=7)
    assert len(found.records) == 6
    assert contexts_of(found)["none"].accuracy.value == 0.5


def test_by_an_unknown_tag_is_refused():
    with pytest.raises(ConfigError, match="no pair has the tag 'axes'"):
        evaluate(follows_posts, mirrored(), by=["axes"])


class Paid(Spy):
    """A model with a price."""

    def __init__(self):
        super().__init__()
        self.card = self.card.model_copy(update={"price": Price(per_million_in=1e5, per_million_out=0)})

    def rate(self, views):
        for index, outcome in super().rate(views):
            yield index, outcome.model_copy(update={"cost_usd": 1.0})


def test_max_cost_stops_resumably(tmp_path):
    paid = Paid()
    with pytest.raises(BudgetError, match=r"stopped after \$5.0000"):
        execute(session(paid, contexts=("none",)), RunFolder(tmp_path / "run"), max_cost_usd=5.0)
    assert paid.asked == 5
    rest = Paid()
    found = execute(
        session(rest, contexts=("none",)), RunFolder(tmp_path / "run"), cache=CallCache(), max_cost_usd=50.0
    )
    assert contexts_of(found)["none"].accuracy.n == 36


def test_a_fresh_run_over_budget_is_not_started_whatever_the_folder_holds(tmp_path):
    evaluate(Paid(), mirrored(), contexts=["none"], out=tmp_path / "run", cache=False)
    before = (tmp_path / "run" / "records.jsonl").read_bytes()
    again = Paid()
    evaluate(again, mirrored(), contexts=["none"], out=tmp_path / "run", max_cost_usd=1.0)  # all of it is there
    with pytest.raises(BudgetError, match="not started"):
        evaluate(again, mirrored(), contexts=["none"], out=tmp_path / "run", max_cost_usd=1.0, fresh=True)
    assert again.asked == 0
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == before


def test_a_forecast_asks_nothing_and_a_budget_is_refused_beforehand():
    paid = Paid()
    run = session(paid)
    estimate = forecast(run, {}, None)
    assert (estimate.pairs, estimate.records_open, paid.asked) == (36, 108, 0)
    assert estimate.distinct_calls < estimate.calls_without_sharing == 216
    assert estimate.cost_usd > 1
    with pytest.raises(BudgetError, match="not started"):
        refuse_over_budget("the run is", estimate.cost_usd, Budget(limit_usd=1.0), hint="")
    with pytest.raises(BudgetError, match="price is not known"):
        refuse_over_budget("the run is", forecast(session(Spy()), {}, None).cost_usd, Budget(limit_usd=1.0), hint="")


def test_repeats_of_a_sampling_model_are_separate_calls(tmp_path):
    spy = Spy()
    spy.card = spy.card.model_copy(update={"deterministic": False})
    execute(session(spy, contexts=("none",), repeats=3), RunFolder(tmp_path / "run"))
    assert spy.asked == 36
    steady = Spy()
    execute(session(steady, contexts=("none",), repeats=3), RunFolder(tmp_path / "again"))
    assert steady.asked == 12


def test_a_split_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="has no split 'train'"):
        evaluate(follows_posts, mirrored(), split="train")


def test_nan_is_invalid_and_never_a_score():
    found = evaluate(lambda question, answer: float("nan"), mirrored(), contexts=["none"])
    assert contexts_of(found)["none"].invalid_records == 36
    assert contexts_of(found)["none"].accuracy.value is None
