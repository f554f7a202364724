"""Adapters over adapters: what is opened is exactly what was trained."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

import tiny_models  # noqa: E402
from prbench.config import ModelOptions  # noqa: E402
from prbench.models.local.adapter import AdaptedCheckpoint  # noqa: E402
from prbench.models.local.language_model import open_named  # noqa: E402


def weights_of(name: Path):
    """A copy of its own: the weights that models share must not be adapted."""
    from transformers import AutoModelForCausalLM

    return open_named(str(name), f"lm:{name}").load_weights(AutoModelForCausalLM, ModelOptions(device="cpu"))


def adapt(base: Path, folder: Path, seed: int, window: int | None = None) -> Path:
    """An adapter with random weights, saved as a training saves it."""
    torch.manual_seed(seed)
    config = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    peft.get_peft_model(weights_of(base), config).save_pretrained(folder)
    record = {"base": f"lm:{base}", "revision": open_named(str(base), f"lm:{base}").revision, "window": window}
    (folder / "adapter_base.json").write_text(json.dumps(record))
    return folder


def logits(model):
    with torch.inference_mode():
        return model(input_ids=torch.arange(5, 15)[None]).logits


def test_an_adapter_on_an_adapted_base_keeps_both(tmp_path):
    base = tiny_models.save_causal_model(tmp_path / "base", seed=0)
    one = adapt(base, tmp_path / "one", seed=1)
    two = adapt(one, tmp_path / "two", seed=2)
    expected, inner_lost = (
        logits(peft.PeftModel.from_pretrained(weights_of(start), str(two)).merge_and_unload().eval())
        for start in (one, base)
    )
    torch.testing.assert_close(logits(weights_of(two)), expected)
    assert not torch.allclose(expected, inner_lost, atol=0.1)


@pytest.mark.parametrize(("trained_with", "reads"), [(64, 64), (10**6, None), (None, None)])
def test_an_adapted_model_reads_no_more_than_its_base(tmp_path, trained_with, reads):
    base = tiny_models.save_causal_model(tmp_path / "base", seed=0)
    out = adapt(base, tmp_path / "one", seed=1, window=trained_with)
    opened = open_named(str(out), f"lm:{out}")
    assert isinstance(opened, AdaptedCheckpoint)
    assert opened.positions == (reads or open_named(str(base), f"lm:{base}").positions)
