"""TRL's preference layouts: prompts and answers that are lists of messages.

Understood are an explicit prompt (text or messages) beside answers (text or messages), and an implicit prompt, where
`chosen` and `rejected` are whole conversations that differ in their last turn only. What differs earlier is refused,
since the two answers would not answer the same question.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from prbench.data.rows import Place, wrong_type
from prbench.errors import DataError
from prbench.files import parse_json
from prbench.types import Message, written_out


class Exchange(NamedTuple):
    """A question with its two answers, as plain texts; an empty question means that none was found."""

    question: str
    chosen: str
    rejected: str
    turns: tuple[Message, ...] = ()
    """The question turn by turn, where it is a conversation."""


def read_exchange(prompt: Any, chosen: Any, rejected: Any, place: Place) -> Exchange:
    """Bring any mix of texts and message lists to three texts.

    Example:
        >>> turns = [{"role": "user", "content": "Tea?"}]
        >>> good, bad = ({"role": "assistant", "content": text} for text in ("Green.", "Black."))
        >>> read_exchange(None, [*turns, good], [*turns, bad], Place("x.jsonl", "line", 1))
        Exchange(question='Tea?', chosen='Green.', rejected='Black.', turns=())
    """
    if isinstance(prompt, str) and isinstance(chosen, str) and isinstance(rejected, str):
        return Exchange(prompt, chosen, rejected)
    chosen_lead, chosen_text = _split_answer(chosen, "chosen", place)
    rejected_lead, rejected_text = _split_answer(rejected, "rejected", place)
    if chosen_lead != rejected_lead:
        raise DataError(
            f"{place}: fields 'chosen' and 'rejected' differ before their last turn",
            hint="both conversations must share every turn but the last",
        )
    if isinstance(prompt, str):
        lead = _join_prompt(prompt, chosen_lead)
        return Exchange(written_out(lead), chosen_text, rejected_text, conversation(lead))
    messages = read_messages(prompt, "question", place) if prompt is not None else ()
    if chosen_lead[: len(messages)] != messages:
        chosen_lead = messages + chosen_lead
    lead = chosen_lead or messages
    return Exchange(written_out(lead), chosen_text, rejected_text, conversation(lead))


def read_messages(value: Any, field: str, place: Place) -> tuple[Message, ...]:
    """A list of `{"role", "content"}` objects."""
    if not isinstance(value, list):
        raise wrong_type(value, field, "text or a list of messages", place)
    return tuple(_read_message(item, field, place) for item in value)


def conversation(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The turns of a conversation that a chat template can write; none where there is only one, or they are of no use.

    Example:
        >>> conversation((Message("user", "Tea?"),))
        ()
        >>> len(conversation((Message("system", "Be brief."), Message("user", "Tea?"))))
        2
    """
    known = all(message.role in ("system", "user", "assistant") for message in messages)
    return messages if len(messages) > 1 and known and messages[-1].role == "user" else ()


def read_turns(value: Any, question: str, place: Place) -> tuple[Message, ...]:
    """The field `turns` of a file that was written here; it must say the same as the question."""
    listed = parse_json(value, str(place), raises=DataError) if isinstance(value, str) and value else value
    turns = read_messages(listed, "turns", place) if listed else ()
    if turns and written_out(turns) != question:
        raise DataError(
            f"{place}: field 'turns' is another conversation than field 'question'", hint="remove one of the two"
        )
    return conversation(turns)


def _join_prompt(prompt: str, lead: tuple[Message, ...]) -> tuple[Message, ...]:
    """Some sets repeat a text prompt as the first turns of both answers."""
    if any(message.role == "user" and message.content == prompt for message in lead):
        return lead
    return (Message("user", prompt), *lead)


def _split_answer(value: Any, field: str, place: Place) -> tuple[tuple[Message, ...], str]:
    if isinstance(value, str):
        return (), value
    messages = read_messages(value, field, place)
    if not messages or messages[-1].role != "assistant":
        raise DataError(f"{place}: field {field!r} does not end with an assistant turn")
    return messages[:-1], messages[-1].content


def _read_message(item: Any, field: str, place: Place) -> Message:
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str) or "content" not in item:
        raise DataError(
            f"{place}: field {field!r} has an item that is no message",
            hint='a message is {"role": "user", "content": "…"}',
        )
    return Message(item["role"], _read_content(item["content"], field, place))


def _read_content(content: Any, field: str, place: Place) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise wrong_type(content, f"{field}.content", "text", place)
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    if not all(isinstance(text, str) for text in texts):
        raise DataError(f"{place}: field {field!r} has content that is not text", hint="prbench reads text only")
    return "\n".join(text for text in texts if text)
