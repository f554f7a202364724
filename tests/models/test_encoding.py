"""Tokens of a prompt are counted line by line, each line once, and come to what the tokenizer itself counts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny_models
from prbench.models.local.encoding import LineCounts, PromptEncoder, line_border
from prbench.types import Message, Prompt

pytest.importorskip("transformers")

LINES = st.lists(st.text(alphabet="ab1 .,-'\t\r\u00e9\u4e00<>", max_size=12), max_size=8)


@pytest.fixture(scope="module")
def encoder() -> PromptEncoder:
    return PromptEncoder(tiny_models.tokenizer(), "lm:tiny")


@settings(max_examples=200, deadline=None)
@given(lines=LINES, gaps=st.lists(st.sampled_from(["\n", "\n\n", " \n", "\n ", "\r\n"]), min_size=8, max_size=8))
def test_a_prompt_is_as_long_as_its_tokens(encoder, lines, gaps):
    text = "".join(line + gap for line, gap in zip(lines, gaps, strict=False)) + "end"
    prompt = Prompt((Message("user", text),))
    assert encoder.length(prompt) == len(encoder.encode(prompt).ids)


def test_each_line_is_counted_once(encoder):
    core = tiny_models.tokenizer().backend_tokenizer
    counted: list[str] = []

    class Counting:
        def encode(self, text, add_special_tokens):
            counted.append(text)
            return core.encode(text, add_special_tokens=add_special_tokens)

    lines = LineCounts(Counting(), line_border(core))
    posts = [f"post number {number} has its words" for number in range(40)]
    for start in range(30):
        assert lines.count("\n".join(posts[start : start + 10])) is not None
    whole = [text for text in counted if text.count("post") > 1]
    apart = [text for text in counted if text.count("post") == 1]
    assert len(whole) == 30  # those that are also counted whole
    assert len(apart) <= 2 * len(posts)  # at the beginning of a text, and after a line break


def test_a_tokenizer_that_joins_lines_is_asked_for_whole_texts():
    from tokenizers import Tokenizer, models, normalizers

    core = Tokenizer(models.BPE())
    assert line_border(core) is None
    core.normalizer = normalizers.NFC()
    assert line_border(core) is None


def test_lines_that_do_not_add_up_are_given_up():
    class Joining:
        """Counts one token for each text, however long."""

        def encode(self, text, add_special_tokens):
            return [0]

    lines = LineCounts(Joining(), line_border(tiny_models.tokenizer().backend_tokenizer))
    assert lines.count("a\nb") is None
    assert lines.count("a") is None
