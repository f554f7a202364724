"""Encoding of a prompt to token ids, once: the chat template writes its own special tokens, none is added again.

Nothing is ever truncated here: a prompt that is too long keeps its true length, and the caller refuses it. Three
formats. `chat`: the tokenizer's chat template over the turns. `pair`: for encoders without a chat template, turn and
answer as the model's own text pair. `plain`: otherwise, turn, blank line, answer. Without a chat template the turns of
a conversation are written out with their roles; a template that drops or refuses a system turn gets its text before the
first user turn. Whichever was needed is said in `note`.
"""

import hashlib
from array import array
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from prbench.errors import ModelError
from prbench.types import Message, Prompt, written_out

Format = Literal["chat", "pair", "plain"]

TEMPLATE_DATE = "26 Jul 2024"
"""Some chat templates print today's date, so that a score would change overnight; they take this fixed one instead."""


class Encoding(NamedTuple):
    """One prompt as a model reads it."""

    ids: "array[int]"
    """Compact on purpose: a whole run's prompts may be held at once."""
    types: "array[int] | None" = None
    """Number of the text that each token belongs to, for encoders that tell a pair apart."""
    answer_start: int = 0
    """The first token of the answer, where it was asked for."""
    prompt: Prompt | None = None
    """Prompt that was encoded, for a model that writes its own tokens."""


class PromptEncoder:
    """Turns prompts into token ids: the turns of a conversation, and its answer where there is one."""

    def __init__(self, tokenizer: Any, address: str) -> None:
        self._tokenizer = tokenizer
        self._address = address
        self.format: Format = _format(tokenizer)
        self.note: str | None = None
        """Note on how turns reached the model, where its chat template could not write them; None while none needed it.
        """

    @property
    def chat_template_digest(self) -> str | None:
        """Short hash of the chat template, part of the model's card."""
        if self.format != "chat":
            return None
        return hashlib.sha256(str(self._tokenizer.chat_template).encode()).hexdigest()[:12]

    def encode(self, prompt: Prompt) -> Encoding:
        """Tokenise the whole prompt."""
        fields = self._fields(prompt.messages)
        types = fields.get("token_type_ids") if self.format == "pair" else None
        return Encoding(array("i", fields["input_ids"]), None if types is None else array("i", types))

    def written_out(self, prompt: Prompt) -> str:
        """The text of the tokens, special ones included, as the model reads it."""
        return str(self._tokenizer.decode(list(self.encode(prompt).ids), skip_special_tokens=False))

    def encode_answer(self, prompt: Prompt) -> Encoding:
        """Tokenise the whole prompt and find where the answer starts.

        The tokens before the answer are those that the prompt without it has in common with the whole: where the
        tokenizer merges across the border, the merged token counts as the answer's.
        """
        encoding = self.encode(prompt)
        opening = self._fields(prompt.messages[:-1])["input_ids"]
        return encoding._replace(answer_start=_common_prefix(opening, encoding.ids))

    def _fields(self, messages: Sequence[Message]) -> dict[str, list[int]]:
        if self.format == "chat":
            return self._chat(self._fitting(messages))
        answered = messages[-1].role == "assistant"
        lead = tuple(messages[:-1] if answered else messages)
        if len(lead) > 1:
            self.note = "the model has no chat template: turns are written out with their roles"
        texts = [written_out(lead), messages[-1].content] if answered else [written_out(lead)]
        if self.format == "pair":
            return dict(self._tokenizer(*texts, truncation=False, verbose=False))
        text = "\n\n".join([*texts, ""] if len(texts) == 1 else texts)
        return dict(self._tokenizer(text, add_special_tokens=True, truncation=False, verbose=False))

    def _fitting(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The turns as the chat template bears them: a system turn that it would drop goes before the first user's."""
        if messages[0].role != "system" or len(messages) < 2 or self._takes_system:
            return messages
        self.note = "the chat template takes no system turn: its text stands before the first user turn"
        system, first, *rest = messages
        return [Message(first.role, f"{system.content}\n\n{first.content}"), *rest]

    @cached_property
    def _takes_system(self) -> bool:
        from jinja2 import TemplateError

        mark = "d7c1 a system turn"
        turns = [{"role": "system", "content": mark}, {"role": "user", "content": "x"}]
        try:
            return mark in self._tokenizer.apply_chat_template(turns, tokenize=False, date_string=TEMPLATE_DATE)
        except TemplateError:
            return False

    def _chat(self, messages: Sequence[Message]) -> dict[str, list[int]]:
        from jinja2 import TemplateError

        try:
            fields = self._tokenizer.apply_chat_template(
                [message._asdict() for message in messages],
                tokenize=True,
                return_dict=True,
                add_generation_prompt=messages[-1].role != "assistant",
                truncation=False,
                tokenizer_kwargs={"verbose": False},
                date_string=TEMPLATE_DATE,
            )
        except TemplateError as error:
            raise ModelError(
                f"{self._address}: the tokenizer's chat template refuses the conversation: {error}",
                hint="fix chat_template in the tokenizer's files, or remove it to have turn and answer joined plainly",
            ) from error
        return dict(fields)


def _format(tokenizer: Any) -> Format:
    if tokenizer.chat_template:
        return "chat"
    # Only encoders are trained on pairs with a separator; decoders have no such token.
    return "pair" if tokenizer.cls_token and tokenizer.sep_token else "plain"


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the leading elements that two sequences share.

    Example:
        >>> _common_prefix([1, 2, 3], [1, 2, 4, 5])
        2
    """
    for position, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return position
    return min(len(left), len(right))
