"""The language-model judge: the expectation of a digit, against a hand computation on a tiny model."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import tiny_models
from prbench.config import ModelOptions
from prbench.graders import Grading, load_judge
from prbench.graders.logits import NOTHING
from prbench.types import Aspect

ASPECTS = (Aspect(aspect="one clear step", reason="short answers"), Aspect(aspect="numbers first"))
ASKED = [
    Grading("Which tea?", "Chamomile.", ASPECTS),
    Grading("Which tea?", "Green tea keeps most people awake.", ASPECTS),
    Grading("How do I repair a chair?", "Glue it.", ASPECTS[:1]),
    Grading("How do I repair a chair?", "é 茶 🍵", ASPECTS[1:]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_models.save_causal_model(
        tmp_path_factory.mktemp("judge"), seed=3, num_hidden_layers=2, max_position_embeddings=1024
    )


def grades(judge, asked):
    found = list(judge.grade(asked))
    assert sorted(place for place, _ in found) == list(range(len(asked)))
    return [grade for _, grade in sorted(found, key=lambda item: item[0])]


class Reference:
    """The whole prompt in one plain pass, and arithmetic that can be followed."""

    def __init__(self, folder):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def log_shares(self, judge, grading, aspect):
        text = judge.render(grading, aspect).messages[0].content
        turn = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=True, add_generation_prompt=True, return_dict=True
        )
        with torch.inference_mode():
            logits = self.model(torch.tensor([turn["input_ids"]])).logits[0, -1].double()
        weights = []
        for digit in "012":
            # The spellings that every digit has: alone, after a space, after a line break.
            tokens = {
                self.tokenizer(before + digit, add_special_tokens=False)["input_ids"][-1] for before in ("", " ", "\n")
            }
            weights.append(torch.logsumexp(logits[sorted(tokens)], 0))
        return torch.stack(weights)


def expectation(log_weights):
    return float(torch.softmax(log_weights, 0) @ torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64))


def test_a_grade_is_the_expectation_of_the_digit(folder):
    judge, reference = load_judge(f"lm:{folder}"), Reference(folder)
    found = grades(judge, ASKED)
    for grading, grade in zip(ASKED, found, strict=True):
        expected = [expectation(reference.log_shares(judge, grading, aspect)) for aspect in grading.aspects]
        assert grade.aspects == pytest.approx(expected, abs=1e-5)
    assert len({round(grade.score, 4) for grade in found}) == len(found)  # the answer matters


def test_contrast_takes_off_what_any_answer_would_get(folder):
    judge, reference = load_judge(f"lm:{folder}#contrast"), Reference(folder)
    for grading, grade in zip(ASKED, grades(judge, ASKED), strict=True):
        silent = Grading(grading.question, NOTHING, grading.aspects)
        expected = [
            expectation(reference.log_shares(judge, grading, aspect) - reference.log_shares(judge, silent, aspect))
            for aspect in grading.aspects
        ]
        assert grade.aspects == pytest.approx(expected, abs=1e-5)
    (nothing,) = grades(judge, [Grading("Which tea?", NOTHING, ASPECTS)])
    assert nothing.aspects == pytest.approx((1.0, 1.0), abs=1e-5)


def test_grades_do_not_depend_on_what_else_is_asked(folder):
    judge = load_judge(f"lm:{folder}")
    together = grades(judge, ASKED)
    alone = [grades(judge, [grading])[0] for grading in ASKED]
    assert [grade.score for grade in together] == pytest.approx([grade.score for grade in alone], abs=1e-5)


def test_what_prompts_share_is_read_once_and_forecast_so(folder):
    judge = load_judge(f"lm:{folder}")
    candidates = [Grading(ASKED[0].question, f"Tea number {n}.", ASPECTS) for n in range(8)]
    foreseen = judge.forecast(candidates)
    total = sum(grade.tokens_in for grade in grades(judge, candidates))
    assert foreseen < 0.8 * total
    assert judge.forecast([*candidates, candidates[0]]) == foreseen
    assert judge._model.effort.computed_tokens == foreseen


def test_a_prompt_longer_than_the_window_is_invalid_and_never_cut(folder):
    judge = load_judge(f"lm:{folder}", ModelOptions(window=200))
    long = Grading("Which tea?", "tea " * 300, ASPECTS)
    assert "exceeds the window of 200" in judge.refuses(long)
    (grade,) = grades(judge, [long])
    assert (grade.status, grade.score) == ("invalid", None)


def test_a_rubric_without_aspects_is_invalid(folder):
    (grade,) = grades(load_judge(f"lm:{folder}"), [Grading("Which tea?", "Green.", ())])
    assert (grade.status, grade.reason) == ("invalid", "the rubric has no aspects")


def test_the_card_tells_modes_and_weights_apart(folder):
    plain, contrast = (load_judge(f"lm:{folder}{mode}").card for mode in ("", "#contrast"))
    assert plain.revision == contrast.revision != ""
    assert plain.parameters["mode"] != contrast.parameters["mode"]
    assert plain.address == f"lm:{folder}#plain"
