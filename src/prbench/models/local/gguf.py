"""Conversion of a GGUF file to a folder that transformers opens in a fraction of a second.

The weights are dequantised to float32, which holds every value of the file exactly; what scores is what was shipped.
A damaged or hostile header can claim any number of entries of any length, so every claim in it is first held against
the size of the file: one that is cut off, or whose tensors would lie beyond its end, is refused with its name.
"""

import contextlib
import io
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from prbench.errors import ModelError, PrbenchError
from prbench.files import damaged, disk_errors
from prbench.models.local.checkpoint import quiet, translated


def convert(file: Path, folder: Path) -> None:
    """Read model and tokenizer from `file`, and save both to `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    hidden = contextlib.redirect_stderr(io.StringIO())  # a progress bar that `quiet` does not reach
    with translated(str(file)), quiet(), hidden:
        tokenizer = AutoTokenizer.from_pretrained(**place)
        model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
        _unquantised(model).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _unquantised(model: Any) -> Any:
    """The same weights in a model that does not know of its file: one that does cannot be saved."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = {key: value for key, value in model.config.to_dict().items() if key != "quantization_config"}
    fresh = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings), dtype=torch.float32)
    fresh.load_state_dict(model.state_dict())
    fresh.generation_config = model.generation_config
    return fresh


_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of each plain type of value."""
_STRING, _ARRAY = 8, 9
_DEEPEST = 4
"""Arrays in arrays; the format allows them, and no model has any."""
_MOST_DIMENSIONS = 4
_HINT = "download the file again, or convert the model anew"


class _Header:
    """Reads values one after another, and refuses to read past the end."""

    def __init__(self, stream: IO[bytes], size: int, path: Path) -> None:
        self._stream, self._size, self._path = stream, size, path
        self.alignment = 32

    def wrong(self, reason: str) -> PrbenchError:
        return damaged(self._path, reason, raises=ModelError, hint=_HINT)

    def skip(self, count: int) -> None:
        place = self._stream.tell()
        if count > self._size - place:
            raise self.wrong(f"at byte {place:,} its header claims {count:,} bytes, and the file has {self._size:,}")
        self._stream.seek(count, 1)

    def number(self, kind: str) -> int:
        count = struct.calcsize(kind)
        data = self._stream.read(count)
        if len(data) < count:
            raise self.wrong("it ends within its header")
        (value,) = struct.unpack(f"<{kind}", data)
        return int(value)

    def text(self) -> bytes:
        count = self.number("Q")
        place = self._stream.tell()
        self.skip(count)
        self._stream.seek(place)
        return self._stream.read(count)

    def count(self, what: str, least_bytes: int) -> int:
        """A number of entries, each of which takes some bytes at least."""
        count = self.number("Q")
        if count * least_bytes > self._size:
            raise self.wrong(f"it claims {count:,} {what} and has {self._size:,} bytes")
        return count

    def value(self, kind: int, depth: int = 0) -> int | None:
        """Pass over a value; a whole number is returned."""
        if kind == _STRING:
            self.skip(self.number("Q"))
        elif kind == _ARRAY and depth < _DEEPEST:
            inner, count = self.number("I"), self.count("values", 1)
            if inner in _SIZES:
                self.skip(count * _SIZES[inner])
            else:
                for _ in range(count):
                    self.value(inner, depth + 1)
        elif kind in _SIZES:
            if kind == 4:
                return self.number("I")
            self.skip(_SIZES[kind])
        else:
            raise self.wrong(f"a value of kind {kind} is not known")
        return None

    def tensor_end(self, sizes: Mapping[Any, tuple[int, int]]) -> int:
        """Return the end of the next tensor's data, counted from the first tensor's start."""
        name, dimensions = self.text(), self.number("I")
        if dimensions > _MOST_DIMENSIONS:
            raise self.wrong(f"tensor {name[:80]!r} has {dimensions:,} dimensions")
        values = 1
        for _ in range(dimensions):
            values *= self.number("Q")
        kind, offset = self.number("I"), self.number("Q")
        if kind not in sizes:
            raise self.wrong(f"tensor {name[:80]!r} is of a kind, {kind}, that is not known")
        block, bytes_each = sizes[kind]
        return offset + values // block * bytes_each


def check_gguf(path: Path) -> None:
    """Refuse a file that is no GGUF file, or whose header does not fit its size."""
    from gguf.constants import GGML_QUANT_SIZES

    sizes = {int(kind): size for kind, size in GGML_QUANT_SIZES.items()}
    with disk_errors(path, "read", raises=ModelError), path.open("rb") as stream:
        size = path.stat().st_size
        header = _Header(stream, size, path)
        if stream.read(4) != _MAGIC:
            raise header.wrong("it does not begin with 'GGUF'")
        if (version := header.number("I")) not in _VERSIONS:
            raise header.wrong(f"version {version} of the format is not known")
        tensors, entries = header.count("tensors", 24), header.count("entries", 12)
        for _ in range(entries):
            key = header.text()
            found = header.value(header.number("I"))
            if key == b"general.alignment" and found:
                header.alignment = found
        end = max((header.tensor_end(sizes) for _ in range(tensors)), default=0)
        start = -(-stream.tell() // header.alignment) * header.alignment
        if start + end > size:
            raise header.wrong(f"its tensors end at byte {start + end:,}, and the file has {size:,}")
