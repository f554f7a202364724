"""SIGKILL in the middle of paid requests: what is kept as spent is never less than what the endpoint has billed.

The endpoint bills every request that it begins to answer, also where its reply is an error, half a reply or nothing,
and also where nobody is there any more to read it; some replies do not say what they took.
"""

import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attack_jobs
from campaigns import Campaign, peak_mb, times
from fake_server import FakeServer, Fault, Seen, chat_reply
from prbench.calls.budget import FILE, read_spending

SEED = 14
KILLS = times(20, short=3)
"""Of each job; there are three."""
IN_A_ROW = 3
USD_PER_TOKEN = 1e-3
FAULTS = [Fault("status", status=500), Fault("status", status=502), Fault("status", status=504), Fault("reset")]
FAULTS += [Fault("half_json"), Fault("half_sent"), Fault("wrong_schema"), Fault("empty_choices")]
SPEND = {"run": FILE, "plan": "plans.spend.jsonl", "build": FILE}


class Till:
    """An endpoint that bills, and goes wrong after it has."""

    def __init__(self, chance: random.Random) -> None:
        self.billed_usd = self.dearest_usd = 0.0
        self._chance = chance
        self._lock = threading.Lock()

    def answer(self, body: dict[str, Any]) -> Any:
        """Bill a request and reply to it."""
        size = len(json.dumps(body))
        with self._lock:
            tokens = self._chance.randint(1, size // 2), self._chance.randint(1, body["max_tokens"])
            usd = sum(tokens) * USD_PER_TOKEN
            self.billed_usd += usd
            self.dearest_usd = max(self.dearest_usd, usd)
            told = self._chance.random() < 0.9
        reply = chat_reply("- ASPECT red\n- short Result: A")
        reply["usage"] = dict(zip(("prompt_tokens", "completion_tokens"), tokens, strict=True)) if told else None
        return reply

    def plan(self, seen: Seen) -> Fault | None:
        """One request in seven goes wrong; the others take a moment."""
        with self._lock:
            wrong, rest_s = self._chance.random() < 0.15, self._chance.uniform(0.005, 0.06)
            fault = self._chance.choice(FAULTS) if wrong else None
        time.sleep(rest_s)
        return fault


class Payer:
    """Starts a job that pays, kills it, and holds what it keeps against what was billed."""

    def __init__(self, name: str, forks: Any, folder: Path, campaign: Campaign, chance: random.Random) -> None:
        self.name, self.forks, self.folder, self.campaign, self.chance = name, forks, folder, campaign, chance

    def start(self, server: FakeServer, limit_usd: float | None) -> Any:
        environment = {"PRBENCH_CACHE": str(self.folder / "cache")}
        out = str(self.folder / "out")
        process = self.forks.Process(
            target=attack_jobs.paid, args=(str(self.folder), environment, self.name, server.url, out, limit_usd)
        )
        process.start()
        return process

    def kill(self, server: FakeServer, limit_usd: float | None) -> int | None:
        """Kill it while it pays; its exit code where it ended by itself."""
        before = len(server.requests)
        process = self.start(server, limit_usd)
        while process.exitcode is None and len(server.requests) == before:
            process.join(0.005)
        process.join(self.chance.uniform(0, 0.5))
        if process.exitcode is None:
            self.campaign.remember(peak_mb(process.pid))
            process.kill()
            process.join()
        return None if process.exitcode == -9 else process.exitcode

    def finish(self, server: FakeServer, limit_usd: float | None) -> int | None:
        """Let it end, with the same command again where a request failed too often; its exit code."""
        for _ in range(10):
            process = self.start(server, limit_usd)
            process.join(120)
            if process.exitcode != 4:
                break
        if process.exitcode not in (0, 3):
            self.campaign.tracebacks.append((self.folder / "said.txt").read_text()[-1500:])
        return process.exitcode

    def look(self, till: Till, what: str) -> None:
        """Compare what is kept with what was billed; replies under way are still billed."""
        time.sleep(0.1)
        path = self.folder / "out" / SPEND[self.name]
        spent = read_spending(path).spent_usd if path.exists() else 0.0
        if spent < till.billed_usd - 1e-9:
            self.campaign.lost.append(f"{what}: ${spent:.4f} kept, ${till.billed_usd:.4f} billed")


@pytest.mark.slow
@pytest.mark.parametrize("name", SPEND)
def test_what_was_billed_is_known_over_kills_and_the_limit_holds(
    name: str, forks: Any, tmp_path_factory: pytest.TempPathFactory, attack: Callable[[str], Any]
) -> None:
    chance = random.Random(f"{SEED} money {name}")
    with attack(f"money over kills: {name}") as campaign:
        for trial in range(20 * KILLS):
            if campaign.tried >= KILLS:
                break
            payer, till = Payer(name, forks, tmp_path_factory.mktemp(name), campaign, chance), Till(chance)
            limit_usd = chance.uniform(1.0, 8.0)
            with FakeServer(answer=till.answer, plan=till.plan) as server:
                for kill in range(IN_A_ROW):
                    ended = payer.kill(server, limit_usd)
                    campaign.tried += ended is None
                    payer.look(till, f"trial {trial}, kill {kill}")
                    if ended is not None:
                        break
                payer.finish(server, limit_usd)
                payer.look(till, f"trial {trial}, at the limit")
                most = limit_usd + attack_jobs.AT_ONCE * till.dearest_usd
                if till.billed_usd > most:
                    campaign.changed.append(f"trial {trial}: ${till.billed_usd:.4f} billed, limit ${limit_usd:.4f}")
                if payer.finish(server, None) != 0:
                    campaign.changed.append(f"trial {trial}: it does not end without a limit")
                payer.look(till, f"trial {trial}, at the end")
    assert campaign.tried >= KILLS
