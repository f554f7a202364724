"""Judges of today: parameters that an endpoint refuses, models that think, schemas, log-probabilities, providers."""

import json
import sys

import pytest
from typer.testing import CliRunner

from fake_server import FakeServer, Fault, chat_reply
from prbench.cli import app
from prbench.config import ModelOptions, Price
from prbench.errors import ModelError
from prbench.models import load_generator, load_model
from prbench.models.meter import metered
from prbench.models.remote.chat import load
from prbench.models.remote.wire import Backoff
from prbench.types import Message, PairView, Post, Prompt

FAST = Backoff(initial_s=0.001, max_s=0.01, jitter_s=0.001, retry_after_max_s=0.05)
POSTS = (Post(id="1", text="I like tea."), Post(id="2", text="Lists, please."))


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def views(count, posts=POSTS):
    return [PairView(f"Question number {number}?", "Sencha.", "Assam.", posts, user="ann") for number in range(count)]


def judge(server, scheme="chat", mode="compare", **options):
    url = server.url if scheme == "chat" else server.root
    settings = ModelOptions(**{"retries": 0, "concurrency": 4, "timeout_s": 10, **options})
    return load(f"judge@{url}#{mode}", settings, backoff=FAST, dialect=scheme)


def refusal(message, param=None, code="unsupported_parameter"):
    return Fault(
        "status",
        400,
        body={"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}},
    )


MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
)


def reasoning_model(seen):
    """Refuses what the reasoning models of OpenAI refuse, one thing at a time."""
    body = seen.body
    if "max_tokens" in body:
        return refusal(MAX_TOKENS, "max_tokens")
    if "temperature" in body:
        return refusal(TEMPERATURE, "temperature", "unsupported_value")
    if "seed" in body:
        return refusal("Unrecognized request argument supplied: seed", code=None)
    if "logprobs" in body:
        return refusal("You are not allowed to request logprobs from this model: invalid 'logprobs'", "logprobs")
    return None


def test_a_reasoning_model_is_asked_as_it_wants_and_the_record_says_so():
    with FakeServer(plan=reasoning_model) as server:
        comparer = judge(server, logprobs=True)
        found = dict(comparer.compare(views(30)))
    assert {outcome.status for outcome in found.values()} == {"ok"}
    sent = server.requests[-1].body
    assert sent["max_completion_tokens"] == 1024
    assert not {"max_tokens", "temperature", "seed", "logprobs"} & sent.keys()
    wrong = [request for request in server.requests if reasoning_model(request)]
    assert len(wrong) <= 4 * 4  # each refusal is learned once, by as many calls as were under way
    for word in ("max_completion_tokens", "temperature", "seed", "logprobs", "the judge samples"):
        assert word in comparer.note


def test_what_an_endpoint_takes_is_sent_as_ever():
    with FakeServer() as server:
        comparer = judge(server)
        list(comparer.compare(views(2)))
    assert {"max_tokens", "temperature", "seed", "model", "messages"} == server.requests[0].body.keys()
    assert comparer.note is None


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens, your messages have 9000",
        "The prompt's 'temperature' of debate is too high",
        "the server is unhappy about max_completion_tokens",
    ],
)
def test_an_error_about_something_else_changes_no_parameter(message):
    def plan(seen):
        return refusal(message, code=None) if "number 1?" in seen.text else None

    with FakeServer(plan=plan) as server:
        comparer = judge(server, concurrency=1)
        found = dict(comparer.compare(views(3)))
    assert [found[place].status for place in range(3)] == ["ok", "failed", "ok"]
    assert comparer.note is None


def test_the_same_refusal_of_the_first_calls_ends_the_run():
    plan = lambda seen: refusal(f"model 'judge' was deactivated at {seen.number}")  # noqa: E731
    with FakeServer(plan=plan) as server, pytest.raises(ModelError, match="refuses every call") as caught:
        list(judge(server, concurrency=1).compare(views(100)))
    assert len(server.requests) == 5
    assert "deactivated" in str(caught.value)


