"""A scripted author behind a real server: it answers the builder's prompts by rule, so that results are known exactly.

Aspects are the sentences of a story that say what somebody wants; answers are made of sentences that a hash of the
request picks, different for every request, of about the same length, and without a word of rubric or posts in a row.
"""

import hashlib
import re
from typing import Any

RULES = "Answer it by these rules"
"""Stands in every request for an answer."""
_OPENERS = ("Begin", "Start", "Set out", "Open", "Go ahead")
_THINGS = (
    "kettle",
    "window",
    "basket",
    "ladder",
    "candle",
    "blanket",
    "lantern",
    "shovel",
    "drawer",
    "compass",
    "teapot",
    "hammock",
    "bicycle",
    "cushion",
    "whistle",
    "mirror",
    "bucket",
    "carpet",
    "saddle",
    "umbrella",
    "violin",
    "pencil",
    "anchor",
    "feather",
    "pillow",
    "barrel",
)
_MANNERS = (
    "gently",
    "early",
    "quietly",
    "twice",
    "slowly",
    "boldly",
    "neatly",
    "warmly",
    "loosely",
    "evenly",
    "briskly",
    "calmly",
)
_PLACES = ["kitchen", "harbour", "meadow", "attic", "courtyard", "station", "orchard", "bridge", "cellar", "market"]
_PATTERNS = (
    "{opener} with the {a} from the {p}, and {m} put the {b} where the {c} used to be.",
    "Once the {a} is done, the {b} in the {p} can be used {m}, which the {c} will show you.",
    "If the {p} is too far, take a {a} and a {b} instead, and {m} leave the {c} for another day.",
    "People often forget the {c}, so check {m} that the {a} and the {b} fit into the {p}.",
    "It is worth asking about the {b}, because the {a} near the {p} changes {m} with every {c}.",
    "Keep the {a} close to the {p}, and let the {c} rest {m} until the {b} is ready.",
)


def body_text(body: dict[str, Any]) -> str:
    """What the model is told."""
    return "\n".join(message["content"] for message in body["messages"])


def quoted(text: str, name: str) -> str:
    """The material between `<<< NAME` and `NAME >>>`."""
    found = re.search(rf"<<< {name}\n(.*?)\n{name} >>>", text, re.DOTALL)
    return found[1] if found else ""


def kind(text: str) -> str:
    """Which of the builder's prompts this is."""
    if "<<< STORY" in text:
        return "aspects"
    return "opposites" if "expects the opposite" in text else "answer"


def write(body: dict[str, Any]) -> str:
    """The right reply to any prompt of the builder."""
    text = body_text(body)
    return {"aspects": aspects, "opposites": opposites, "answer": answer}[kind(text)](text)


def aspects(text: str) -> str:
    """One aspect for each sentence of the story, at most four."""
    sentences = [part for part in re.split(r"(?<=[.!?])\s+", quoted(text, "STORY")) if len(part.split()) > 3][:4]
    blocks = [
        f'Aspect: {" ".join(sentence.strip(".").split()[-5:])}\nEvidence: "{sentence}"\nReason: They say so.'
        for sentence in sentences
    ]
    return "\n\n".join(blocks)


def opposites(text: str) -> str:
    """For each expectation something else, with a post of its own."""
    count = len(re.findall(r"^\d+\. ", quoted(text, "EXPECTATIONS"), re.MULTILINE))
    blocks = []
    for number in range(count):
        seed = f"{quoted(text, 'QUESTION')} {number}"
        words = _words(seed)
        blocks.append(
            f"Aspect: rather {words['a']} {words['m']}\nPost: {sentence(seed, 0)} I wrote this down for myself.\n"
            "Reason: A habit of many years."
        )
    return "\n\n".join(blocks)


def answer(text: str) -> str:
    """Three sentences that no other request gets."""
    first = int(_hash(text)[:4], 16)
    return " ".join(sentence(f"{text} {number}", first + number) for number in range(3))


def sentence(seed: str, pattern: int) -> str:
    """One sentence out of a hash."""
    return _PATTERNS[pattern % len(_PATTERNS)].format(**_words(seed))


def _words(seed: str) -> dict[str, str]:
    picks = [int(_hash(f"{seed} {place}")[:8], 16) for place in range(6)]
    lists = (_OPENERS, _THINGS, _THINGS, _THINGS, _MANNERS, _PLACES)
    return {name: words[pick % len(words)] for name, words, pick in zip("oabcmp", lists, picks, strict=True)} | {
        "opener": _OPENERS[picks[0] % len(_OPENERS)]
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
