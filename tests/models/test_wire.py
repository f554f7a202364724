"""What a server sends back: cleared of the key, bounded in size, and never more than the fault of one call."""

import gzip
import json
import logging
import re
import tracemalloc
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from typer.testing import CliRunner

from fake_server import FakeServer, Fault, chat_reply, every, where
from prbench.cli import app
from prbench.config import ModelOptions
from prbench.models import load_model
from prbench.models.remote import http, vllm
from prbench.models.remote.dialects import DIALECTS, OpenAI
from prbench.models.remote.http import load as load_http
from prbench.models.remote.wire import MAX_REPLY_BYTES, Wire
from prbench.types import AnswerView, PairView

KEY = "sk-very-secret-0123456789"
VIEW = PairView("Tea?", "Green.", "Black.")


def judge(server):
    return load_model(f"chat:m@{server.url}", ModelOptions(timeout_s=10, retries=0))


def one(server):
    [(_, outcome)] = judge(server).compare([VIEW])
    return outcome


def escaped(text):
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just(KEY),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just(KEY), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=json_values, prefix=st.text(max_size=5), spelt=st.booleans(), ascii_only=st.booleans())
def test_no_body_keeps_the_key_however_it_is_spelt(monkeypatch, value, prefix, spelt, ascii_only):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    wire = Wire("http://127.0.0.1:1", timeout_s=1, retries=0, key_variable="OPENAI_API_KEY")
    body = json.dumps({"a": value, "b": prefix + KEY}, ensure_ascii=ascii_only)
    body = body.replace(KEY, escaped(KEY)) if spelt else body
    cleared = wire._key.cleared(body.encode("utf-8", "surrogatepass"))
    assert KEY.encode() not in cleared
    assert KEY not in json.dumps(json.loads(cleared), ensure_ascii=False)


spellings = st.lists(st.sampled_from(["plain", "x", "X"]), min_size=len(KEY), max_size=len(KEY))


def spelt_as(spelling):
    """The key as JSON may write it: each letter plain or as an escape, of small or of large digits."""
    each = {"plain": "{0}", "x": "\\u{1:04x}", "X": "\\u{1:04X}"}
    return "".join(each[way].format(letter, ord(letter)) for way, letter in zip(spelling, KEY, strict=True)).encode()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    spelling=spellings,
    before=st.sampled_from([b"", b"\xff", b"\xc3"]),
    after=st.sampled_from([b"", b"\xff"]),
    end=st.sampled_from([b'"}}]}', b'"}', b""]),
)
def test_bytes_that_are_no_text_hide_no_key(monkeypatch, spelling, before, after, end):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    wire = Wire("http://127.0.0.1:1", timeout_s=1, retries=0, key_variable="OPENAI_API_KEY")
    body = b'{"choices": [{"message": {"content": "' + before + spelt_as(spelling) + after + end
    cleared = wire._key.cleared(body)
    assert KEY not in re.sub(r"\\u([0-9A-Fa-f]{4})", lambda found: chr(int(found[1], 16)), cleared.decode())
    if end == b'"}}]}':
        assert KEY not in OpenAI.body.model_validate_json(cleared).choices[0].message.content


def anthropic_reply(*pieces):
    return {"content": [{"type": "text", "text": piece} for piece in pieces]}


def gemini_reply(*pieces):
    return {"candidates": [{"content": {"parts": [{"text": piece} for piece in pieces]}}]}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cuts=st.sets(st.integers(1, len(KEY) - 1), min_size=1, max_size=3).map(sorted))
@pytest.mark.parametrize(("scheme", "reply"), [("anthropic", anthropic_reply), ("gemini", gemini_reply)])
def test_a_key_in_pieces_is_not_put_together(monkeypatch, scheme, reply, cuts):
    monkeypatch.setenv(DIALECTS[scheme].key_variable, KEY)
    pieces = [KEY[start:end] for start, end in zip([0, *cuts], [*cuts, len(KEY)], strict=True)]
    body = reply("I got ", *pieces, ".\nResult: A")
    with FakeServer(plan=every(1, Fault("body", body=body))) as server:
        model = load_model(f"{scheme}:m@{server.root}", ModelOptions(timeout_s=10, retries=0))
        [(_, outcome)] = model.compare([VIEW])
    assert (outcome.verdict, outcome.raw) == ("first", "I got ***.\nResult: A")


