"""Detection of a text's languages, by script and shortest words: no model, no network, the same answer every time.

A sentence is told if its frequent words point clearly to one language; what is too short or too mixed stays untold. A
few borrowed words or names do not change a sentence. Close relatives are told apart only by what they do not share.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from prbench.texts import sentences


class _Evidence(NamedTuple):
    """Evidence that it takes to tell a language."""

    least: float
    """Least weight of its frequent words."""
    lead: float
    """Least ratio of that weight to the next language's."""


_OF_SENTENCE = _Evidence(2.0, 1.5)
_OF_TEXT = _Evidence(1.5, 1.15)
"""Evidence for a whole text: chance has evened out, and less will do."""
_OF_LEANING = _Evidence(1.2, 2.0)
"""Evidence for a sentence to be in another language than the whole text, if it does not say clearly in which."""
_EAST_ASIAN = frozenset({"cjk", "hiragana", "katakana"})
_MARKS = re.compile(r"[^\W\d_][\w\u0300-\u036f\u0900-\u097f'’]*")
"""A word with its combining vowel signs, which `\\w` leaves out."""


def language_shares(text: str) -> dict[str, float]:
    """The share of each language among the letters of a text, largest first; empty if it cannot be told.

    Example:
        >>> language_shares("The tea is too hot for me, but you can have it. Der Tee ist mir nicht zu heiß.")
        {'en': 0.59..., 'de': 0.40...}
        >>> language_shares("Sencha!")
        {}
    """
    whole = _tell(text, _OF_TEXT)
    clear = [(sentence, _tell(sentence, _OF_SENTENCE)) for sentence in sentences(text)]
    if whole is None and not any(language for _, language in clear):
        return {}
    told: Counter[str] = Counter()
    for sentence, language in clear:
        if language := language or _lean(sentence, whole):
            told[language] += sum(map(str.isalpha, sentence))
    return {language: weight / told.total() for language, weight in told.most_common() if weight}


def known_languages() -> tuple[str, ...]:
    """The languages that are told apart within their script; a script with one language needs no list."""
    return tuple(sorted(language for lists in _lists().values() for language in lists))


def _tell(text: str, evidence: _Evidence) -> str | None:
    script = _main_script(text)
    if script not in _lists():
        return script
    ranked = _weigh(text, script).most_common(2)
    if not ranked or ranked[0][1] < evidence.least:
        return None
    if len(ranked) > 1 and ranked[0][1] < evidence.lead * ranked[1][1]:
        return None
    return ranked[0][0]


def _lean(sentence: str, whole: str | None) -> str | None:
    """The language of a sentence that does not tell by itself: that of the whole text, unless it speaks against it.

    A close relative of another language is not told from it by one sentence, but from the rest of the text it is.
    """
    script = _main_script(sentence)
    found = _weigh(sentence, script) if script in _lists() else Counter()
    if found:
        language, weight = found.most_common(1)[0]
        if weight >= _OF_LEANING.least and weight >= _OF_LEANING.lead * found[whole or ""]:
            return language
    return whole


def _main_script(text: str) -> str | None:
    """The script of most letters; of Chinese and Japanese, which share characters, the language."""
    scripts = Counter(_script(letter) for letter in text if letter.isalpha())
    east = sum(scripts[name] for name in _EAST_ASIAN)
    if east and 2 * east >= scripts.total():
        kana = scripts["hiragana"] + scripts["katakana"]
        return "ja" if 10 * kana >= east else "zh"
    return scripts.most_common(1)[0][0] if scripts else None


def _weigh(text: str, script: str | None) -> Counter[str]:
    """Return what the frequent words of a text say for each language of a script."""
    found: Counter[str] = Counter()
    for word in _spelled(text):
        for language, weight in _weights()[script or ""].get(word, {}).items():
            found[language] += weight  # type: ignore[assignment]
    return found


def _spelled(text: str) -> list[str]:
    return _MARKS.findall(unicodedata.normalize("NFC", text).lower().replace("’", "'"))


@cache
def _script(letter: str) -> str:
    """The first word of a letter's name: latin, cyrillic, cjk, and so on."""
    return unicodedata.name(letter, "unknown").split()[0].lower()


@cache
def _lists() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files("prbench.build.gates").joinpath("languages.toml").read_text(encoding="utf-8"))


@cache
def _weights() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Return by script, for each frequent word, what it says for each language: less, the more languages share it."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for script, lists in _lists().items():
        holders: dict[str, list[str]] = {}
        for language, line in lists.items():
            for word in dict.fromkeys(line.split()):
                holders.setdefault(word, []).append(language)
        found[script] = {word: dict.fromkeys(held, 1 / len(held)) for word, held in holders.items()}
    return found
