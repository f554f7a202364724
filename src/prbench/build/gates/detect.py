"""Detection of a text's languages, sentence by sentence, by py3langid: its model comes with the package, no network.

A sentence is told if one language is more likely than all others together. One that is too short or too mixed takes
the language of the whole text, or stays untold. A few borrowed words or names do not change a sentence.
"""

from collections import Counter
from functools import cache
from typing import Any

from prbench.texts import sentences

_LEAST = 0.5
"""Least probability of a language that is told."""
_LANGUAGES = (
    "af am ar az be bg bn ca cs cy da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk km kn ko ky "
    "la lo lt lv mk ml mn mr ms my ne nl no pa pl ps pt ro ru si sk sl so sq sr sv sw ta te th tl tr uk ur uz vi zh zu"
)
"""Languages that are told, of the 139 that the model knows: without those that loan words are easily taken for."""


def language_shares(text: str) -> dict[str, float]:
    """The share of each language among the letters of a text, largest first; empty if it cannot be told.

    Example:
        >>> language_shares("The tea is too hot for me, but you can have it. Der Tee ist mir nicht zu heiß.")
        {'en': 0.59..., 'de': 0.40...}
        >>> language_shares("Sencha!")
        {}
    """
    whole = _tell(text)
    told: Counter[str] = Counter()
    for sentence in sentences(text):
        if language := _tell(sentence) or whole:
            told[language] += sum(map(str.isalpha, sentence))
    return {language: weight / told.total() for language, weight in told.most_common() if weight}


def known_languages() -> tuple[str, ...]:
    """The languages that are told apart, by their ISO 639 codes."""
    return tuple(_LANGUAGES.split())


def _tell(text: str) -> str | None:
    language, probability = _identifier().classify(text)
    return language if probability >= _LEAST else None


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(_LANGUAGES.split())
    return identifier
