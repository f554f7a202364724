"""What every method keeps: strangers, sets without an order, users and candidates apart from each other."""

import pytest
import torch

from prbench.errors import ConfigError
from prbench.models.personal.method import METHODS, Width, make
from prbench.models.personal.person import Known, stack

WIDTH = Width(post=6, item=12)


def _known(posts: int, shots: int, seed: int) -> Known:
    random = torch.Generator().manual_seed(seed)
    return Known(*(torch.randn(rows, wide, generator=random) for rows, wide in ((posts, 6), (shots, 12), (shots, 12))))


@pytest.mark.parametrize("name", METHODS)
def test_a_score_depends_on_its_own_user_and_item_only(name: str) -> None:
    method = make(name, WIDTH, {}, seed=0).eval()
    users = [_known(posts, shots, seed) for seed, (posts, shots) in enumerate([(3, 2), (0, 0), (7, 0), (0, 5)])]
    items = torch.randn(4, 3, 12, generator=torch.Generator().manual_seed(9))
    with torch.inference_mode():
        together = method.reward(method.person(stack(users)), items)
        alone = [
            [float(method.reward(method.person(stack([user])), items[[row]][:, [place]])) for place in range(3)]
            for row, user in enumerate(users)
        ]
    assert torch.allclose(together, torch.tensor(alone), atol=1e-5)
    assert torch.isfinite(together).all()


@pytest.mark.parametrize("name", METHODS)
def test_posts_and_judgments_are_sets(name: str) -> None:
    method = make(name, WIDTH, {}, seed=0).eval()
    posts, chosen, rejected = _known(4, 3, seed=1)
    items = torch.randn(1, 2, 12, generator=torch.Generator().manual_seed(2))
    turned = Known(posts.flip(0), chosen.flip(0), rejected.flip(0))
    with torch.inference_mode():
        one, other = (method.reward(method.person(stack([k])), items) for k in (Known(posts, chosen, rejected), turned))
    assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_gradients_are_finite_with_strangers_in_the_batch(name: str) -> None:
    method = make(name, WIDTH, {}, seed=0)
    users = [_known(posts, shots, seed) for seed, (posts, shots) in enumerate([(3, 2), (0, 0), (0, 5)])]
    pairs = torch.randn(4, 2, 12, generator=torch.Generator().manual_seed(9))
    method.loss(stack(users), pairs, torch.tensor([0, 1, 2, 2])).backward()
    gradients = [parameter.grad for parameter in method.parameters() if parameter.grad is not None]
    assert gradients
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("name", ["user-bt", "pal", "lore"])  # vpl and gpo learn from data which way it moves them
def test_a_judged_pair_moves_the_reward_towards_the_judgment(name: str) -> None:
    method = make(name, WIDTH, {}, seed=0).eval()
    posts, chosen, rejected = _known(0, 1, seed=4)
    with torch.inference_mode():
        pair = torch.stack([chosen, rejected], dim=1)
        states = [method.person(stack([Known(posts, chosen[:n], rejected[:n])])) for n in (0, 1)]
        before, after = (float(method.reward(state, pair)[0, 0] - method.reward(state, pair)[0, 1]) for state in states)
    assert after > before


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"stance": 3}, "stance"), ({"stances": -1}, "-1"), ({"dropout": 7}, "7"), ({"stances": "many"}, "many")],
)
def test_settings_that_a_method_does_not_take_are_refused_with_those_it_does(settings: dict, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        make("user-bt", WIDTH, settings, seed=0)
    assert "stances=24" in error.value.hint


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ConfigError, match="divisible"):
        make("gpo", WIDTH, {"heads": 3}, seed=0)


def test_an_unknown_method_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="user-tb") as error:
        make("user-tb", WIDTH, {}, seed=0)
    assert "user-bt" in error.value.hint


def test_fresh_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(5)
    one = make("vpl", WIDTH, {}, seed=1).state_dict()
    before = torch.get_rng_state()
    two, three = (make("vpl", WIDTH, {}, seed=seed).state_dict() for seed in (1, 2))
    assert torch.equal(before, torch.get_rng_state()), "making a method takes nothing from the caller's random numbers"
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert any(not torch.equal(one[key], three[key]) for key in one)
