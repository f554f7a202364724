"""Dialects of chat models: the request and the reply of each provider, and nothing of what is asked.

`OpenAI` is what OpenAI, vLLM, llama.cpp, Ollama, OpenRouter and others serve; `Anthropic` and `Gemini` are those
providers' own. Written from the public documentation of November 2026 and tried on scripted servers only.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from pydantic import BaseModel, Field

from prbench.types import Prompt

MOST_TOKENS = 10**9
"""Number of tokens that no call has: a server that reports more is not counting."""
Tokens = Field(default=0, ge=0, le=MOST_TOKENS)
Few: Any = Field(default=[], fail_fast=True)
"""A list that is refused at its first fault: a reply may hold millions of them, and each would be kept."""
Parameters = Mapping[str, Any]
"""`max_tokens`, `temperature`, `seed`, `stop`, `schema`, `logprobs`; a dialect says each in its own words."""


class Call(NamedTuple):
    """One request: a prompt and the parameters that go with it."""

    prompt: Prompt
    parameters: dict[str, Any]
    shared: int = 0
    """Characters at the beginning of the last turn that other calls share: the user's posts."""


class Said(NamedTuple):
    """Content of a reply."""

    text: str | None
    finish: str
    """Reason why the text ended: `stop`, `length` or `refused`."""
    thought: bool = False
    """Whether the model thought before it spoke, or instead."""
    tokens_in: int = 0
    tokens_out: int = 0
    """Tokens of the reply, with those of the thoughts."""
    tokens_thought: int = 0
    tokens_cached: int | None = None
    """Tokens of the prompt that the server had computed before; None where it does not say."""
    tokens_stored: int = 0
    """Tokens of the prompt that the server put into its cache, where it says so."""
    tokens: tuple[tuple[str, dict[str, float]], ...] = ()
    """Each token of the text, with the log-probabilities of its rivals, where they were asked for."""


class Dialect(Protocol):
    """One way to ask a chat model."""

    name: str
    key_variable: str
    host: str
    """The host to which the key belongs."""
    body: type[BaseModel]
    """The form of a reply."""
    abilities: frozenset[str]
    """Parameters that it has words for."""

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that send the key."""
        ...

    def path(self, model: str) -> str:
        """Return the path of requests for a model."""
        ...

    def request(self, model: str, call: Call) -> dict[str, Any]:
        """The body of a request."""
        ...

    def read(self, body: Any) -> Said:
        """Read the content of a reply."""
        ...


class _OpenAIMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _TopToken(BaseModel):
    token: str
    logprob: float


class _Token(_TopToken):
    top_logprobs: list[_TopToken] = Few


class _Logprobs(BaseModel):
    content: list[_Token] | None = Field(default=None, fail_fast=True)


class _OpenAIChoice(BaseModel):
    message: _OpenAIMessage
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _PromptDetails(BaseModel):
    cached_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)


class _CompletionDetails(BaseModel):
    reasoning_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)


class _OpenAIUsage(BaseModel):
    prompt_tokens: int = Tokens
    completion_tokens: int = Tokens
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _OpenAIBody(BaseModel):
    """Fields of a reply that are read; other fields may come and are ignored."""

    choices: list[_OpenAIChoice] = Field(min_length=1, fail_fast=True)
    usage: _OpenAIUsage | None = None


class OpenAI:
    """Dialect of OpenAI: POST {base}/chat/completions."""

    name = "chat"
    key_variable = "OPENAI_API_KEY"
    host = "api.openai.com"
    body: type[BaseModel] = _OpenAIBody
    abilities = frozenset({"max_tokens", "temperature", "seed", "stop", "schema", "logprobs"})

    def headers(self, key: str) -> dict[str, str]:
        """Send the key as a bearer token."""
        return {"Authorization": f"Bearer {key}"}

    def path(self, model: str) -> str:
        """One path for all models."""
        return "/chat/completions"

    def request(self, model: str, call: Call) -> dict[str, Any]:
        """Turns as they are, parameters beside them."""
        parameters = dict(call.parameters)
        schema, logprobs = parameters.pop("schema", None), parameters.pop("logprobs", False)
        if schema is not None:
            form = {"name": "verdict", "strict": True, "schema": schema}
            parameters["response_format"] = {"type": "json_schema", "json_schema": form}
        if logprobs:
            parameters |= {"logprobs": True, "top_logprobs": 10}
        return {"model": model, "messages": [turn._asdict() for turn in call.prompt.messages], **parameters}

    def read(self, body: _OpenAIBody) -> Said:
        """Read the first choice of a reply."""
        choice, used = body.choices[0], body.usage or _OpenAIUsage()
        message = choice.message
        thought_tokens = (used.completion_tokens_details and used.completion_tokens_details.reasoning_tokens) or 0
        tokens = choice.logprobs.content if choice.logprobs and choice.logprobs.content else []
        refused = bool(message.refusal) or choice.finish_reason == "content_filter"
        return Said(
            message.refusal or message.content if refused else message.content,
            "refused" if refused else "length" if choice.finish_reason == "length" else "stop",
            bool(message.reasoning_content or message.reasoning or thought_tokens),
            used.prompt_tokens,
            used.completion_tokens,
            thought_tokens,
            used.prompt_tokens_details.cached_tokens if used.prompt_tokens_details else None,
            tokens=tuple((one.token, {top.token: top.logprob for top in one.top_logprobs}) for one in tokens),
        )


class _AnthropicBlock(BaseModel):
    type: str
    text: str = ""


class _AnthropicUsage(BaseModel):
    input_tokens: int = Tokens
    output_tokens: int = Tokens
    cache_read_input_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    cache_creation_input_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)


class _AnthropicBody(BaseModel):
    content: list[_AnthropicBlock] = Field(fail_fast=True)
    stop_reason: str | None = None
    usage: _AnthropicUsage = _AnthropicUsage()


class Anthropic:
    """POST {base}/v1/messages; what calls share is marked for the provider's prompt cache."""

    name = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    host = "api.anthropic.com"
    body: type[BaseModel] = _AnthropicBody
    abilities = frozenset({"max_tokens", "temperature", "stop"})

    def headers(self, key: str) -> dict[str, str]:
        """The key in a header of its own, and the version of the interface."""
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def path(self, model: str) -> str:
        """One path for all models."""
        return "/v1/messages"

    def request(self, model: str, call: Call) -> dict[str, Any]:
        """The system turn apart, the other turns as they are."""
        known = {name: value for name, value in call.parameters.items() if name not in ("seed", "schema", "logprobs")}
        if stop := known.pop("stop", None):
            known["stop_sequences"] = stop
        turns = call.prompt.messages
        system = "\n\n".join(turn.content for turn in turns if turn.role == "system")
        said = [{"role": turn.role, "content": turn.content} for turn in turns if turn.role != "system"]
        if call.shared and said:
            text = said[-1]["content"]
            marked = {"type": "text", "text": text[: call.shared], "cache_control": {"type": "ephemeral"}}
            said[-1] = {**said[-1], "content": [marked, {"type": "text", "text": text[call.shared :]}]}  # type: ignore[dict-item]
        return {"model": model, "messages": said, **({"system": system} if system else {}), **known}

    def read(self, body: _AnthropicBody) -> Said:
        """All text blocks; the usage counts cached tokens apart from the others."""
        used = body.usage
        cached = used.cache_read_input_tokens
        finish = {"max_tokens": "length", "refusal": "refused"}.get(body.stop_reason or "", "stop")
        return Said(
            "".join(block.text for block in body.content if block.type == "text"),
            finish,
            any(block.type in ("thinking", "redacted_thinking") for block in body.content),
            used.input_tokens + (cached or 0) + (used.cache_creation_input_tokens or 0),
            used.output_tokens,
            tokens_cached=cached,
            tokens_stored=used.cache_creation_input_tokens or 0,
        )


