"""Languages are told, apart from each other and in mixtures; what cannot be told is said to be so."""

import itertools
import tomllib
from pathlib import Path

import pytest

from prbench.build.gates import known_languages, language_shares
from prbench.data import load_pairs
from prbench.texts import sentences

SAMPLES = tomllib.loads(Path(__file__).with_name("language_samples.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", SAMPLES)
def test_a_paragraph_is_told(language):
    assert language_shares(SAMPLES[language]) == {language: 1.0}


def test_every_sample_is_in_a_known_language():
    assert set(SAMPLES) < set(known_languages())
    assert list(known_languages()) == sorted(set(known_languages()))


@pytest.mark.parametrize("language", SAMPLES)
def test_no_single_sentence_is_taken_for_another_language(language):
    for sentence in sentences(SAMPLES[language]):
        assert set(language_shares(sentence)) <= {language}, sentence


def test_half_and_half_is_seen_for_every_two_languages():
    missed = []
    for one, other in itertools.combinations(SAMPLES, 2):
        shares = language_shares(f"{SAMPLES[one]}\n{SAMPLES[other]}")
        smaller = min(shares.get(one, 0.0), shares.get(other, 0.0))
        if not 0.2 < smaller <= 0.5:
            missed.append((one, other, shares))
    pairs = len(SAMPLES) * (len(SAMPLES) - 1) // 2
    print(f"mixtures seen: {pairs - len(missed)} of {pairs}; missed: {missed}")
    assert missed == []


def test_all_english_texts_of_the_embedded_suite_are_told():
    pairs = load_pairs("mirror", split="validation")
    texts = sorted({text for pair in pairs for text in (pair.question, pair.chosen, pair.rejected)})
    wrong = [text for text in texts if language_shares(text).get("en", 0.0) < 0.75]
    print(f"English told: {len(texts) - len(wrong)} of {len(texts)}")
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "The maître d' served a crème brûlée with a soupçon of schadenfreude, and it was all very chic.",
        "You can say 'Guten Tag' to them, or 'Grüß Gott' in the south, but do not mix the two up.",
        "It's the same in Москва and in 東京: you should ask before you sit down.",
    ],
)
def test_loan_words_do_not_change_a_language(text):
    assert language_shares(text) == {"en": 1.0}


@pytest.mark.parametrize("text", ["", "?!", "12 345", "Lantern.", "kx zw qpt", "👍👍", "def f(x): return x + 1"])
def test_what_cannot_be_told_is_not_guessed(text):
    assert language_shares(text) == {}
