"""The parser beside `plan.jinja`: a reply becomes a list of expectations, or is unreadable."""

import re

from prbench.prompts._reply import UnreadableReply, after_thinking

_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(.*\S)\s*$")
MOST = 12


def parse_expectations(reply: str) -> tuple[str, ...]:
    r"""Read the list items of a planner's reply; an empty tuple means that there were none to read.

    Example:
        >>> parse_expectations("Sure!\n- Keep the cost down\n- **Step by step**")
        ('Keep the cost down', 'Step by step')
        >>> parse_expectations("I cannot tell.")
        ()
        >>> parse_expectations("<think>Perhaps:\n- Be brief")
        ()
    """
    said = after_thinking(reply)
    if isinstance(said, UnreadableReply):
        return ()
    items = (match[1].strip("*_ ") for line in said.splitlines() if (match := _ITEM.match(line)))
    return tuple(dict.fromkeys(item for item in items if item))[:MOST]