def test_a_run_that_is_refused_from_the_first_call_on_ends_and_records_nothing(tmp_path):
    effort = "Unsupported parameter: 'reasoning_effort' is not supported with this model."
    plan = lambda seen: refusal(effort, "reasoning_effort") if "reasoning_effort" in seen.body else None  # noqa: E731
    with FakeServer(plan=plan) as server:
        command = [
            "run",
            "-m",
            f"chat:m@{server.url}",
            "--limit",
            "40",
            "-c",
            "none",
            "-o",
            str(tmp_path),
            "--no-cache",
        ]
        shown = CliRunner().invoke(app, [*command, "--body", "reasoning_effort=low"])
    assert isinstance(shown.exception, ModelError)
    assert shown.exit_code != 0
    assert "'reasoning_effort' is not supported" in str(shown.exception)
    assert "--body" in shown.exception.hint
    assert (tmp_path / "records.jsonl").read_text() == ""
    assert not (tmp_path / "result.json").exists()
    assert len(server.requests) <= 5 + 8


def test_a_refusal_among_first_calls_is_told_once_another_is_answered():
    plan = lambda seen: refusal("too long") if "number 0?" in seen.text else None  # noqa: E731
    with FakeServer(plan=plan) as server:
        found = list(judge(server, concurrency=1).compare(views(3)))
        alone = list(judge(server, concurrency=1).compare(views(1)))
    assert [(place, outcome.status) for place, outcome in found] == [(0, "failed"), (1, "ok"), (2, "ok")]
    assert [outcome.status for _, outcome in alone] == ["failed"]


def test_what_was_learned_is_in_the_runs_record(tmp_path):
    with FakeServer(plan=reasoning_model) as server:
        command = ["run", "-m", f"chat:m@{server.url}", "--limit", "4", "-c", "none", "-o", str(tmp_path), "--no-cache"]
        shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    note = json.loads((tmp_path / "result.json").read_text())["result"]["timing"]["note"]
    for word in ("max_completion_tokens", "'temperature' was left out", "'seed' was left out", "the judge samples"):
        assert word in note


def test_a_refused_field_of_the_users_own_is_never_left_out():
    def plan(seen):
        return refusal("Unsupported parameter: 'temperature'", "temperature") if "temperature" in seen.body else None

    with FakeServer(plan=plan) as server, pytest.raises(ModelError, match="refuses every call"):
        list(judge(server, body={"temperature": 0.3}, concurrency=1).compare(views(10)))
    assert all(request.body["temperature"] == 0.3 for request in server.requests)


def test_further_fields_are_sent_and_make_another_model():
    with FakeServer() as server:
        comparer = judge(server, body={"reasoning_effort": "low", "provider": {"order": ["x"]}})
        list(comparer.compare(views(1)))
        plain = judge(server)
    assert server.requests[0].body["reasoning_effort"] == "low"
    assert server.requests[0].body["provider"] == {"order": ["x"]}
    assert comparer.card.parameters["body"] == {"reasoning_effort": "low", "provider": {"order": ["x"]}}
    assert "body" not in plain.card.parameters


def thinking(content, finish="stop", tokens=900, thought=800):
    reply = chat_reply(content, finish, reasoning_content="Let me see …")
    reply["usage"] |= {"completion_tokens": tokens, "completion_tokens_details": {"reasoning_tokens": thought}}
    return reply


@pytest.mark.parametrize("empty", ["", None])
def test_a_model_that_is_cut_off_while_thinking_gets_room_once_and_for_all(empty):
    def answer(body):
        short = body["max_tokens"] <= 1024
        return thinking(empty, "length", 1024, 1024) if short else thinking("Result: B", tokens=3000, thought=2900)

    with FakeServer(answer) as server:
        comparer = judge(server, concurrency=1, price=Price(per_million_in=0, per_million_out=1e6))
        found = dict(comparer.compare(views(5)))
    assert {outcome.verdict for outcome in found.values()} == {"second"}
    assert [request.body["max_tokens"] for request in server.requests] == [1024, *[16384] * 5]
    assert found[0].tokens_out == 4024  # what was thought in vain was paid, too
    assert found[0].cost_usd == pytest.approx(4024)
    assert found[1].tokens_out == 3000
    assert "the model thinks: up to 16,384" in comparer.note
    assert "15,524 of 16,024 tokens written were thoughts" in comparer.note


