"""Gate for answers in the language of the question: else a pair is decided by what its reader can read.

Languages are told sentence by sentence by py3langid, whose model comes with the package: no network. A sentence is told
if one language is more likely than all others together. One that is too short or too mixed takes the language of the
whole text, or stays untold. A few borrowed words or names do not change a sentence.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from prbench.build.draft import Draft
from prbench.build.gates.gate import ROUNDING, unmeasured
from prbench.texts import sentences


@dataclass(frozen=True)
class SameLanguage:
    """Question and answers are in one language; at most `foreign` of a text is in another.

    A question that is too short to tell is taken to be in the language of its answers. An answer that cannot be told
    is unmeasured.

    Example:
        >>> draft = Draft(id="1", user="ann", question="How do I brew it?",
        ...               chosen="You should not use water that boils.",
        ...               rejected="Man sollte das Wasser nicht kochen lassen.")
        >>> SameLanguage().check([draft])
        {'1': 'question en, chosen en, rejected de: not one language'}
    """

    foreign: float = 0.25

    name = "language"

    @property
    def rule(self) -> str:
        """Rule of what passes."""
        return f"question and answers in one language, ≤ {self.foreign:.0%} of a text in others"

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Tell the languages of question and answers."""
        told: dict[str, dict[str, float]] = {}
        found = ((draft.id, self._reason(draft, told)) for draft in drafts)
        return {name: reason for name, reason in found if reason}

    def _reason(self, draft: Draft, told: dict[str, dict[str, float]]) -> str:
        main: dict[str, str] = {}
        for role, text in (("question", draft.question), ("chosen", draft.chosen), ("rejected", draft.rejected)):
            if text not in told:
                told[text] = language_shares(text)
            shares = told[text]
            if not shares and role != "question":
                return unmeasured(f"the language of {role} cannot be told ({len(text.split())} words)")
            if shares:
                main[role] = next(iter(shares))
                other = 1 - shares[main[role]]
                if other > self.foreign + ROUNDING:
                    return f"{role} mixes {' and '.join(shares)}: {other:.0%} is not {main[role]} > {self.foreign:.0%}"
        if len(set(main.values())) > 1:
            return ", ".join(f"{role} {language}" for role, language in main.items()) + ": not one language"
        return ""


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
