"""A small mirrored suite made by hand, and models that read it: what the tests of contexts, runs and commands share."""

from collections.abc import Iterator, Sequence

from pair_factory import make_pair
from prbench.models import ModelCard
from prbench.types import AnswerView, Aspect, Channel, Message, Outcome, Pair, PairView, Post, Prompt

TOPICS = ("tea", "boots", "bread", "chess", "rent", "soup", "maps", "yarn", "bees", "rain", "kites", "ink")


def posts(user: str, taste: str, count: int = 3) -> tuple[Post, ...]:
    """Posts that show a taste by naming it."""
    return tuple(
        Post(id=f"{user}-{i}", text=f"{user} post {i}: I was glad of the {taste} {TOPICS[i]}") for i in range(count)
    )


def mirrored(couples: int = 3, questions: int = 6, split: str = "test") -> list[Pair]:
    """Couples who want opposite colours: half of each couple likes red, the other blue."""
    pairs = []
    for couple in range(couples):
        tastes = ("red", "blue") if couple % 2 else ("blue", "red")
        for half, taste in zip("ab", tastes, strict=True):
            user = f"u{couple}{half}"
            other = "blue" if taste == "red" else "red"
            for topic in TOPICS[:questions]:
                pairs.append(
                    make_pair(
                        id=f"{user}:{topic}",
                        user=user,
                        question=f"Which {topic} should I get?",
                        profile=posts(user, taste),
                        narrative=f"SECRET narrative of {user}: the {taste} {topic} matters most",
                        rubric_aspects=(
                            Aspect(aspect=f"ASPECT {taste} {topic}", reason=f"REASON {user}", evidence=f"{user}-0"),
                        ),
                        category="even" if TOPICS.index(topic) % 2 == 0 else "odd",
                        chosen=f"Get the {taste} {topic}.",
                        rejected=f"Get the {other} {topic}.",
                        tags={
                            "split": split,
                            "axis": "colour",
                            "pole": taste,
                            "mirror": f"m{couple}:{topic}",
                            "couple": f"c{couple}",
                        },
                    )
                )
    return pairs


def follows_posts(question: str, answer: str, posts: Sequence[Post]) -> float:
    """A personal rater: counts words of the answer that stand in the posts."""
    shown = " ".join(post.text for post in posts).split()
    return float(sum(shown.count(word.strip(".")) for word in answer.split() if word.strip(".") in ("red", "blue")))


def likes_first(question: str, first: str, second: str, posts: Sequence[Post]) -> str:
    """A comparer that is all position bias."""
    return "first"


class Spy:
    """A Rater that keeps every prompt it is shown and reads everything."""

    def __init__(self, window: int | None = None) -> None:
        self.prompts: list[Prompt] = []
        self.asked = 0
        self.window = window
        self.card = ModelCard(address="spy", revision="1", reads=frozenset(Channel), parameters={"window": window})

    def render(self, view: AnswerView) -> Prompt:
        turns = [*(post.text for post in view.posts), *view.plan, view.question, view.answer]
        return Prompt(tuple(Message("user", turn) for turn in turns))

    def length(self, prompt: Prompt) -> int:
        return sum(len(message.content.split()) for message in prompt.messages)

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        for index, view in enumerate(views):
            self.asked += 1
            self.prompts.append(self.render(view))
            yield index, Outcome.scored(follows_posts(view.question, view.answer, view.posts), tokens_in=10)


class SpyComparer:
    """A Comparer with log-odds: reads the posts, and leans to the first position by `lean`."""

    def __init__(self, lean: float = 0.0) -> None:
        self.views: list[PairView] = []
        self.lean = lean
        self.card = ModelCard(address="spy-comparer", revision="1", reads=frozenset(Channel), parameters={"lean": lean})

    def render(self, view: PairView) -> Prompt:
        turns = [*(post.text for post in view.posts), *view.plan, view.question, view.first, view.second]
        return Prompt(tuple(Message("user", turn) for turn in turns))

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        for index, view in enumerate(views):
            self.views.append(view)
            first, second = (follows_posts(view.question, text, view.posts) for text in (view.first, view.second))
            margin = first - second + self.lean
            yield index, Outcome.judged("first" if margin > 0 else "second" if margin < 0 else "tie", margin)