def test_a_limit_that_the_user_set_is_kept_and_named():
    with FakeServer(lambda body: thinking("", "length", 500, 500)) as server:
        [(_, outcome)] = judge(server, max_tokens=500).compare(views(1))
    assert outcome.status == "invalid"
    assert outcome.reason == "cut off while thinking, after 500 tokens: raise --max-tokens"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (chat_reply("<think>Let me see", "length"), "invalid", "cut off while thinking"),
        (chat_reply("", "length"), "invalid", "cut off while thinking, after 10 tokens: raise --max-tokens"),
        (chat_reply(None, "length"), "invalid", "cut off while thinking, after 10 tokens: raise --max-tokens"),
        (chat_reply("A is fine. Result: A", "length"), "invalid", "cut off after 10 tokens"),
        (thinking(""), "invalid", "empty reply"),
        (chat_reply(None), "invalid", "refused"),
        (thinking("Result: A"), "ok", ""),
        (chat_reply("<think>B?</think>Result: A"), "ok", ""),
    ],
)
def test_the_ways_to_end_are_told_apart(reply, status, reason):
    with FakeServer(lambda body: reply) as server:
        [(_, outcome)] = judge(server, max_tokens=2048).compare(views(1))
    assert outcome.status == status
    assert reason in outcome.reason


def test_a_schema_is_sent_where_it_is_taken():
    with FakeServer(lambda body: '{"reasoning": "short", "result": "B"}') as server:
        comparer = judge(server, structured="auto")
        [(_, outcome)] = comparer.compare(views(1))
    form = server.requests[0].body["response_format"]
    assert form["json_schema"]["schema"]["properties"]["result"]["enum"] == ["A", "B", "tie"]
    assert outcome.verdict == "second"
    assert comparer.card.parameters["structured"] == "auto"


def no_schema(seen):
    return (
        refusal("'response_format' of type 'json_schema' is not supported") if "response_format" in seen.body else None
    )


def test_a_schema_that_is_refused_is_left_out_or_an_error_as_the_user_says():
    with FakeServer(plan=no_schema) as server:
        relaxed = judge(server, structured="auto")
        assert [outcome.verdict for _, outcome in relaxed.compare(views(1))] == ["first"]
        assert "'schema' was left out" in relaxed.note
        with pytest.raises(ModelError, match="refuses the schema"):
            list(judge(server, structured="json-schema").compare(views(1)))
        with pytest.raises(ModelError, match="takes no JSON schema"):
            judge(server, "anthropic", structured="json-schema")


def with_logprobs(text, letters):
    reply = chat_reply(text)
    tokens = [{"token": part, "logprob": -0.1, "top_logprobs": []} for part in ("Result", ":")]
    top = [{"token": letter, "logprob": value} for letter, value in letters.items()]
    tokens.append({"token": " " + text[-1], "logprob": -0.1, "top_logprobs": top})
    reply["choices"][0]["logprobs"] = {"content": tokens}
    return reply


@pytest.mark.parametrize(
    ("text", "letters", "margin"),
    [
        ("Result: A", {" A": -0.1, " B": -2.4}, 2.3),
        ("Result: B", {" A": -2.4, " B": -0.1, " C": -9.0}, -2.3),
        ("Result: A", {" A": -0.1}, None),
        ("Result: A", {" A": -2.0, " B": -1.0}, None),  # it wrote the less likely letter: no margin speaks for it
        ("Result: A", {}, None),
    ],
)
def test_log_probabilities_give_a_margin(text, letters, margin):
    with FakeServer(lambda body: with_logprobs(text, letters)) as server:
        [(_, outcome)] = judge(server, logprobs=True).compare(views(1))
    assert server.requests[0].body["logprobs"] is True
    assert outcome.verdict == ("first" if text.endswith("A") else "second")
    assert outcome.margin == (pytest.approx(margin) if margin is not None else None)


class Provider(FakeServer):
    """Answers any path as one provider does."""

    def __init__(self, reply, **settings):
        super().__init__(**settings)
        self._reply = reply

    def reply(self, seen):
        return self._reply


ANTHROPIC = {
    "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Fine.\nResult: B"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 20, "output_tokens": 9, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 10},
}


