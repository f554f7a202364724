"""The `lm:` backend: four modes against hand computations on tiny models, then the real SmolLM2."""

import math
import platform
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

import tiny_models
from prbench.errors import AddressError, ModelError
from prbench.models.local import lm
from prbench.models.local.language_model import LanguageModel, open_named
from prbench.models.registry import ModelOptions
from prbench.prompts.neutral import as_anybody
from prbench.types import AnswerView, Channel, Message, PairView, Post, Prompt
from real_weights import real_model

POSTS = (Post(id="1", text="I keep a small garden and I like short answers."), Post(id="2", text="My knees hurt."))
PAIRS = [
    PairView("Which tea should I drink?", "Chamomile.", "Green tea keeps most people awake."),
    PairView("Which tea should I drink?", "Chamomile.", "Green tea keeps most people awake.", POSTS, (), "ann"),
    PairView("How do I repair a chair?", "Glue it.", "Buy a new one, it is old.", POSTS, ("one clear step",), "ann"),
    PairView("Tea?", "é 茶 🍵", "No.", (), ("numbers first", "short")),
]
ANSWERS = [answer for pair in PAIRS for answer in pair.answers()]


def outcomes(model, views):
    asked = model.rate(views) if hasattr(model, "rate") else model.compare(views)
    found = dict(asked)
    assert sorted(found) == list(range(len(views)))
    assert all(outcome.status == "ok" for outcome in found.values())
    return [found[index] for index in range(len(views))]


def opened(folder: Path, mode: str, **options):
    return lm.load(f"{folder}#{mode}", ModelOptions(**options))


def by_hand(folder: Path):
    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()


