"""Gate for answers in the language of the question: else a pair is decided by what its reader can read."""

from collections.abc import Sequence
from dataclasses import dataclass

from prbench.build.draft import Draft
from prbench.build.gates.detect import language_shares
from prbench.build.gates.gate import ROUNDING, unmeasured


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