def test_anthropic_is_spoken_to_in_its_own_words(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    with Provider(ANTHROPIC) as server:
        comparer = judge(server, "anthropic")
        [(_, outcome)] = comparer.compare(views(1))
    [request] = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "sk-ant-secret"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.body["max_tokens"] == 1024
    assert not {"seed", "schema", "logprobs"} & request.body.keys()
    marked, rest = request.body["messages"][0]["content"]
    assert marked["cache_control"] == {"type": "ephemeral"}
    assert marked["text"].endswith("Lists, please.")
    assert "Question number 0?" in rest["text"]
    assert marked["text"] + rest["text"] == comparer.render(views(1)[0]).messages[0].content
    assert (outcome.verdict, outcome.tokens_in, outcome.tokens_out) == ("second", 100, 9)
    assert comparer.card.address.startswith("anthropic:judge@http://127.0.0.1")
    assert comparer.effort.computed_tokens == 30


def test_anthropic_without_posts_marks_nothing():
    with Provider(ANTHROPIC) as server:
        list(judge(server, "anthropic").compare(views(1, posts=())))
    assert isinstance(server.requests[0].body["messages"][0]["content"], str)


GEMINI = {
    "candidates": [
        {"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": "Result: A"}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 5, "thoughtsTokenCount": 40},
}


def test_gemini_is_spoken_to_in_its_own_words(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-secret")
    with Provider(GEMINI) as server:
        comparer = judge(server, "gemini", structured="auto")
        [(_, outcome)] = comparer.compare(views(1))
    [request] = server.requests
    assert request.path == "/v1beta/models/judge:generateContent"
    assert request.headers["x-goog-api-key"] == "AIza-secret"
    config = request.body["generationConfig"]
    assert (config["maxOutputTokens"], config["temperature"], config["seed"]) == (1024, 0, 0)
    assert config["responseJsonSchema"]["required"] == ["reasoning", "result"]
    assert request.body["contents"][0]["role"] == "user"
    assert (outcome.verdict, outcome.tokens_out) == ("first", 45)


@pytest.mark.parametrize(
    ("scheme", "reply", "reason"),
    [
        ("anthropic", {**ANTHROPIC, "stop_reason": "refusal"}, "refused"),
        ("anthropic", {"content": [{"type": "thinking"}], "stop_reason": "max_tokens"}, "cut off while thinking"),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, "refused"),
        ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}, "refused"),
        (
            "gemini",
            {"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": {"thoughtsTokenCount": 9}},
            "cut off while thinking, after 9",
        ),
    ],
)
def test_providers_ways_to_end_are_told_apart(scheme, reply, reason):
    with Provider(reply) as server:
        [(_, outcome)] = judge(server, scheme, max_tokens=77).compare(views(1))
    assert outcome.status == "invalid"
    assert outcome.reason.startswith(reason)


def test_gemini_writes_and_reads_system_turns():
    with Provider(GEMINI) as server:
        writer = load_generator(f"gemini:m@{server.root}", ModelOptions(retries=0))
        prompt = Prompt((Message("system", "Be brief."), Message("user", "Tea?"), Message("assistant", "Yes.")))
        [(_, (outcome,))] = writer.generate([prompt], stop=["END"])
    body = server.requests[0].body
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert [turn["role"] for turn in body["contents"]] == ["user", "model"]
    assert body["generationConfig"]["stopSequences"] == ["END"]
    assert outcome.raw == "Result: A"


