"""An answer that repeats the rubric gives the label away, and tests reading instead of understanding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prbench.build.draft import Draft
from prbench.build.gates.runs import Run, Runs, quote

LEAST_TITLE = 4
"""A whole aspect title with fewer words than this may come up by itself."""


@dataclass(frozen=True)
class RubricCopying:
    """Gate against answers with `words_in_a_row` words of an aspect or of its reason, or a whole title.

    Both answers are looked at: one that was told to avoid an aspect may repeat it too.

    Example:
        >>> draft = Draft(id="1", user="ann", question="Tea?", chosen="Fine: mention the price of everything.",
        ...               rejected="Take what you like.", aspects=[{"aspect": "Mention the price of everything"}])
        >>> RubricCopying().check([draft])["1"]
        'chosen repeats 5 words of aspect 1 in a row, which is its whole title: “mention the price of everything”'
    """

    words_in_a_row: int = 6

    name = "rubric-copying"

    @property
    def rule(self) -> str:
        """Rule of what passes."""
        return f"< {self.words_in_a_row} words of the rubric in a row, no whole title of ≥ {LEAST_TITLE}"

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Look for runs of the aspects in both answers."""
        runs = Runs()
        found = ((draft.id, self._reason(draft, runs)) for draft in drafts)
        return {name: reason for name, reason in found if reason}

    def _reason(self, draft: Draft, runs: Runs) -> str:
        by_run: dict[int, dict[str, str]] = {}
        for place, text, least in self._standard(draft):
            if runs.shingles.length(text) >= least:
                by_run.setdefault(min(runs.shingles.length(text), self.words_in_a_row), {})[place] = text
        for length, texts in sorted(by_run.items(), reverse=True):
            index = runs.index(list(texts.values()), length)
            for side, answer in (("chosen", draft.chosen), ("rejected", draft.rejected)):
                if runs.longest_of(index, answer, draft.question, length) is None:
                    continue
                for place, text in texts.items():
                    if run := runs.longest([text], answer, draft.question, length):
                        return self._say(side, place, run)
        return ""

    def _standard(self, draft: Draft) -> Iterator[tuple[str, str, int]]:
        """The texts of the standard: where each stands, what it says, how many words of it there must be."""
        for number, aspect in enumerate(draft.aspects, start=1):
            yield f"aspect {number}", aspect.aspect, min(LEAST_TITLE, self.words_in_a_row)
            yield f"the reason of aspect {number}", aspect.reason, self.words_in_a_row

    def _say(self, side: str, place: str, run: Run) -> str:
        short = run.length < self.words_in_a_row
        limit = ", which is its whole title" if short else f" ({self.words_in_a_row} are a copy)"
        return f"{side} repeats {run.length} words of {place} in a row{limit}: {quote(run.words)}"
