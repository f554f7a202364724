"""Endpoints that go wrong in every way that comes to mind: no number changes, what fails is said, and all goes on.

Faults hit a share of the requests, drawn by a seed: each request for some attempts, or for good. Whatever a command has
kept must be what an undisturbed one would have kept, or say that it failed; once the faults are over, the same command
comes to the same end.
"""

import gzip
import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import scripted_writer
from campaigns import Campaign, times
from fake_server import FakeServer, Fault, Plan, Seen, chat_reply
from prbench import evaluate
from prbench.build.written import PairsConfig, SpendingLimits, build_aspects, build_pairs
from prbench.config import ModelOptions
from prbench.data import Suite, load_pairs, load_questions
from prbench.files import read_models
from prbench.models.remote import chat, http
from prbench.models.remote.wire import Backoff
from prbench.plan import Planner, needs_of
from prbench.run import PlanFile
from prbench.types import Record
from small_suite import mirrored

SEED = 14
KEY = "sk-attack-0123456789abcdef"
FAST = Backoff(0.001, 0.01, 0.001, 0.02)
POSTS = Path(__file__).parents[2] / "examples" / "posts.csv"
PAIRS = mirrored(couples=2, questions=4)


def _reply(text: Any, **more: Any) -> dict[str, Any]:
    """A reply that a chat endpoint and a reward server could both send."""
    return {**chat_reply(text, **more), "scores": [text]}


KINDS: Mapping[str, Fault] = {
    **{f"status {code}": Fault("status", status=code) for code in (400, 401, 403, 404, 408, 409, 413, 422, 500, 502)},
    **{f"status {code}": Fault("status", status=code) for code in (503, 504, 529)},
    "429, come at once": Fault("status", status=429, retry_after="0"),
    "429, come in 30 years": Fault("status", status=429, retry_after="999999999"),
    "429, come nonsense": Fault("status", status=429, retry_after="soon"),
    "an error without words": Fault("status", status=500, body=None),
    "an error with the key": Fault("status", status=400, body={"error": {"message": f"bad key {KEY}"}}),
    "silence": Fault("hang"),
    "late": Fault("slow", seconds=0.05),
    "byte by byte": Fault("drip"),
    "half a JSON": Fault("half_json"),
    "half sent": Fault("half_sent"),
    "another schema": Fault("wrong_schema"),
    "nothing in it": Fault("empty_choices"),
    "reset": Fault("reset"),
    "an empty body": Fault("body", body=b""),
    "a web page": Fault("body", body=b"<html><body>Sign in</body></html>"),
    "null": Fault("body", body=b"null"),
    "a list": Fault("body", body=b"[1, 2, 3]"),
    "a text": Fault("body", body=b'"Result: A"'),
    "deep nesting": Fault("body", body=b'{"choices": ' + b"[" * 20_000 + b"]" * 20_000 + b"}"),
    "no UTF-8": Fault("body", body=b'{"choices": "\xff\xfe", "scores": "\xc3"}'),
    "a gzip bomb": Fault("body", body=gzip.compress(b" " * (64 << 20)), encoding="gzip"),
    "no gzip": Fault("body", body=b"not compressed at all", encoding="gzip"),
    "a huge body": Fault("body", body=b'{"choices": "' + b"x" * (9 << 20) + b'"}'),
    "an error in a 200": Fault("body", body={"error": {"message": "overloaded", "code": 503}}),
    "no text": Fault("body", body=_reply(None)),
    "a number for a text": Fault("body", body={"choices": [{"message": {"content": 17}}], "scores": ["high"]}),
    "half a character": Fault("body", body=json.dumps(_reply("\ud800 hm")).encode()),
    "not a number": Fault("body", body=b'{"choices": [], "scores": [NaN, Infinity]}'),
    "400 digits": Fault("body", body=b'{"choices": [], "scores": [' + b"9" * 400 + b"]}"),
    "the key in the reply": Fault("body", body=_reply(f"You sent {KEY}")),
    "too many": Fault("body", body={"choices": [], "scores": [0.5] * 1000}),
    "refused": Fault("body", body=_reply(None, finish_reason="content_filter", refusal=f"no, {KEY}")),
}