def next_logits(folder: Path, text: str) -> tuple[object, torch.Tensor]:
    tokenizer, model = by_hand(folder)
    ids = tokenizer(f"<s><|user|>{text}</s><|assistant|>", add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        return tokenizer, model(input_ids=torch.tensor([ids])).logits[0, -1].double()


def mean_log_likelihood(folder: Path, turn: str, answer: str) -> float:
    """One token at a time; the closing mark of the turn is not the answer's."""
    tokenizer, model = by_hand(folder)
    before = tokenizer(f"<s><|user|>{turn}</s><|assistant|>", add_special_tokens=False)["input_ids"]
    after = tokenizer(answer, add_special_tokens=False)["input_ids"]
    total = 0.0
    with torch.inference_mode():
        for place, token in enumerate(after):
            logits = model(input_ids=torch.tensor([before + after[:place]])).logits[0, -1]
            total += float(torch.log_softmax(logits.double(), -1)[token])
    return total / len(after)


def test_compare_margin_equals_the_log_odds_of_the_letters(tiny_policy):
    judge = opened(tiny_policy, "compare")
    for view, outcome in zip(PAIRS, outcomes(judge, PAIRS), strict=True):
        tokenizer, logits = next_logits(tiny_policy, judge.render(view).messages[0].content)
        first, second = (tokenizer(letter, add_special_tokens=False)["input_ids"] for letter in "AB")
        assert len(first) == len(second) == 1
        expected = float(logits[first[0]] - logits[second[0]])
        assert outcome.margin == pytest.approx(expected, abs=1e-3)
        assert outcome.verdict == ("first" if expected > 0 else "second")
        assert outcome.tokens_in == judge.length(judge.render(view))
        assert outcome.latency_ms > 0


def test_compare_shows_posts_plan_question_and_both_answers(tiny_policy):
    judge = opened(tiny_policy, "compare")
    assert judge.card.reads == {Channel.POSTS, Channel.PLAN}
    (message,) = judge.render(PAIRS[2]).messages
    places = [message.content.index(text) for text in (POSTS[0].text, "one clear step", PAIRS[2].question, "Glue it.")]
    assert places == sorted(places)
    assert message.content.index("Glue it.") < message.content.index("Buy a new one")
    assert "this user" not in judge.render(PAIRS[0]).messages[0].content


@pytest.fixture(scope="session")
def fair_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that cannot see order: no attention, every layer off, so only the last token counts."""
    folder = tiny_models.save_causal_model(tmp_path_factory.mktemp("fair"), seed=3)
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    model.save_pretrained(folder)
    return folder


def test_both_orders_of_a_blind_judge_cancel_exactly(fair_model):
    judge = opened(fair_model, "compare")
    straight = outcomes(judge, PAIRS)
    swapped = outcomes(judge, [pair.swap() for pair in PAIRS])
    for one, other in zip(straight, swapped, strict=True):
        assert one.margin == pytest.approx(other.margin, abs=1e-6)
        assert one.margin - other.margin == pytest.approx(0, abs=1e-6)  # what is left after averaging both orders
        assert one.margin != 0


class TellsLetters(torch.nn.Module):
    """A language model by construction: it finds the word `good` and prefers the letter before it, wherever it is."""

    def __init__(self, tokenizer, template_ids: dict[str, list[int]]):
        super().__init__()
        self.tokenizer = tokenizer
        self.letters = template_ids

    def read(self, requests):
        from prbench.models.local.prefix import Reading

        for index, request in enumerate(requests):
            text = self.tokenizer.decode(list(request.ids))
            first, _, second = text.partition("Answer B:")
            odds = 2.0 * (first.count("good") - second.count("good"))
            values = tuple(odds if column in self.letters["A"] else 0.0 for column in request.columns)
            yield Reading(index, values, 1.0)


def test_compare_is_antisymmetric_for_a_model_without_position_bias(tiny_policy):
    model = LanguageModel(open_named(str(tiny_policy), "lm:fair"), ModelOptions())
    letters = dict(zip("AB", model.reply_tokens(("A", "B")), strict=True))
    model.scorer = TellsLetters(model.checkpoint.tokenizer, letters)
    judge = lm.LetterComparer(model)
    views = [
        PairView("Q?", "a good one", "a bad one"),
        PairView("Q?", "bad", "good, very good"),
        PairView("Q?", "x", "y"),
    ]
    straight, swapped = outcomes(judge, views), outcomes(judge, [view.swap() for view in views])
    assert [outcome.margin for outcome in straight] == pytest.approx([2.0, -4.0, 0.0])
    assert [outcome.margin for outcome in swapped] == pytest.approx([-2.0, 4.0, 0.0])
    assert [outcome.verdict for outcome in straight] == ["first", "second", "tie"]


def test_spellings_of_a_letter_are_summed(tiny_policy):
    model = LanguageModel(open_named(str(tiny_policy), "lm:tiny"), ModelOptions())
    one, other = lm.log_weights([1.0, 2.0, 3.0], [(7, 8), (9,)])
    assert one == pytest.approx(math.log(math.exp(1) + math.exp(2)))
    assert other == 3.0
    columns = model.reply_tokens(("A", "B"))
    assert [model.checkpoint.tokenizer.decode([column[0]]) for column in columns] == ["A", "B"]


def test_words_without_tokens_of_their_own_are_refused(tiny_policy):
    model = LanguageModel(open_named(str(tiny_policy), "lm:tiny"), ModelOptions())
    with pytest.raises(ModelError, match="no separate tokens for Aardvark"):
        model.reply_tokens(("Aardvark", "Zebra"))


def test_likelihood_equals_a_hand_computation(tiny_policy):
    rater = opened(tiny_policy, "loglik")
    for view, outcome in zip(ANSWERS[1:6], outcomes(rater, ANSWERS[1:6]), strict=True):
        turn = rater.render(view).messages[0].content
        assert outcome.score == pytest.approx(mean_log_likelihood(tiny_policy, turn, view.answer), abs=1e-3)
        assert outcome.score < -0.1


def test_information_is_the_difference_of_two_likelihoods(tiny_policy):
    likelihood, information = opened(tiny_policy, "loglik"), opened(tiny_policy, "pmi")
    own, anybodys = outcomes(likelihood, ANSWERS), outcomes(likelihood, [as_anybody(view) for view in ANSWERS])
    for view, outcome, one, other in zip(ANSWERS, outcomes(information, ANSWERS), own, anybodys, strict=True):
        assert outcome.score == pytest.approx(one.score - other.score, abs=1e-3)
        if not view.posts and not view.plan:
            assert outcome.score == 0.0
            assert outcome.tokens_in == 0
        else:
            assert outcome.score != 0.0


def test_information_prompt_holds_both_turns_so_that_its_key_does(tiny_policy):
    information = opened(tiny_policy, "pmi")
    messages = information.render(ANSWERS[2]).messages
    assert [message.role for message in messages] == ["user", "assistant", lm.ANYBODY]
    assert messages[2].content == opened(tiny_policy, "loglik").render(as_anybody(ANSWERS[2])).messages[0].content
    assert not any(post.text in messages[2].content for post in ANSWERS[2].posts)
    assert information.length(information.render(ANSWERS[2])) == opened(tiny_policy, "loglik").length(
        opened(tiny_policy, "loglik").render(ANSWERS[2])
    )


def test_rating_is_an_expectation_over_five_digits(tiny_policy):
    rater = opened(tiny_policy, "rate")
    for view, outcome in zip(ANSWERS, outcomes(rater, ANSWERS), strict=True):
        tokenizer, logits = next_logits(tiny_policy, rater.render(view).messages[0].content)
        ids = [tokenizer(digit, add_special_tokens=False)["input_ids"][0] for digit in "12345"]
        weights = torch.softmax(logits[ids], -1)
        assert outcome.score == pytest.approx(float((weights * torch.arange(1, 6)).sum()), abs=1e-3)
        assert 1 <= outcome.score <= 5


@given(st.lists(st.floats(-50, 50), min_size=5, max_size=5))
def test_expectation_stays_on_the_scale(log_weights):
    assert 1 - 1e-9 <= lm._expectation(log_weights) <= 5 + 1e-9


@pytest.mark.parametrize("mode", ["compare", "loglik", "pmi", "rate"])
def test_answers_do_not_depend_on_the_batch(tiny_policy, mode):
    views = PAIRS if mode == "compare" else ANSWERS
    read = lambda outcome: outcome.margin if mode == "compare" else outcome.score  # noqa: E731
    whole = [read(outcome) for outcome in outcomes(opened(tiny_policy, mode), views)]
    small = [read(outcome) for outcome in outcomes(opened(tiny_policy, mode, batch_tokens=64), views)]
    single = [read(outcomes(opened(tiny_policy, mode), [view])[0]) for view in views]
    assert small == pytest.approx(whole, abs=1e-4)
    assert single == pytest.approx(whole, abs=1e-4)


def test_shared_beginnings_are_computed_once(tiny_policy):
    judge = opened(tiny_policy, "compare")
    assert judge.effort.computed_tokens == judge.effort.naive_tokens == 0
    outcomes(judge, [PAIRS[1], PAIRS[1].swap(), PAIRS[2], PAIRS[2].swap()])
    assert judge.note is None
    assert judge.effort.computed_tokens < judge.effort.naive_tokens


def test_precision_that_the_processor_lacks_is_said(tiny_policy):
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    on_intel = platform.machine() in {"x86_64", "AMD64"}
    note = opened(tiny_policy, "compare", dtype="bfloat16", device="cpu").note
    assert (note is not None and "float32 is faster" in note) == (on_intel and not native)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(max_size=40), st.text(min_size=1, max_size=40))
def test_any_text_gets_a_finite_score_or_a_reason(tiny_policy, question, answer):
    for mode in ("loglik", "rate"):
        for outcome in dict(opened(tiny_policy, mode).rate([AnswerView(question, answer)])).values():
            assert (outcome.status == "ok" and math.isfinite(outcome.score)) or outcome.reason


def test_too_long_a_prompt_is_invalid_and_says_both_numbers(tiny_policy):
    (outcome,) = dict(opened(tiny_policy, "loglik", window=20).rate([ANSWERS[2]])).values()
    assert outcome.status == "invalid"
    assert "exceeds the window of 20" in outcome.reason


def test_an_answer_without_tokens_is_invalid(tiny_policy):
    for mode, view in (("loglik", AnswerView("Tea?", "")), ("pmi", AnswerView("Tea?", "", POSTS))):
        (outcome,) = dict(opened(tiny_policy, mode).rate([view])).values()
        assert (outcome.status, outcome.reason) == ("invalid", "the answer has no tokens")


def test_card_tells_modes_templates_and_precision_apart(tiny_policy, tmp_path):
    template = tmp_path / "own.jinja"
    template.write_text("{{ question }} {{ first }} {{ second }} A or B?")
    cards = [
        opened(tiny_policy, "compare").card,
        opened(tiny_policy, "rate").card,
        opened(tiny_policy, "compare", dtype="bfloat16").card,
        opened(tiny_policy, "compare", template=template).card,
    ]
    assert len({(card.address, str(card.parameters)) for card in cards}) == 4
    assert len({card.revision for card in cards}) == 1
    assert cards[0].address == f"lm:{tiny_policy}#compare"
    assert cards[3].reads == frozenset()


def test_default_mode_is_compare(tiny_policy):
    assert isinstance(lm.load(str(tiny_policy), ModelOptions()), lm.LetterComparer)


def test_parameter_count_needs_no_weights(tiny_policy):
    judge = opened(tiny_policy, "compare")
    assert judge.parameter_count() == sum(p.numel() for p in by_hand(tiny_policy)[1].parameters())


def test_judge_and_writer_share_weights(tiny_policy):
    judge, writer = opened(tiny_policy, "compare"), lm.load_generator(str(tiny_policy), ModelOptions())
    assert judge._model.weights is writer._model.weights


def test_other_kinds_of_model_are_refused(tiny_reward_model):
    with pytest.raises(ModelError, match="not as a causal language model"):
        lm.load(str(tiny_reward_model), ModelOptions())


@pytest.mark.parametrize(("rest", "message"), [("#compare", "names no model"), ("x#tally", "unknown mode 'tally'")])
def test_bad_addresses(rest, message):
    with pytest.raises(AddressError, match=message):
        lm.load(rest, ModelOptions())


def test_missing_gguf_file_is_named():
    with pytest.raises(ModelError, match=r"there is no file 'no/such\.gguf'"):
        lm.load("no/such.gguf", ModelOptions())


PROMPTS = [Prompt((Message("user", text),)) for text in ("Which tea?", "How do I repair an old wooden chair?", "Tea")]


def written(generator, prompts=PROMPTS, **options):
    found = dict(generator.generate(prompts, **{"max_tokens": 12, **options}))
    assert sorted(found) == list(range(len(prompts)))
    return [[outcome.raw for outcome in found[index]] for index in range(len(prompts))]


@pytest.fixture(scope="module")
def writer(tiny_policy):
    return lm.load_generator(str(tiny_policy), ModelOptions())


def test_greedy_text_equals_a_hand_computation(writer, tiny_policy):
    tokenizer, model = by_hand(tiny_policy)
    ids = tokenizer("<s><|user|>Which tea?</s><|assistant|>", add_special_tokens=False)["input_ids"]
    start = len(ids)
    with torch.inference_mode():
        while len(ids) < start + 12 and tokenizer.eos_token_id not in ids[start:]:
            ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    expected = tokenizer.decode(ids[start:], skip_special_tokens=True)
    assert written(writer)[0] == [expected]
    assert expected


def test_the_seed_decides_and_neither_batch_nor_global_state_does(writer):
    sampled = {"temperature": 1.0, "n": 3}
    first = written(writer, seed=5, **sampled)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    assert written(writer, seed=5, **sampled) == first
    assert torch.equal(torch.get_rng_state(), state)
    assert written(writer, seed=6, **sampled) != first
    assert written(writer, [PROMPTS[1]], seed=5, **sampled) == [first[1]]
    assert len(set(first[0])) == 3


def test_sampling_follows_the_distribution(writer, tiny_policy):
    tokenizer, logits = next_logits(tiny_policy, "Which tea?")
    probabilities = torch.softmax(logits / 2.0, -1)
    expected: Counter[str] = Counter()  # several tokens are the same text: bytes that are no character alone
    for token, probability in enumerate(probabilities.tolist()):
        expected[tokenizer.decode([token], skip_special_tokens=True)] += probability
    (texts,) = written(writer, PROMPTS[:1], temperature=2.0, n=400, max_tokens=1)
    found = Counter(texts)
    for text, share in expected.most_common(5):
        assert found[text] / 400 == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 400))


def test_stop_strings_end_a_text_and_are_not_part_of_it(writer):
    ((whole,),) = written(writer, PROMPTS[:1])
    mark = whole[3:5]
    found = dict(writer.generate(PROMPTS[:1], max_tokens=12, stop=[mark, "never there"]))
    (outcome,) = found[0]
    assert outcome.raw == whole[: whole.index(mark)]
    assert outcome.reason == ""
    assert outcome.tokens_out < 12 or whole.endswith(mark)


def test_cut_off_text_says_so(writer):
    (outcome,) = dict(writer.generate(PROMPTS[:1], max_tokens=2))[0]
    assert outcome.status == "ok"
    assert outcome.reason == "cut off after 2 tokens"
    assert (outcome.tokens_in, outcome.tokens_out) == (writer.length(PROMPTS[0]), 2)


def test_window_bounds_prompt_and_text_together(tiny_policy):
    narrow = lm.load_generator(str(tiny_policy), ModelOptions(window=16))
    found = dict(narrow.generate(PROMPTS, max_tokens=12))
    lengths = [narrow.length(prompt) for prompt in PROMPTS]
    assert lengths[1] >= 16 > lengths[2]
    assert found[1][0].status == "invalid"
    assert found[2][0].tokens_out <= 16 - lengths[2]


@pytest.fixture(scope="module")
def smollm2() -> Path:
    return real_model("smollm2")


def test_real_model_judges_and_rates(smollm2):
    judge = lm.load(f"{smollm2}#compare", ModelOptions())
    spellings = [[judge._model.checkpoint.tokenizer.decode([token]) for token in tokens] for tokens in judge._letters]
    assert spellings == [["A", " A"], ["B", " B"]]
    good, bad = "Water boils at 100 degrees Celsius at sea level.", "Purple seven the the, running of."
    question = "At what temperature does water boil?"
    views = [PairView(question, good, bad), PairView(question, bad, good)]
    straight, swapped = outcomes(judge, views)
    assert straight.margin - swapped.margin > 0  # averaged over both orders, position bias cancels
    likelihood = lm.load(f"{smollm2}#loglik", ModelOptions())
    better, worse = outcomes(likelihood, views[0].answers())
    assert better.score > worse.score + 1
    assert likelihood.parameter_count() == 134_515_008


def test_real_model_writes(smollm2):
    generator = lm.load_generator(str(smollm2), ModelOptions())
    prompt = Prompt((Message("user", "What is the capital of France? Answer in one sentence."),))
    ((outcome,),) = dict(generator.generate([prompt], max_tokens=16)).values()
    assert "Paris" in outcome.raw
