"""A draft: two written answers with the standard they were written to, before any gate has looked at them."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field

from prbench.types import Aspect, Frozen, Pair, Post, Text


class Draft(Frozen):
    """One pair as it comes from the writer: what gates accept or reject.

    Unlike a `Pair`, a draft may be worthless: two equal answers are a draft that a gate rejects, not an error.

    Example:
        >>> aspect = Aspect(aspect="Keep it cheap")
        >>> draft = Draft(id="1", user="ann", question="Tea?", aspects=(aspect,), chosen="Green.", rejected="Black.")
        >>> draft.pair().rubric_aspects[0].aspect
        'Keep it cheap'
    """

    id: Text
    user: Text
    question: Text
    profile: tuple[Post, ...] = ()
    """All posts of the user that may be shown with this question, in their own order."""
    aspects: tuple[Aspect, ...] = ()
    """The standard: `chosen` was written to follow it, `rejected` to avoid it."""
    category: str = ""
    narrative: str = ""
    """Source of the aspects, in the user's words."""
    chosen: Text
    rejected: Text
    tags: Mapping[str, str] = Field(default_factory=dict)
    """Labels that may be set freely. `mirror` is shared by the two drafts that meet the same answers with opposite
    labels; what rejects one of them rejects both."""

    def pair(self) -> Pair:
        """The pair that is published once every gate has let the draft pass."""
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "aspects"}
        return Pair.model_validate({**fields, "rubric_aspects": self.aspects})

    def swapped(self, **changes: object) -> Self:
        """The same two answers with the labels exchanged, for another user.

        Args:
            **changes: Fields of the other half: its id, user, profile, aspects …
        """
        return self.model_copy(update={"chosen": self.rejected, "rejected": self.chosen, **changes})