def _sometimes(fault: Fault, chance: random.Random, met: list[str]) -> Plan:
    """A third of the requests meet the fault: some once, some twice, some for as long as they come."""
    drawn: dict[str, int] = {}

    def plan(seen: Seen) -> Fault | None:
        if seen.path == "/health":
            return None
        body = json.dumps(seen.body, sort_keys=True)
        attempts = drawn.setdefault(body, chance.choice((0, 0, 0, 0, 1, 2, 99)))
        if not met:
            attempts = max(attempts, 1)  # one at least
        if seen.attempt > attempts:
            return None
        met.append(body)
        return fault

    return plan


def _judge(body: dict[str, Any]) -> str:
    """Takes the answer with the colour that the posts praise; plans name it."""
    text = body["messages"][-1]["content"]
    taste = re.search(r"glad of the (\w+)", text)
    if "Get the" not in text:
        return f"- wants {taste and taste[1]}\n- keep it short"
    first = re.findall(r"Get the (\w+)", text)[0]
    return f"They like it.\nResult: {'A' if taste and first == taste[1] else 'B'}"


def _score(item: Mapping[str, Any]) -> float:
    taste = re.search(r"glad of the (\w+)", json.dumps(item["posts"]))
    return float(bool(taste and taste[1] in item["answer"])) + len(item["answer"]) / 100


HURRIED = ModelOptions(timeout_s=0.4, retries=1, concurrency=8)
PATIENT = ModelOptions(timeout_s=60, retries=1, concurrency=8)


def _chat(server: FakeServer, out: Path, options: ModelOptions) -> None:
    model = chat.load(f"judge@{server.url}", options, backoff=FAST)
    evaluate(model, PAIRS, contexts=["profile"], options=options, resamples=100, out=out / "run", cache=False)


def _http(server: FakeServer, out: Path, options: ModelOptions) -> None:
    model = http.load(server.root, options, backoff=FAST, batch=2)
    evaluate(model, PAIRS, contexts=["profile"], options=options, resamples=100, out=out / "run", cache=False)


def _records(out: Path) -> dict[object, object]:
    """What a run says of each pair; None where it says that it failed."""
    return {
        record.slot: (record.chosen_score, record.rejected_score, record.verdict) if record.status == "ok" else None
        for record in read_models(out / "run" / "records.jsonl", Record)
    }


def _plan(server: FakeServer, out: Path, options: ModelOptions) -> None:
    planner = Planner(chat.load_generator(f"planner@{server.url}", options, backoff=FAST))
    PlanFile(out / "plans.jsonl", planner, needs_of(Suite.of(PAIRS))).write()


def _plans(out: Path) -> dict[object, object]:
    path = out / "plans.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {line["need"]: tuple(line["plan"]) if line["status"] == "ok" else None for line in lines}


def _build(server: FakeServer, out: Path, options: ModelOptions) -> None:
    author = chat.load_generator(f"author@{server.url}", options, backoff=FAST)
    build_aspects(POSTS, out / "aspects.jsonl", author, limits=SpendingLimits(skip_failed=True))
    build_pairs(
        out / "aspects.jsonl",
        out / "pairs",
        author,
        options=PairsConfig(title="t"),
        limits=SpendingLimits(skip_failed=True),
    )


