"""Users drawn from a method's own model: what a training must find again, with the best accuracy that can be had.

Texts are names without meaning, each with a fixed random vector; a teacher of the method's own kind, with weights that
the student does not know, says what each user wants. Labels are drawn, so no model beats the Bayes rate.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from pair_factory import make_pair
from prbench.models.personal.method import Method, Width, make
from prbench.models.personal.person import stack
from prbench.models.personal.reader import Reader
from prbench.train import TrainConfig
from prbench.train.method_training import Training
from prbench.types import Judgment, Pair, Post

WIDTH = 6


class HashEncoder:
    """A vector of length 1 for each text, from its hash: no two texts have anything in common."""

    def __init__(self, width: int = WIDTH, name: str = "hash@1") -> None:
        self.name = name
        self.asked: list[str] = []
        self._width = width

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([_vector(text, self._width) for text in texts], dtype=np.float32).reshape(-1, self._width)


@cache
def _vector(text: str, width: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    row = np.random.default_rng(seed).normal(size=width)
    return row / np.linalg.norm(row)


class World(NamedTuple):
    """Pairs of users whom the teacher knows."""

    pairs: list[Pair]
    bayes: float
    """Mean of max(p, 1 − p) under the teacher, who knows each user: the highest accuracy to be expected of anybody."""


SETTINGS: dict[str, dict[str, Any]] = {
    "bt": {"hidden": 8, "dropout": 0.0},
    "user-bt": {"stances": 2, "dropout": 0.0, "blind": False},
    "vpl": {"latent": 2, "hidden": 12, "beta": 0.003, "dropout": 0.0},
    "pal": {"prototypes": 2, "space": 2, "dropout": 0.0, "ridge": 0.3},
    "lore": {"basis": 2, "dropout": 0.0, "ridge": 0.1},
    "stances": {},
    "gpo": {"hidden": 16, "layers": 2, "heads": 2, "dropout": 0.0},
}


def reader() -> Reader:
    return Reader(HashEncoder(), post_window=0, answer_window=0)


def teacher(name: str, seed: int = 11) -> Method:
    """A method with weights under which users differ: as they come, a perceptron or a mixture hardly tells them apart.

    The transformer has no user model of its own; it was made for groups, so its users are of two opposite groups.
    """
    kind, settings = ("user-bt", {"stances": 1, "blind": False}) if name == "gpo" else (name, SETTINGS[name])
    found = make(kind, Width(WIDTH, 2 * WIDTH), settings, seed).eval()
    with torch.no_grad():
        if name == "gpo":
            found.value.weight.mul_(20)
            found.value.bias.zero_()
        elif name == "vpl":
            found.post = torch.nn.Linear(WIDTH, 2 * 2, bias=False)
            found.post.weight.normal_(generator=torch.Generator().manual_seed(seed))
            found.decoder[-1].weight.zero_()
        elif name == "pal":
            found.prototypes.sub_(found.prototypes.mean(0)).mul_(2)
            found.mixture.weight.mul_(6)
            found.place.weight.mul_(0.5)
        elif name == "stances":
            found.gain.copy_(torch.tensor([6.0, 0.0, 3.0]))
            found.clarity.mul_(2)
    return found


SHARP = {"bt": 20.0, "user-bt": 8.0, "vpl": 4.0, "pal": 6.0, "lore": 12.0, "gpo": 6.0, "stances": 1.2}
"""How many times its own reward a teacher feels: sets the Bayes rate."""


def world(name: str, part: str, *, users: int, each: int, posts: int = 2, hidden: bool = False) -> World:
    """Pairs of new users about new questions; `part` names both, `hidden` leaves the posts out of the pairs."""
    knows, read = teacher(name), reader()
    random = torch.Generator().manual_seed(sum(map(ord, part)))
    pairs, sure = [], []
    for number in range(users):
        user = f"{part}-{number}"
        profile = tuple(Post(id=f"{user}-{i}", text=f"post {user} {i}") for i in range(posts))
        asked = [(f"question {user} {i}", [f"answer {user} {i} {side}" for side in "ab"]) for i in range(each)]
        items = read.items([(question, answer) for question, answers in asked for answer in answers])
        with torch.inference_mode():
            rewards = knows.reward(knows.person(stack([read.known([p.text for p in profile])])), items[None])
        chances = torch.sigmoid(SHARP[name] * (rewards[0, ::2] - rewards[0, 1::2]))
        sure += torch.maximum(chances, 1 - chances).tolist()
        first = (torch.rand(each, generator=random) < chances).tolist()
        for place, (question, answers) in enumerate(asked):
            chosen, rejected = answers if first[place] else answers[::-1]
            pairs.append(
                make_pair(
                    id=f"{user}:{place}",
                    user=user,
                    question=question,
                    profile=() if hidden else profile,
                    chosen=chosen,
                    rejected=rejected,
                    tags={"split": part},
                )
            )
    return World(pairs, float(np.mean(sure)))


def student(name: str, train: World, validation: World, folder: Path, **options: Any) -> Training:
    given = {"epochs": 8, "batch": 64, "learning_rate": 0.02, "weight_decay": 0.0, "strangers": 0.0, "keep_posts": 1.0}
    settings = TrainConfig.model_validate(
        {"method": name, "settings": SETTINGS[name], "post_window": 0, "answer_window": 0, **given, **options}
    )
    return Training(settings, train.pairs, validation.pairs, reader(), folder)


def accuracy(method: Method, test: World, shots: int = 0) -> float:
    """On all but the first 16 pairs of each user, of which so many are shown as labelled pairs."""
    read, credit = reader(), []
    for user in dict.fromkeys(pair.user for pair in test.pairs):
        mine = [pair for pair in test.pairs if pair.user == user]
        judged = [Judgment(question=p.question, chosen=p.chosen, rejected=p.rejected) for p in mine[:shots]]
        items = read.items([(pair.question, text) for pair in mine[16:] for text in (pair.chosen, pair.rejected)])
        with torch.inference_mode():
            state = method.person(stack([read.known([post.text for post in mine[0].profile], judged)]))
            rewards = method.reward(state, items[None])[0]
        credit += (torch.sign(rewards[::2] - rewards[1::2]) / 2 + 0.5).tolist()
    return float(np.mean(credit))
