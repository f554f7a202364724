"""Encoding of a prompt to token ids, once: the chat template writes its own special tokens, none is added again.

Nothing is ever truncated here: a prompt that is too long keeps its true length, and the caller refuses it. Three
formats. `chat`: the tokenizer's chat template over the turns. `pair`: for encoders without a chat template, turn and
answer as the model's own text pair. `plain`: otherwise, turn, blank line, answer. Without a chat template the turns of
a conversation are written out with their roles; a template that drops or refuses a system turn gets its text before the
first user turn. Whichever was needed is said in `note`.
"""

import hashlib
import re
from array import array
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from prbench.errors import ModelError
from prbench.types import Message, Prompt, written_out

Format = Literal["chat", "pair", "plain"]

TEMPLATE_DATE = "26 Jul 2024"
"""Some chat templates print today's date, so that a score would change overnight; they take this fixed one instead."""

_BORDERS = (re.compile(r"(?=\n\S)"), re.compile(r"(?<=\n)(?=\S)"))
_PROBES = (
    "a\nb.\nB\n\nb \n1\n- b)\n(x\n\n\n2",
    "\u00e9\n\u00e9 \n\n \n\u4e00\n\u4e00\t\n'b\r\ny",
    "1\n\n\n\nit's\n's\n\n* x\n_y",
)
"""Texts with all kinds of line ends."""
_CHECKED = 32
"""Texts that are counted whole as well."""
_MOST_LINES = 200_000


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

    def length(self, prompt: Prompt) -> int:
        """Tokens of the whole prompt; lines that several prompts share are counted once, where that is exact."""
        if self.format == "chat" and (lines := self._lines) is not None:
            text = self._chat(self._fitting(prompt.messages), tokenize=False)
            if (found := lines.count(text)) is not None:
                return found
        return len(self.encode(prompt).ids)

    @cached_property
    def _lines(self) -> "LineCounts | None":
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        border = None if backend is None else line_border(backend)
        return None if border is None else LineCounts(backend, border)

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
            return dict(self._chat(self._fitting(messages)))
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

    def _chat(self, messages: Sequence[Message], *, tokenize: bool = True) -> Any:
        """The fields of the tokens, or the text that they are made of."""
        from jinja2 import TemplateError

        how = {"return_dict": True, "truncation": False, "tokenizer_kwargs": {"verbose": False}} if tokenize else {}
        try:
            found = self._tokenizer.apply_chat_template(
                [message._asdict() for message in messages],
                tokenize=tokenize,
                add_generation_prompt=messages[-1].role != "assistant",
                date_string=TEMPLATE_DATE,
                **how,
            )
        except TemplateError as error:
            raise ModelError(
                f"{self._address}: the tokenizer's chat template refuses the conversation: {error}",
                hint="fix chat_template in the tokenizer's files, or remove it to have turn and answer joined plainly",
            ) from error
        return found


class LineCounts:
    """Counts the tokens of texts line by line, each distinct line once.

    The first texts are also counted whole; where one differs, nothing is counted by lines any more.

    Args:
        backend: The tokenizer.
        border: Where it never joins two lines.
    """

    def __init__(self, backend: Any, border: "re.Pattern[str]") -> None:
        self._backend, self._border = backend, border
        self._known: dict[str, int] = {}
        self._checked = 0
        self._exact = True

    def count(self, text: str) -> int | None:
        """Tokens of a text; None where lines do not add up for this tokenizer."""
        if not self._exact:
            return None
        lines = self._border.split(text)
        new = [line for line in dict.fromkeys(lines) if line not in self._known]
        if new:
            if len(self._known) > _MOST_LINES:
                self._known.clear()
                new = list(dict.fromkeys(lines))
            self._known.update(zip(new, self._encoded(new), strict=True))
        found = sum([self._known[line] for line in lines])
        if self._checked < _CHECKED:
            self._checked += 1
            self._exact = self._encoded([text]) == [found]
        return found if self._exact else None

    def _encoded(self, texts: list[str]) -> list[int]:
        # One by one: a batch wakes the tokenizer's threads, which then look for work longer than a few lines take.
        return [len(self._backend.encode(text, add_special_tokens=False)) for text in texts]


def line_border(backend: Any) -> "re.Pattern[str] | None":
    """Where a tokenizer parts a text whatever stands there, so that lines can be counted apart; None where it does not.

    Byte-level tokenizers part it before the last line break, or after it.
    """
    parts = backend.pre_tokenizer
    if parts is None or backend.normalizer is not None or backend.truncation is not None or backend.padding is not None:
        return None

    def pieces(text: str) -> list[str]:
        return [piece for piece, _ in parts.pre_tokenize_str(text)]

    for border in _BORDERS:
        if all(pieces(text) == [one for line in border.split(text) for one in pieces(line)] for text in _PROBES):
            return border
    return None


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