@pytest.mark.parametrize("named", [KEY, f"{'x' * 20} {KEY}", KEY.upper()])
def test_the_name_of_an_encoding_shows_no_key_nor_a_part_of_it(monkeypatch, named):
    monkeypatch.setenv("OPENAI_API_KEY", named.split()[-1])
    with FakeServer(plan=every(1, Fault("body", body=b"", encoding=named))) as server:
        outcome = one(server)
    assert "a reply encoded as" in outcome.reason
    assert "sk-" not in outcome.reason.lower()


@pytest.mark.parametrize("status", [400, 500])
def test_an_error_page_spells_no_key_with_escapes(monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = f"<p>{escaped(KEY)} and {KEY}</p>".encode()
    with FakeServer(plan=every(1, Fault("status", status=status, body=body))) as server:
        assert one(server).reason == f"HTTP {status}: <p>*** and ***</p>"


def test_a_reply_too_deep_to_clear_is_a_failed_call(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    deep = b"[" * 900 + f'"{escaped(KEY)}"'.encode() + b"]" * 900
    with FakeServer(plan=every(1, Fault("body", body=deep))) as server:
        assert one(server).status == "failed"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_an_error_page_in_another_encoding_keeps_no_key(monkeypatch, encoding):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = f"not {KEY}".encode(encoding)
    with FakeServer(plan=every(1, Fault("status", status=400, body=body))) as server:
        assert one(server).reason == "HTTP 400: not ***"


@pytest.mark.parametrize("shown", ["az/ure+key==0123", "az%2Fure%2bkey%3D%3d0123", "az\\/ure%2Bkey=\\u003d0123"])
def test_a_key_in_an_address_is_hidden(monkeypatch, shown):
    monkeypatch.setenv("OPENAI_API_KEY", "az/ure+key==0123")
    with FakeServer(answer=lambda body: f"At http://host/?key={shown}&v=100%.\nResult: A") as server:
        assert one(server).raw == "At http://host/?key=***&v=100%.\nResult: A"


def test_the_logs_of_the_http_client_do_not_repeat_what_a_server_says(monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    turned_away = Fault("status", status=429, retry_after=KEY)
    with caplog.at_level(logging.DEBUG), FakeServer(plan=every(1, turned_away)) as server:
        assert one(server).status == "failed"
    assert KEY not in caplog.text


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=st.binary(max_size=40), after=st.binary(max_size=40))
def test_a_body_that_is_no_json_keeps_no_key_either(monkeypatch, before, after):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    wire = Wire("http://127.0.0.1:1", timeout_s=1, retries=0, key_variable="OPENAI_API_KEY")
    assert KEY.encode() not in wire._key.cleared(before + KEY.encode() + after)


ECHOES = {
    "in the text": chat_reply(f"You sent Bearer {KEY}.\nResult: A"),
    "in the refusal": chat_reply(None, refusal=f"{KEY} may not ask this"),
    "in the reason for the end": chat_reply("Result: A", finish_reason=KEY),
    "instead of a reply": {KEY: KEY},
    "as a wrong value": {"choices": [{"message": {"content": "Result: A"}, "finish_reason": [KEY]}]},
    "escaped": json.dumps(chat_reply(f"{KEY} Result: A")).replace(KEY, escaped(KEY)).encode(),
    "escaped, beside a byte that is no text": json.dumps(chat_reply(f"? {KEY} Result: A"))
    .replace(KEY, escaped(KEY))
    .encode()
    .replace(b"?", b"\xff"),
    "in no JSON": f"<html>{KEY}</html>".encode(),
}


@pytest.mark.parametrize("body", ECHOES.values(), ids=ECHOES)
def test_an_echoed_key_reaches_no_file_no_log_and_no_screen(tmp_path, monkeypatch, caplog, capfd, body):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    with caplog.at_level(logging.DEBUG), FakeServer(plan=every(1, Fault("body", body=body))) as server:
        arguments = ["run", "--model", f"chat:m@{server.url}", "--limit", "2", "--context", "none", "--retries", "0"]
        shown = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "run")])
    assert server.requests
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "records.jsonl" for path in kept)
    guilty = [path.name for path in kept if KEY.encode() in path.read_bytes()]
    out, err = capfd.readouterr()
    assert not guilty
    assert KEY not in shown.output + caplog.text + out + err + str(shown.exception)


