"""Many clients of one reward server at once: each gets its own scores and finds its own judgments."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from campaigns import Campaign, times
from prbench.data import Suite
from prbench.models.python import wrap
from prbench.serve import ServeConfig, serving
from prbench.types import Judgment, Post
from serve_models import Slow, known_score
from small_suite import mirrored

SEED = 14
REQUESTS = times(8, short=2)
"""Of each client."""
PATIENCE_S = 300.0
"""More than the server's own deadline, so that an answer or a refusal comes first."""


class Remembering(Slow):
    """Scores as nobody could by chance, and takes judgments, so that these can be asked for again."""

    pause_s = 0.005

    def fit_user(self, user: str, judgments: list[Judgment]) -> None:
        """Learn nothing: what is looked at is who said what."""


async def _ask(client: httpx.AsyncClient, send: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """Send until there is room."""
    until = time.monotonic() + PATIENCE_S
    while (reply := await send()).status_code == 503 and time.monotonic() < until:
        await asyncio.sleep(min(1.0, float(reply.headers.get("retry-after", "1"))) * random.Random(SEED).random())
    return reply


async def _be_a_client(url: str, number: int, campaign: Campaign) -> None:
    """Score items of its own, and judge under a name of its own."""
    chance = random.Random(f"{SEED} {number}")
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, verify=False) as client:
        for turn in range(REQUESTS):
            posts = [f"Post {turn} of client {number}"] * chance.randint(0, 2)
            items = [
                {"question": f"Which {turn}?", "answer": f"Answer {place} for {number}", "posts": posts}
                for place in range(chance.choice((1, 1, 4, 40)))
            ]
            wanted = [
                known_score(item["question"], item["answer"], [Post(id="p", text=text) for text in posts])
                for item in items
            ]
            reply = await _ask(client, lambda items=items: client.post("/score", json={"items": items}))
            campaign.tried += 1
            if reply.status_code != 200:
                campaign.lost.append(f"client {number}, request {turn}: {reply.status_code} {reply.text[:200]}")
            elif reply.json()["scores"] != wanted:
                campaign.changed.append(f"client {number}, request {turn}: scores of somebody else")
        judgment = {"question": f"Ink {number}?", "chosen": f"red {number}", "rejected": f"blue {number}"}
        await _ask(client, lambda: client.post(f"/users/client{number}/feedback", json=judgment))
        kept = await _ask(client, lambda: client.get(f"/users/client{number}/feedback"))
        campaign.tried += 1
        if kept.status_code != 200:
            campaign.lost.append(f"client {number}: judgment: {kept.status_code} {kept.text[:200]}")
        elif kept.json()["judgments"] != [judgment]:
            campaign.changed.append(f"client {number}: judgments {kept.json()['judgments']}")


@pytest.mark.slow
@pytest.mark.parametrize("clients", [64, 256])
def test_answers_of_many_clients_are_not_crossed(clients: int, tmp_path: Path, attack: Any) -> None:
    model = wrap(Remembering())
    config = ServeConfig.of(model=model.card.address, context="profile", port=0, state=tmp_path / "judged.jsonl")
    suite = Suite.of(mirrored(couples=2, questions=3), name="small")

    async def everybody(url: str) -> None:
        await asyncio.gather(*(_be_a_client(url, number, campaign) for number in range(clients)))

    with attack(f"clients at once: {clients}") as campaign, serving(config, model=model, suite=suite) as url:
        asyncio.run(everybody(url))
        batches = [len(batch) for batch in model.batches] if hasattr(model, "batches") else []
    assert campaign.tried == clients * (REQUESTS + 1)
    assert max(batches, default=2) > 1  # they did meet in one batch
