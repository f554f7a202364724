"""What goes into a page comes out of it: columns, texts, in blocks that no text can end."""

import base64
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.report import payload
from prbench.report.page.pools import Pools, written_size
from prbench.report.payload import BlockWriter, TextPool, floats, index_html, read_block, smallest
from prbench.types import Post

columns = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.one_of(
        st.lists(st.integers(0, 2**32 - 1), max_size=20).map(smallest),
        st.lists(st.floats(width=32, allow_nan=False) | st.none(), max_size=20).map(floats),
        st.lists(st.text(), max_size=5),
    ),
    max_size=6,
)


@settings(deadline=None)
@given(columns)
def test_a_block_gives_back_what_was_put_in(parts):
    writer = BlockWriter("b")
    for name, value in parts.items():
        writer.array(name, value) if isinstance(value, np.ndarray) else writer.json(name, value)
    block = writer.pack()
    found = read_block(block)
    assert list(found) == list(parts)
    for name, value in parts.items():
        if isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype
            np.testing.assert_array_equal(found[name], value)
            assert block.parts[name][1] % 8 == 0  # or a typed array could not be laid over it
        else:
            assert found[name] == value


def test_equal_parts_are_stored_once_and_the_same_parts_give_the_same_bytes():
    def block(names):
        writer = BlockWriter("b")
        for name in names:
            writer.array(name, np.arange(5000, dtype=np.uint32))
        return writer.pack()

    one, three = block("a"), block("abc")
    assert len(three.packed) == len(one.packed)
    assert three.packed == block("abc").packed


def test_a_type_that_pages_do_not_know_is_refused():
    with pytest.raises(TypeError, match="float64"):
        BlockWriter("b").array("x", np.zeros(2))
    writer = BlockWriter("b")
    writer.json("x", 1)
    with pytest.raises(ValueError, match="already"):
        writer.json("x", 2)


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=40))
def test_a_pool_keeps_each_text_once(texts):
    pool = TextPool("t")
    numbers = [pool.add(text) for text in texts]
    stored = [text for block in pool.blocks() for text in read_block(block)["texts"]]
    assert [stored[number] for number in numbers] == texts
    assert len(stored) == len({"", *texts})


def test_a_pool_is_cut_into_blocks_named_by_their_first_text(monkeypatch):
    monkeypatch.setattr(payload, "CHUNK_CHARACTERS", 10)
    pool = TextPool("t")
    for number in range(7):
        pool.add(f"text {number}")
    blocks = pool.blocks()
    assert [block.id for block in blocks] == ["t-0", "t-3", "t-5", "t-7"]
    assert read_block(blocks[1])["texts"] == ["text 2", "text 3"]


@settings(deadline=None)
@given(st.text())
def test_no_text_can_end_the_element_it_lies_in(text):
    html = str(index_html({"models": [text]}))
    inner = re.fullmatch(r'<script type="application/json" id="index">(.*)</script>\n', html, re.DOTALL)[1]
    assert "<" not in inner
    assert json.loads(inner) == {"models": [text]}
    writer = BlockWriter("b")
    writer.json("t", text)
    inner = re.fullmatch(r"<script[^>]*>(.*)</script>\n", str(writer.pack().to_html()), re.DOTALL)[1]
    assert "<" not in inner
    base64.b64decode(inner, validate=True)


def test_what_takes_most_room_is_cut_until_all_fits():
    rng = np.random.default_rng(0)

    def prose(words):
        return " ".join(str(n) for n in rng.integers(0, 10**9, words))

    pools = Pools()
    pools.profile((Post(id="p", text=prose(2000)),))
    pools.reply([prose(300)])
    whole = pools.fit(10**9)
    assert whole.notes == ()
    room = written_size(whole.blocks) - 4000
    fitted = pools.fit(room)
    assert written_size(fitted.blocks) <= room
    assert [note.split(" are ")[0] for note in fitted.notes] == ["Posts"]
    assert fitted.blocks["words"][0].packed == whole.blocks["words"][0].packed
    assert read_block(fitted.blocks["posts"][0])["texts"][1].endswith("…")
    assert [note.split(" are ")[0] for note in pools.fit(0).notes] == ["Posts", "Judges' words"]