MANY = "[" + "null," * 9999 + "null]"
FAULTY = {
    "chat": (OpenAI.body, '{"choices": %s}'),
    "chat, log-probabilities": (OpenAI.body, '{"choices": [{"message": {}, "logprobs": {"content": %s}}]}'),
    "anthropic": (DIALECTS["anthropic"].body, '{"content": %s}'),
    "gemini": (DIALECTS["gemini"].body, '{"candidates": %s}'),
    "gemini, parts": (DIALECTS["gemini"].body, '{"candidates": [{"content": {"parts": %s}}]}'),
    "http, entries": (http._Scores, '{"scores": [], "items": %s}'),
    "vllm": (vllm._Pooling, '{"data": [{"data": %s}]}'),
    "vllm, nested": (vllm._Pooling, '{"data": [{"data": [%s, 1.0]}, 1]}'),
    "vllm, models": (vllm._Models, '{"data": %s}'),
}


@pytest.mark.parametrize(("schema", "body"), FAULTY.values(), ids=FAULTY)
def test_a_reply_of_many_faults_is_refused_at_the_first(schema, body):
    with pytest.raises(ValidationError) as refused:
        schema.model_validate_json(body % MANY)
    assert refused.value.error_count() <= 2


def test_a_reply_of_millions_of_faults_is_the_fault_of_its_call(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = b'{"choices": [' + b"[]," * 300_000 + b"0]}"
    with FakeServer(plan=every(1, Fault("body", body=body))) as server:
        tracemalloc.start()
        outcome = one(server)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert "choices.0" in outcome.reason
    assert peak < 60 * 2**20  # each fault kept would be 200 MB and more


def test_a_stand_in_for_a_key_is_no_secret(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    with FakeServer(answer=lambda body: "The list is EMPTY.\nResult: A") as server:
        assert one(server).raw == "The list is EMPTY.\nResult: A"


def bomb(compress):
    return compress(b'{"choices": "' + b" " * (200 * 2**20) + b'"}')


@pytest.mark.parametrize(("compress", "encoding"), [(gzip.compress, "gzip"), (zlib.compress, "deflate")])
def test_a_reply_that_swells_is_read_no_further_than_the_bound(compress, encoding):
    body = bomb(compress)
    with FakeServer(plan=every(1, Fault("body", body=body, encoding=encoding))) as server:
        tracemalloc.start()
        outcome = one(server)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (outcome.status, outcome.reason) == ("failed", "HTTP 200: a reply of more than 8 MiB")
    assert peak < 5 * MAX_REPLY_BYTES


@pytest.mark.parametrize("body", [b" " * (50 * 2**20), json.dumps(chat_reply("x" * 50_000_000)).encode()])
def test_a_long_reply_is_a_failed_call(body):
    with FakeServer(plan=every(1, Fault("body", body=body))) as server:
        outcome = one(server)
    assert (outcome.status, outcome.raw, len(server.requests)) == ("failed", "", 1)


def test_a_text_that_nobody_asked_for_is_not_kept():
    with FakeServer(answer=lambda body: "x" * 1_000_000 + "\nResult: A") as server:
        outcome = one(server)
    assert outcome.status == "failed"
    assert "over the limit of 200,000" in outcome.reason
    assert outcome.raw == ""
    assert outcome.tokens_out == 10


@pytest.mark.parametrize("encoding", ["gzip", "br", "nonsense"])
def test_a_damaged_or_unknown_compression_is_a_failed_call(encoding):
    with FakeServer(plan=every(1, Fault("body", body=b"not compressed at all", encoding=encoding))) as server:
        assert one(server).status == "failed"


def test_a_compressed_reply_is_read():
    body = gzip.compress(json.dumps(chat_reply("Result: B")).encode())
    with FakeServer(plan=every(1, Fault("body", body=body, encoding="gzip"))) as server:
        assert one(server).verdict == "second"


@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
@pytest.mark.parametrize("digits", [12, 400, 5000])
def test_a_number_of_tokens_out_of_all_bounds_is_the_fault_of_that_call(field, digits):
    reply = json.dumps(chat_reply("Result: A")).replace(f'"{field}": 1', f'"{field}": ' + "9" * digits)
    with FakeServer(plan=where("Tea?", Fault("body", body=reply.encode()))) as server:
        found = dict(judge(server).compare([VIEW, PairView("Coffee?", "Black.", "White.")]))
    assert [found[0].status, found[1].status] == ["failed", "ok"]


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_a_score_out_of_all_bounds_is_the_fault_of_that_item(number):
    with FakeServer(score=lambda item: number if item["question"] == "Tea?" else 1.5) as server:
        rater = load_http(server.root, ModelOptions(retries=0))
        found = dict(rater.rate([AnswerView("Tea?", "Green."), AnswerView("Milk?", "Yes.")]))
    assert (found[0].status, found[1].score) == ("invalid", 1.5)
