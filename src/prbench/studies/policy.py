"""Prompts of a downstream study's policy: the question, perhaps some of the user's posts, perhaps a style.

The policy sees nothing of the hidden standard. A style is an instruction to the policy alone: no reward model and no
judge is ever shown it, they meet only the answer.
"""

from collections.abc import Sequence
from typing import NamedTuple

from prbench.data import hash_text
from prbench.rank import BM25, PostRanker
from prbench.types import Message, Post, Prompt, Question

WORDS = 60
"""Most words that the policy is asked for, unless told otherwise."""

_PLAIN_EVERY = 4  # one candidate in four is drawn from the plain prompt
_RANKER = BM25()


class Style(NamedTuple):
    """A way of answering."""

    name: str
    instruction: str | None
    """Instruction to the policy; None for the plain prompt."""


PLAIN = Style("plain", None)

STYLES: tuple[Style, ...] = (
    PLAIN,
    Style("short", "Be very short: two sentences at most."),
    Style("complete", "Be complete: mention exceptions, details and what comes afterwards."),
    Style("kind", "Sound like a kind friend: say that you understand how this feels, then help."),
    Style("dry", "Be matter-of-fact. Leave feelings out of it."),
    Style("list", "Answer as a numbered list of things to do."),
    Style("tale", "Answer in one flowing paragraph, as if telling it at the kitchen table."),
    Style("simple", "Use simple words that a child would understand, and no jargon."),
    Style("expert", "Write as a specialist to a specialist, with exact terms and numbers."),
    Style("joke", "Be funny: put at least one joke into the answer."),
    Style("research", "Argue from research: name what surveys and trials have found."),
    Style("lived", "Argue from life: tell what somebody who went through this did and how it ended."),
    Style("doubtful", "Say openly what is uncertain and on what it depends."),
    Style("sure", "Be certain. Give a verdict without any ifs and buts."),
    Style("options", "Offer three different options and let the reader decide."),
    Style("single", "Recommend exactly one thing and defend it."),
    Style("causes", "Mainly explain why things are as they are."),
    Style("hands-on", "Mainly explain exactly what to do, movement by movement."),
    Style("selfish", "Advise the reader to think of themselves first."),
    Style("dutiful", "Advise the reader to think of family, friends and neighbours first."),
    Style("old", "Recommend the old, well-tried way of doing it."),
    Style("new", "Recommend something new and unusual that few have tried."),
    Style("safe", "Recommend the safest course: wait, check, keep a reserve."),
    Style("daring", "Recommend acting at once and taking the risk."),
    Style("outspoken", "Recommend saying everything openly, even if somebody is hurt."),
    Style("gentle", "Recommend being gentle and diplomatic, so that nobody is hurt."),
    Style("thrifty", "Recommend what costs almost no money, even if it takes a lot of time."),
    Style("lavish", "Recommend what saves time and effort, even if it costs a lot of money."),
    Style("self-made", "Recommend doing it alone, without any help."),
    Style("helped", "Recommend paying a professional to do it."),
    Style("near", "Recommend small shops and people in the neighbourhood."),
    Style("online", "Recommend big companies and services that deliver to the door."),
    Style("screen", "Recommend doing it with an app, a computer or another device."),
    Style("pencil", "Recommend doing it with pencil and paper, or by talking in person, without any screen."),
    Style("quick", "Recommend a quick fix that works today."),
    Style("patient", "Recommend a slow plan that pays off over the years."),
)
"""Contrasts in how things are said and in what is advised, in the policy's own words; the plain prompt stands first."""


def policy_prompt(
    asked: Question,
    *,
    posts: int = 0,
    style: str | None = None,
    words: int = WORDS,
    ranker: PostRanker | None = None,
) -> Prompt:
    """Return the policy's prompt for a user's question; small models heed what stands last, so the wishes do.

    Args:
        asked: The question; a `Pair` is one. Its rubric, narrative and answers are not looked at.
        posts: How many of the user's posts to show; 0 makes the prompt the same for every user.
        style: An instruction from `STYLES`, or None.
        words: Most words to ask for.
        ranker: Chooses the posts; default BM25 against the question.

    Example:
        >>> tea = Question(id="1", user="ann", question="Which tea?")
        >>> [message.role for message in policy_prompt(tea, style="Be brief.").messages]
        ['system', 'user']
        >>> print(policy_prompt(tea, style="Be brief.").messages[1].content)
        Which tea?
        <BLANKLINE>
        Be brief. Answer in at most 60 words.
    """
    told = "You give advice to the person who asks."
    chosen = policy_posts(asked, posts, ranker)
    if chosen:
        told += " Make the answer fit this person, who shows in what they wrote before."
    wish = f"{style or ''} Answer in at most {words} words.".strip()
    return Prompt((Message("system", told), Message("user", f"{_turn(asked.question, chosen)}\n\n{wish}")))


def policy_posts(asked: Question, posts: int, ranker: PostRanker | None = None) -> tuple[Post, ...]:
    """The posts that the policy is shown: the best for the question, in their original order, ids with texts."""
    if posts <= 0:
        return ()
    best = set((ranker or _RANKER).rank(asked.question, asked.profile)[:posts])
    return tuple(post for post in asked.profile if post in best)


def draw_styles(n: int, question: str, seed: int = 0, styles: Sequence[Style] = STYLES) -> tuple[Style, ...]:
    """The styles of `n` candidates: every fourth plain, the others in an order that the question and the seed give.

    No style comes twice before all have come once, and over many questions all come equally often.

    Example:
        >>> drawn = draw_styles(16, "Which tea?")
        >>> [style.name for style in drawn].count("plain"), len(set(drawn))
        (4, 13)
    """
    others = sorted(
        (style for style in styles if style.instruction is not None),
        key=lambda style: hash_text("\0".join(("style", str(seed), question, style.name))),
    )
    if not others:
        return (PLAIN,) * n
    turns = iter(range(n))
    return tuple(PLAIN if place % _PLAIN_EVERY == 0 else others[next(turns) % len(others)] for place in range(n))


def _turn(question: str, posts: Sequence[Post]) -> str:
    if not posts:
        return question
    written = "\n\n".join(f"[{number}] {post.text}" for number, post in enumerate(posts, start=1))
    return f"Some things I wrote before:\n\n{written}\n\nMy question now:\n{question}"
