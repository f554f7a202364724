"""Users drawn from each method's own model are found again: unseen users, unseen items, by posts and by judgments."""

import sys
from pathlib import Path

import pytest

import planted_worlds
from planted_worlds import World, accuracy, student, teacher, world

PERSONAL = ("user-bt", "vpl", "pal", "lore", "gpo", "stances")


def _parts(name: str, *, hidden: bool) -> tuple[World, World, World]:
    train = (70, 20) if hidden else (100, 12)
    sizes = {"train": train, "validation": (10, 20), "test": (25, 36)}
    made = (world(name, part, users=users, each=each, hidden=hidden) for part, (users, each) in sizes.items())
    return next(made), next(made), next(made)


@pytest.mark.parametrize("name", PERSONAL)
def test_posts_alone_are_enough(name: str, tmp_path: Path) -> None:
    train, validation, test = _parts(name, hidden=False)
    method = student(name, train, validation, tmp_path, shots=0).run()
    found, best = accuracy(method, test), accuracy(teacher(name), test)
    print(f"{name}: Bayes {test.bayes:.3f}, teacher on the drawn labels {best:.3f}, found {found:.3f}", file=sys.stderr)
    assert 0.7 < test.bayes < 0.95, "a world in which there is something to know, and not everything can be known"
    assert found > test.bayes - (0.12 if name == "gpo" else 0.08), "a transformer needs more users than these"
    assert found < test.bayes + 0.05, "nobody beats the Bayes rate by more than the labels' chance"
    assert accuracy(method, _strangers(test)) < found - 0.1, "it is the user who makes the difference"


@pytest.mark.parametrize("name", PERSONAL)
def test_accuracy_grows_with_judgments_and_without_a_post(name: str, tmp_path: Path) -> None:
    train, validation, test = _parts(name, hidden=True)
    method = student(name, train, validation, tmp_path, shots=16).run()
    curve = {shots: accuracy(method, test, shots) for shots in (0, 2, 16)}
    print(f"{name}: Bayes for who knows the user {test.bayes:.3f}, found by shots {curve}", file=sys.stderr)
    assert curve[0] < 0.62, "nothing is known of a stranger"
    assert curve[0] + 0.04 < curve[2] < curve[16] + 0.03
    assert curve[16] > test.bayes - 0.1


def test_one_reward_for_all_is_found_by_bt(tmp_path: Path) -> None:
    train, validation, test = _parts("bt", hidden=False)
    method = student("bt", train, validation, tmp_path).run()
    assert accuracy(method, test) > test.bayes - 0.06


def test_bt_stays_at_exactly_one_half_on_mirrored_data(tmp_path: Path) -> None:
    sizes = {"train": (30, 12), "validation": (10, 12), "test": (10, 24)}
    parts = [world("user-bt", part, users=users, each=each) for part, (users, each) in sizes.items()]
    train, validation, test = (_mirrored(part) for part in parts)
    training = student("bt", train, validation, tmp_path, epochs=3)
    assert accuracy(training.run(), test) == 0.5
    assert training.best.validation_accuracy == 0.5
    assert training.best.validation_loss < 0.75, "it has not learned to be sure of what it cannot know"


def _mirrored(part: World) -> World:
    """Each user gets an opposite, whose posts are others and who wants the other answer of every pair."""
    opposite = [
        pair.model_copy(
            update={
                "id": f"{pair.id}-mirror",
                "user": f"{pair.user}-mirror",
                "profile": (pair.profile[0].model_copy(update={"text": f"opposite {pair.profile[0].text}"}),),
                "chosen": pair.rejected,
                "rejected": pair.chosen,
            }
        )
        for pair in part.pairs
    ]
    return World([*part.pairs, *opposite], part.bayes)


def _strangers(part: World) -> World:
    return World([pair.model_copy(update={"profile": ()}) for pair in part.pairs], part.bayes)


def test_the_encoder_of_these_worlds_knows_nothing() -> None:
    one, other = planted_worlds.HashEncoder(width=512).encode(["post a", "post b"])
    assert abs(float(one @ other)) < 0.2