def _built(out: Path) -> dict[object, object]:
    """Aspects and pairs; None for those that were rejected with a reason."""
    found: dict[object, object] = {}
    for stage, rejects in (("aspects", out / "aspects.rejects.jsonl"), ("pair", out / "pairs" / "rejects.jsonl")):
        lines = rejects.read_text().splitlines() if rejects.exists() else []
        found |= {(stage, json.loads(line)["id"]): None for line in lines}
    if (out / "aspects.jsonl").exists():
        found |= {("aspects", one.id): one.rubric_aspects for one in load_questions(out / "aspects.jsonl")}
    if (out / "pairs" / "pairs.parquet").exists():
        found |= {("pair", one.id): (one.chosen, one.rejected) for one in load_pairs(out / "pairs")}
    return found


TARGETS: Mapping[
    str, tuple[Callable[[FakeServer, Path, ModelOptions], None], Callable[[Path], dict[object, object]]]
] = {
    "chat": (_chat, _records),
    "http": (_http, _records),
    "plan": (_plan, _plans),
    "build": (_build, _built),
}


def _no_key(campaign: Campaign, what: str, folder: Path, said: str) -> None:
    guilty = [path.name for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    if guilty or KEY in said:
        campaign.changed.append(f"{what}: the key is in {guilty or said!r}")


class Torment:
    """One target, asked again and again through servers that go wrong.

    Args:
        target: Which.
        folder: A place for what it keeps.
        campaign: Where it is counted.
    """

    def __init__(self, target: str, folder: Path, campaign: Campaign) -> None:
        self._ask, self._read = TARGETS[target]
        self._folder, self._campaign = folder, campaign
        self._answer = scripted_writer.write if target == "build" else _judge
        with FakeServer(answer=self._answer, score=_score) as server:
            self._ask(server, folder / "whole", PATIENT)
        self._wanted = self._read(folder / "whole")
        assert self._wanted
        assert None not in self._wanted.values()

    def meet(self, what: str, fault: Fault) -> None:
        """Meet a fault here and there, then none: compare what is kept each time."""
        met: list[str] = []
        out = self._folder / "out"
        with FakeServer(answer=self._answer, score=_score) as server:
            server.plan = _sometimes(fault, random.Random(f"{SEED} {what}"), met)
            ended = self._campaign.refused(lambda: self._ask(server, out, HURRIED))
            if any(KEY in header for seen in server.requests for header in seen.headers.values()):  # else it knows none
                _no_key(self._campaign, what, out, f"{ended}")
            self._compare(what, self._read(out))
            server.plan = lambda seen: None
            again = self._campaign.refused(lambda: self._ask(server, out, HURRIED))
            found = self._read(out)
            self._compare(f"{what}, then without faults ({again})", found)
        self._campaign.tried += len(met)
        gone = [place for place in self._wanted if place not in found and not _follows(place, found)]
        self._campaign.lost += [f"{what}: {len(gone)}, for example {gone[0]} ({again})"] if gone else []
        shutil.rmtree(out, ignore_errors=True)

    def _compare(self, what: str, found: Mapping[object, object]) -> None:
        for place, value in found.items():
            if value is not None and value != self._wanted.get(place):
                self._campaign.changed.append(f"{what}: {place} is {value}, not {self._wanted.get(place)}")


def _follows(place: object, found: Mapping[object, object]) -> bool:
    """Whether a pair is missing because its question was rejected at an earlier stage."""
    return isinstance(place, tuple) and place[0] == "pair" and found.get(("aspects", place[1]), ()) is None


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_no_fault_of_an_endpoint_changes_or_loses_anything(
    target: str, tmp_path: Path, attack: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    names = random.Random(f"{SEED} {target}").sample(list(KINDS), len(KINDS))
    with attack(f"endpoint faults: {target}") as campaign:
        torment, number = Torment(target, tmp_path, campaign), 0
        while campaign.tried < times(320) or number < times(len(KINDS)):
            name = names[number % len(names)]
            torment.meet(f"{number}: {name}", KINDS[name])
            number += 1
        if target != "http":  # a served reward model is sent no key
            _no_key(campaign, "screen", tmp_path / "none", "".join(capfd.readouterr()))


def test_there_are_enough_kinds() -> None:
    assert len(KINDS) >= 30
