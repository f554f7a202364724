"""Real but tiny checkpoints, built on the spot: nothing is downloaded, every seed is fixed."""

from pathlib import Path
from typing import Any

CORPUS = (
    "I keep a small garden and I like short answers with one clear step.",
    "Please show me the numbers first and then the reason behind them.",
    "Which tea should I drink in the evening when I cannot sleep well?",
    "A cup of chamomile is a gentle choice; green tea keeps most people awake.",
    "My knees hurt after running, so I walk to the lake every morning instead.",
    "How do I repair an old wooden chair without buying new tools?",
)

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Closes every turn with the end-of-sequence token, the last one too."""


def tokenizer(*, chat_template: str | None = CHAT_TEMPLATE, pad_token: str | None = None) -> Any:
    """Train a byte-level BPE tokenizer that adds a BOS of its own and, unless asked, has no pad token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(CORPUS, trainer)
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", core.token_to_id("<s>"))]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", pad_token=pad_token, model_max_length=512
    )
    fast.chat_template = chat_template
    return fast


def pair_tokenizer() -> Any:
    """Train a BERT-style tokenizer: `[CLS] a [SEP] b [SEP]` with token types."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    )
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, core.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=128,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def llama_config(vocabulary: int, **overrides: Any) -> Any:
    """Two layers of width 32, with weights large enough that different texts get clearly different scores."""
    from transformers import LlamaConfig

    settings = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.4,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": None,
    }
    return LlamaConfig(vocab_size=vocabulary, **(settings | overrides))


def save_reward_model(
    folder: Path,
    *,
    seed: int = 0,
    labels: int = 1,
    chat_template: str | None = CHAT_TEMPLATE,
    pad_token: str | None = None,
    **config: Any,
) -> Path:
    """Save a Llama-style sequence classifier; `config` overrides fields of its configuration."""
    import torch
    from transformers import LlamaForSequenceClassification

    words = tokenizer(chat_template=chat_template, pad_token=pad_token)
    torch.manual_seed(seed)
    model = LlamaForSequenceClassification(llama_config(len(words), num_labels=labels, **config))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def save_causal_model(folder: Path, *, seed: int, chat_template: str | None = CHAT_TEMPLATE, **config: Any) -> Path:
    """Save a Llama-style causal language model."""
    import torch
    from transformers import LlamaForCausalLM

    words = tokenizer(chat_template=chat_template)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(llama_config(len(words), **config))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def save_encoder(folder: Path, *, seed: int = 0, labels: int = 1) -> Path:
    """Save a BERT-style sequence classifier, which reads the turn and the answer as a text pair."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    words = pair_tokenizer()
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        initializer_range=0.4,
        num_labels=labels,
        pad_token_id=words.pad_token_id,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def write_gguf(file: Path) -> None:
    """A two-layer Llama with byte-level tokens in GGUF, weights chosen to be recognised."""
    import numpy as np
    from gguf import GGUFWriter
    from tokenizers.pre_tokenizers import ByteLevel

    tokens = [*sorted(ByteLevel.alphabet()), "<s>", "</s>", "he"]
    writer = GGUFWriter(str(file), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_merges(["h e"])
    writer.add_token_types([1] * (len(tokens) - 3) + [3, 3, 1])
    writer.add_bos_token_id(len(tokens) - 3)
    writer.add_eos_token_id(len(tokens) - 2)
    rows = np.repeat(np.arange(len(tokens), dtype=np.float32)[:, None], 32, axis=1)
    writer.add_tensor("token_embd.weight", rows)
    writer.add_tensor("output_norm.weight", np.ones(32, np.float32))
    writer.add_tensor("output.weight", rows)
    for name, shape in {"attn_q": (32, 32), "attn_k": (32, 32), "attn_v": (32, 32), "attn_output": (32, 32)}.items():
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float32))
    for name, shape in {"ffn_gate": (64, 32), "ffn_up": (64, 32), "ffn_down": (32, 64)}.items():
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float32))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
