"""Everything a built suite says in words of its own: questions, and posts in the user's voice."""

import re

from prbench.build.items import MirrorItems

DEFAULT_QUESTION = "Which of these two do you prefer?"


def ask(items: MirrorItems, low: int, high: int, template: str | None) -> str:
    """Return the question about two items: the same for all users who meet them."""
    if items.questions[low] and items.questions[low] == items.questions[high] and template is None:
        return items.questions[low]
    topic = items.groups[low] if items.groups[low] == items.groups[high] else ""
    stance = items.stances[low] if topic and items.stances[low] == items.stances[high] else ""
    if template is None:
        about = f"{topic} ({stance})" if stance else topic
        return f"{about}: {DEFAULT_QUESTION[0].lower()}{DEFAULT_QUESTION[1:]}" if about else DEFAULT_QUESTION
    values = {"topic": topic, "group": topic, "stance": stance}
    return re.sub(r"\{(topic|group|stance)\}", lambda match: values[match[1]], template)


def judgment_post(
    items: MirrorItems, first: int, second: int, chose_first: bool, reason: str, names: tuple[str, str]
) -> str:
    """A judgment as its user would tell it. A reason names the texts as the user saw them, so they are named too."""
    topic = items.groups[first] if items.groups[first] == items.groups[second] else ""
    preferred, other = (0, 1) if chose_first else (1, 0)
    texts = [f"«{items.texts[first]}»", f"«{items.texts[second]}»"]
    if reason:
        texts = [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
    about = f" on {topic}" if topic else ""
    mark = " " if reason else ": "
    told = f"Asked to choose between two texts{about}, I preferred{mark}{texts[preferred]} over{mark}{texts[other]}"
    return f"{told}. My reason: {reason}" if reason else told


def rating_post(items: MirrorItems, item: int, rating: float, scale: tuple[int, int]) -> str:
    """A rating as its user would tell it."""
    low, high = scale
    out_of = f"of {high}" if low in (0, 1) else f"on a scale from {low} to {high}"
    about = f", on {items.groups[item]}" if items.groups[item] else ""
    return f"I rated this{about} {rating:g} {out_of}: «{items.texts[item]}»"