def test_a_key_is_sent_only_where_it_belongs(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-secret")
    monkeypatch.setenv("MY_KEY", "sk-mine-secret")

    def variable(address, **options):
        return load_model(address, ModelOptions(**options))._completions.wire._key.variable

    assert variable("chat:m@https://api.openai.com/v1") == "OPENAI_API_KEY"
    assert variable("chat:m@http://127.0.0.1:8000/v1") == "OPENAI_API_KEY"
    assert variable("chat:m@https://elsewhere.example/v1") is None
    assert variable("chat:m@https://api.openai.com.elsewhere.example/v1") is None
    assert variable("chat:m@https://elsewhere.example/v1", key_env="MY_KEY") == "MY_KEY"
    assert variable("anthropic:m") == "ANTHROPIC_API_KEY"
    assert variable("anthropic:m@https://elsewhere.example") is None
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
    assert variable("chat:m") == "OPENAI_API_KEY"
    with pytest.raises(ModelError, match="'NOT_SET' holds no key"):
        variable("chat:m@https://elsewhere.example/v1", key_env="NOT_SET")


def test_the_command_line_passes_it_all_on(tmp_path):
    with FakeServer() as server:
        arguments = ["run", "-m", f"chat:m@{server.url}", "--limit", "2", "-c", "none", "-o", str(tmp_path / "run")]
        more = ["--body", "reasoning_effort=low", "--body", "n=1", "--structured", "auto", "--logprobs", "--no-cache"]
        shown = CliRunner().invoke(app, [*arguments, *more])
        wrong = CliRunner().invoke(app, [*arguments, "--body", "nothing"])
    assert shown.exit_code == 0, shown.output
    body = server.requests[0].body
    assert (body["reasoning_effort"], body["n"], body["logprobs"]) == ("low", 1, True)
    assert "response_format" in body
    assert "--body 'nothing' should be KEY=VALUE" in str(wrong.exception)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["result"]["model"]


def test_prices_are_looked_up_by_host_and_a_price_of_ones_own_wins(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    listed = load("gpt-5-mini@https://api.openai.com/v1", ModelOptions()).card.price
    assert (listed.per_million_in, listed.per_million_out, listed.per_million_cached) == (0.25, 2.0, 0.025)
    assert listed.source.startswith("genai-prices 0.")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    sonnet = load_model("anthropic:claude-sonnet-4-5").card.price
    assert (sonnet.per_million_in, sonnet.per_million_cached, sonnet.per_million_stored) == (3.0, 0.3, 3.75)
    assert load_model("gemini:gemini-2.5-flash").card.price.per_million_in > 0
    own = Price(per_million_in=7, per_million_out=8)
    assert load("gpt-5-mini@https://api.openai.com/v1", ModelOptions(price=own)).card.price == own
    for unknown in ("gpt-5-mini@http://127.0.0.1:1/v1", "nonesuch@https://api.openai.com/v1"):
        assert load(unknown, ModelOptions()).card.price is None


def test_without_the_list_there_is_no_price(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert load("gpt-5-mini@https://api.openai.com/v1", ModelOptions()).card.price is None


def test_cached_tokens_have_their_own_price():
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "cache_read_input_tokens": 800,
        "cache_creation_input_tokens": 100,
    }
    body = {"content": [{"type": "text", "text": "Result: A"}], "stop_reason": "end_turn", "usage": usage}
    price = Price(per_million_in=10, per_million_out=20, per_million_cached=1, per_million_stored=12)
    meter = Written()
    with Provider(body) as server, metered(meter):
        [(_, outcome)] = judge(server, "anthropic", price=price).compare(views(1))
        cheap = price.model_copy(update={"per_million_stored": None})
        list(judge(server, "anthropic", price=cheap).compare(views(1)))
    assert (outcome.tokens_in, outcome.tokens_cached, outcome.tokens_stored) == (1000, 800, 100)
    assert outcome.cost_usd == pytest.approx((100 * 10 + 800 * 1 + 100 * 12 + 10 * 20) / 1e6)
    assert meter.costs[0] == outcome.cost_usd
    most, most_without_storing = meter.most
    assert most > most_without_storing > 1024 * 20 / 1e6  # every token of the prompt at its dearest, none from a cache


class Written:
    """A meter that writes down what it is told."""

    def __init__(self):
        self.most, self.costs = [], []

    def begin(self, most_usd, *, again=False):
        self.most.append(most_usd)
        return len(self.most)

    def settle(self, number, cost_usd):
        self.costs.append(cost_usd)

    def abandon(self, number):
        raise AssertionError("every reply is read here")


def test_a_provider_that_counts_more_cached_tokens_than_tokens_makes_nothing_cheaper_than_free():
    price = Price(per_million_in=10, per_million_out=0, per_million_cached=1, per_million_stored=2)
    assert price.cost_usd(1e6, 0, cached=5e6, stored=5e6) == 1.0
