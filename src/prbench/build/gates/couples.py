"""Gate that refuses incomplete couples before anything else is asked."""

from collections.abc import Sequence

from prbench.build.draft import Draft
from prbench.build.gates.gate import by_couple


class WholeCouples:
    """A `mirror` tag stands on exactly two drafts that ask one question and have swapped answers.

    A half whose other half was never written is refused here, so that what is kept can be published as mirrored.

    Example:
        >>> draft = Draft(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.", tags={"mirror": "m"})
        >>> WholeCouples().check([draft])
        {'1': "mirror tag 'm' stands on 1 draft, not on 2"}
    """

    name = "couples"
    rule = "both halves of a mirrored couple, or no mirror tag"

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Refuse lone halves, and tags on drafts that are not each other's mirror image."""
        reasons = {}
        for halves in by_couple(drafts).values():
            if mirror := halves[0].tags.get("mirror"):
                if len(halves) != 2:
                    why = f"stands on {len(halves)} draft{'s' * (len(halves) > 1)}, not on 2"
                elif not _are_images(*halves):
                    why = "joins two drafts that are not one question with swapped answers"
                else:
                    continue
                reasons.update({half.id: f"mirror tag {mirror!r} {why}" for half in halves})
        return reasons


def _are_images(one: Draft, other: Draft) -> bool:
    answers = (one.question, one.chosen, one.rejected) == (other.question, other.rejected, other.chosen)
    return answers and one.tags.get("split") == other.tags.get("split")
