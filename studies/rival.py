"""A rival benchmark in the paper's manner, from the same users, questions and answers as a mirrored suite.

    python studies/rival.py -o runs/rival/rival.jsonl
    prbench run --suite runs/rival/rival.jsonl --context none --model …

Each pair holds a sound answer that meets all of a user's aspects against a sound one that meets none, and differs as
well in what this user does not care about. Of each couple only one half is kept for a question, drawn by a hash, so the
suite is not mirrored and nothing holds a reward model that ignores the user at exactly ½: it lands where the drawn
wishes and its own taste happen to agree. Since wishes are even in the suite, that is near ½ too, give or take chance.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from prbench.data import load_pairs, write_pairs
from prbench.data.fingerprint import hash_text
from prbench.graders import rubric_tags
from prbench.types import Pair, read_stances

Stances = Mapping[str, Mapping[str, str]]
"""For each answer, the pole it takes on each axis."""

_KEPT = ("split", "couple")


def main() -> None:
    """Read the options, write the suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="mirror")
    parser.add_argument("--split", default="test")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path, default=Path("runs/rival/rival.jsonl"))
    given = parser.parse_args()
    made = rival_pairs(list(load_pairs(given.suite, split=given.split)), given.seed)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{len(made):,} pairs: {write_pairs(made, given.out)}")


def rival_pairs(pairs: Sequence[Pair], seed: int = 0) -> list[Pair]:
    """One pair for each couple and question that has an answer meeting all and one meeting none of the aspects."""
    tags = rubric_tags(pairs)
    stances = answer_stances(pairs)
    asked: dict[tuple[str, str], dict[str, Pair]] = defaultdict(dict)
    for pair in sorted(pairs, key=lambda pair: pair.id):
        asked[pair.tags.get("couple", pair.user), pair.question].setdefault(pair.user, pair)
    made = []
    for (couple, question), users in sorted(asked.items()):
        user = min(users, key=lambda name: hash_text(f"{seed}\0{couple}\0{question}\0{name}"))
        pair = users[user]
        wanted = read_stances(tags[pair.id])
        if answers := adherent_and_missing(stances[question], wanted, f"{seed}\0{question}\0{user}"):
            chosen, rejected = answers
            kept = {name: pair.tags[name] for name in _KEPT if name in pair.tags}
            changes = {"id": f"rival:{pair.id}", "chosen": chosen, "rejected": rejected, "tags": kept}
            made.append(pair.model_copy(update=changes))
    return made


def answer_stances(pairs: Sequence[Pair]) -> dict[str, dict[str, dict[str, str]]]:
    """For each question and each of its answers, the pole that the answer takes on each axis.

    A chosen answer takes the pole that its user wants on the axes that decide the pair; its mirror image says the same
    of the rejected one.
    """
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for pair in pairs:
        for axis, pole in pair.stances.items():
            found[pair.question][pair.chosen][axis] = pole
    return found


def adherent_and_missing(answers: Stances, wanted: Mapping[str, str], salt: str) -> tuple[str, str] | None:
    """An answer that takes every wanted pole, and one that takes none of them nor any other stance of the first."""
    meets = [text for text, held in answers.items() if all(held.get(axis) == pole for axis, pole in wanted.items())]
    if not meets:
        return None
    chosen = min(meets, key=lambda text: hash_text(f"{salt}\0{text}"))
    misses = [
        text
        for text, held in answers.items()
        if all(axis in held and held[axis] != pole for axis, pole in answers[chosen].items())
    ]
    return (chosen, min(misses, key=hash_text)) if misses else None


if __name__ == "__main__":
    main()
