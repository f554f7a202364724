"""From a GGUF file to a folder that transformers opens in a fraction of a second.

The weights are dequantised to float32, which holds every value of the file exactly; what scores is what was shipped.
"""

import contextlib
import io
from pathlib import Path
from typing import Any

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
