"""Gate on lengths, which must not tell the chosen answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from prbench.build.draft import Draft
from prbench.texts import words


@dataclass(frozen=True)
class LengthRatio:
    """The longer answer has at most `most` times as many words as the shorter one.

    Words are counted as everywhere in this package: without punctuation, and character by character in scripts that
    have no spaces.

    Example:
        >>> draft = Draft(id="1", user="ann", question="Tea?", chosen="Green or white.", rejected="Black one.")
        >>> LengthRatio(1.5).check([draft])
        {}
        >>> LengthRatio(1.4).check([draft])
        {'1': 'chosen has 3 words, rejected 2: ratio 1.50 > 1.40'}
    """

    most: float = 1.5

    name = "length-ratio"

    @property
    def rule(self) -> str:
        """Rule of what passes."""
        return f"longer ÷ shorter answer ≤ {self.most:.2f} (words)"

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Compare the number of words of the two answers."""
        reasons = {}
        for draft in drafts:
            chosen, rejected = len(words(draft.chosen)), len(words(draft.rejected))
            shorter, longer = sorted((chosen, rejected))
            counted = f"chosen has {chosen} words, rejected {rejected}"
            if not shorter:
                reasons[draft.id] = f"{counted}: an answer without words"
            elif longer / shorter > self.most:  # a quotient of whole numbers meets a typed decimal exactly
                reasons[draft.id] = f"{counted}: ratio {longer / shorter:.2f} > {self.most:.2f}"
        return reasons
