"""How often a sound answer beats one that is none: `python suite/fooled_check.py [MODEL] [SPLIT]`.

Up to two hundred pairs of each kind, under the user's own posts: a sound answer of the split beside a text that was
made from an answer to its question, or from question and posts, by other rules than in training; and beside sound
answers to other questions, which training shows too (of its own questions). Both orders are asked and their margins
averaged; a pair without a margin counts as fooled.
"""

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from prbench import Pair, PairView, load_model, load_pairs
from prbench.models import Comparer

_EACH = 200
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHIFTED = str.maketrans(_LETTERS, _LETTERS[3:] + _LETTERS[:3])
_VOWELS = str.maketrans("", "", "aeiouAEIOU")
Rule = Callable[[str, random.Random], str]


def _swapped(text: str) -> str:
    """Neighbouring words in each other's place."""
    words = text.split()
    words[:-1:2], words[1::2] = words[1::2], words[: len(words) // 2 * 2 : 2]
    return " ".join(words)


RULES: dict[str, Rule] = {
    "empty": lambda text, draw: draw.choice(("\n", "\t \t", "\u00a0", "\r\n\r\n")),
    "marks": lambda text, draw: draw.choice("#~|…/") * draw.randint(1, 400),
    "repeated word": lambda text, draw: " ".join([draw.choice(text.split())] * draw.randint(40, 120)),
    "repeated opening": lambda text, draw: " ".join([" ".join(text.split()[:9])] * draw.randint(8, 16)),
    "without vowels": lambda text, draw: text.translate(_VOWELS),
    "letters shifted": lambda text, draw: text.lower().translate(_SHIFTED),
    "words mirrored": lambda text, draw: " ".join(word[::-1] for word in text.split()),
    "words sorted": lambda text, draw: " ".join(sorted(text.split())),
    "words backwards": lambda text, draw: " ".join(reversed(text.split())),
    "neighbours swapped": lambda text, draw: _swapped(text),
}


def fooled(model: Comparer, pairs: Sequence[Pair], seed: int = 0) -> dict[str, tuple[int, int]]:
    """For each kind, on how many pairs the sound answer is preferred, and of how many."""
    draw = random.Random(seed)
    answers: dict[str, list[str]] = {}
    for pair in pairs:
        answers.setdefault(pair.question, []).append(pair.chosen)
    category = {pair.question: pair.category for pair in pairs}
    elsewhere: dict[str, Callable[[str], list[str]]] = {
        "from another domain": lambda asked: [one for one in answers if category[one] != category[asked]],
        "from the same domain": lambda asked: [one for one in answers if category[one] == category[asked]],
    }
    found = {}
    for kind in (*RULES, "two posts pasted", "the question, three times", *elsewhere):
        views = []
        fitting = [pair for pair in pairs if len(pair.profile) > 1]
        for pair in draw.sample(fitting, min(_EACH, len(fitting))):
            if kind in RULES:
                bad = RULES[kind](draw.choice(answers[pair.question]), draw)
            elif kind in elsewhere:
                if not (others := [one for one in elsewhere[kind](pair.question) if one != pair.question]):
                    continue
                bad = draw.choice(answers[draw.choice(others)])
            elif kind.startswith("two"):
                bad = "\n\n".join(post.text for post in draw.sample(list(pair.profile), 2))
            else:
                bad = " ".join([pair.question] * 3)
            views.append(PairView(pair.question, pair.chosen, bad, pair.profile, (), pair.user))
        swapped = [replace(view, first=view.second, second=view.first) for view in views]
        one, two = ([outcome.margin for _, outcome in sorted(model.compare(shown))] for shown in (views, swapped))
        right = [a is not None and b is not None and a > b for a, b in zip(one, two, strict=True)]
        found[kind] = (sum(right), len(right))
    return found


def main() -> int:
    """Print a line for each kind."""
    address = sys.argv[1] if len(sys.argv) > 1 else "personal:reference"
    split = sys.argv[2] if len(sys.argv) > 2 else "validation"
    pairs = [pair for pair in load_pairs("mirror") if pair.tags["split"] == split]
    model = load_model(address)
    if not pairs or not hasattr(model, "compare"):
        print(f"no split {split!r}" if not pairs else f"{address} compares no answers", file=sys.stderr)
        return 2
    for kind, (right, number) in fooled(cast(Comparer, model), pairs).items():
        print(f"{right:4} of {number}  {kind}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