class _GeminiPart(BaseModel):
    text: str = ""
    thought: bool = False


class _GeminiContent(BaseModel):
    parts: list[_GeminiPart] = Few


class _GeminiCandidate(BaseModel):
    content: _GeminiContent = _GeminiContent()
    finishReason: str | None = None  # noqa: N815  (the provider's name)


class _GeminiFeedback(BaseModel):
    blockReason: str | None = None  # noqa: N815


class _GeminiUsage(BaseModel):
    promptTokenCount: int = Tokens  # noqa: N815
    candidatesTokenCount: int = Tokens  # noqa: N815
    thoughtsTokenCount: int = Tokens  # noqa: N815
    cachedContentTokenCount: int | None = Field(default=None, ge=0, le=MOST_TOKENS)  # noqa: N815


class _GeminiBody(BaseModel):
    candidates: list[_GeminiCandidate] = Few
    promptFeedback: _GeminiFeedback | None = None  # noqa: N815
    usageMetadata: _GeminiUsage = _GeminiUsage()  # noqa: N815


_BLOCKED = frozenset({"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "RECITATION", "SPII"})


class Gemini:
    """POST {base}/v1beta/models/MODEL:generateContent; the provider caches shared beginnings by itself."""

    name = "gemini"
    key_variable = "GEMINI_API_KEY"
    host = "generativelanguage.googleapis.com"
    body: type[BaseModel] = _GeminiBody
    abilities = frozenset({"max_tokens", "temperature", "seed", "stop", "schema"})

    def headers(self, key: str) -> dict[str, str]:
        """The key in a header of its own; never in the address, which is written into records."""
        return {"x-goog-api-key": key}

    def path(self, model: str) -> str:
        """A path for each model."""
        return f"/v1beta/models/{quote(model, safe='')}:generateContent"

    def request(self, model: str, call: Call) -> dict[str, Any]:
        """Turns as contents of parts, parameters in a place of their own."""
        names = {"max_tokens": "maxOutputTokens", "temperature": "temperature", "seed": "seed", "stop": "stopSequences"}
        known = {names[name]: value for name, value in call.parameters.items() if name in names}
        extra = {name: value for name, value in call.parameters.items() if name not in (*names, "schema", "logprobs")}
        if (schema := call.parameters.get("schema")) is not None:
            known |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
        turns = call.prompt.messages
        contents = [
            {"role": "model" if turn.role == "assistant" else "user", "parts": [{"text": turn.content}]}
            for turn in turns
            if turn.role != "system"
        ]
        system = [{"text": turn.content} for turn in turns if turn.role == "system"]
        told = {"systemInstruction": {"parts": system}} if system else {}
        return {"contents": contents, **told, "generationConfig": known, **extra}

    def read(self, body: _GeminiBody) -> Said:
        """The first candidate; without one, the provider has refused the prompt."""
        used = body.usageMetadata
        reason = body.candidates[0].finishReason if body.candidates else None
        parts = body.candidates[0].content.parts if body.candidates else []
        refused = reason in _BLOCKED or not body.candidates
        return Said(
            "".join(part.text for part in parts if not part.thought),
            "refused" if refused else "length" if reason == "MAX_TOKENS" else "stop",
            bool(used.thoughtsTokenCount or any(part.thought for part in parts)),
            used.promptTokenCount,
            used.candidatesTokenCount + used.thoughtsTokenCount,
            used.thoughtsTokenCount,
            used.cachedContentTokenCount,
        )


DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (OpenAI(), Anthropic(), Gemini())}
