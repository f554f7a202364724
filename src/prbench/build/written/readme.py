"""The data card for people: `README.md` with the header that the hub and `datasets` read."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prbench.build.written.publish import PairsCard

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def readme(card: "PairsCard", files: Mapping[str, str]) -> str:
    """The text of the card.

    Args:
        card: Card of the build.
        files: Split → Parquet file.
    """
    parts = [_header(card, files), f"# {card.title}", _what(card), _fields(), _made(card), _mirrored(card)]
    return "\n\n".join([*parts, _gates(card), _use(card)]) + "\n"


def _header(card: "PairsCard", files: Mapping[str, str]) -> str:
    size = next((name for most, name in _SIZES if card.pairs < most), "n>1M")
    lines = [
        "---",
        f"pretty_name: {json.dumps(card.title, ensure_ascii=False)}",
        f"license: {json.dumps(card.license)}",
        "tags:\n- preference\n- personalization\n- reward-model",
        f"size_categories:\n- {size}",
        "configs:\n- config_name: default\n  data_files:",
    ]
    lines += [f"  - split: {split}\n    path: {path}" for split, path in files.items()]
    return "\n".join([*lines, "---"])


def _what(card: "PairsCard") -> str:
    splits = ", ".join(f"{split} {count:,}" for split, count in card.splits.items())
    return (
        f"{card.pairs:,} pairs of {card.users:,} users ({splits}). Each pair has one question of one user, the user's "
        "earlier posts, and two answers: `chosen` follows what this user expects, `rejected` does not. A reward model "
        "that knows the user prefers `chosen`.\n\n"
        f"Fingerprint: `{card.fingerprint}`"
    )


def _fields() -> str:
    return (
        "## Fields\n\n"
        "`id`, `user`, `question`, `profile` (list of `id`, `category`, `text`), `rubric_aspects` (list of `aspect`, "
        "`evidence`, `reason`), `narrative`, `category`, `chosen`, `rejected`, `tags` (JSON text).\n\n"
        "`rubric_aspects` and `narrative` are the scoring standard: never show them to a model that is evaluated."
    )


def _made(card: "PairsCard") -> str:
    writer = card.writer
    prompts = dict(writer.prompts) | (dict(card.aspects.writer.prompts) if card.aspects else {})
    lines = [
        "## How it was made",
        f"Both answers of a pair were written by `{writer.address}` from the same question and the same posts, "
        f"in at most {card.options['words']} words; only the instruction about the aspects differs.",
    ]
    if card.aspects:
        source = card.aspects
        lines.append(
            f"The aspects were read from the users' own narratives by `{source.writer.address}`, each with a "
            f"quotation: {source.kept:,} of {source.questions:,} questions of {source.users:,} users "
            f"({source.given:,} came with aspects)."
        )
    hashes = "\n".join(f"| `{name}` | `{value}` |" for name, value in sorted(prompts.items()))
    return "\n\n".join([*lines, f"| prompt | SHA-256 |\n|---|---|\n{hashes}"])


def _mirrored(card: "PairsCard") -> str:
    if not card.mirrored_pairs:
        return (
            "## Mirrored pairs\n\nNone: a rater that ignores the user need not score 50 % here. Audit the suite before "
            "reading anything into a score."
        )
    sources = {"user": "another user asked nearly the same", "written": "imagined by the writer"}
    told = ", ".join(f"{count:,} ({sources[name]})" for name, count in card.mirrored.items())
    return (
        "## Mirrored pairs\n\n"
        f"{card.mirrored_share:.0%} of the pairs ({card.mirrored_pairs:,}) are halves of a couple: "
        "the same question and answers with the opposite label for a user who wants the opposite. On them, a model "
        f"that ignores the user scores exactly 50 %. Other halves: {told}."
    )


def _gates(card: "PairsCard") -> str:
    rows = "\n".join(
        f"| {count.gate} | {count.rule} | {count.checked:,} | {count.rejected:,} | {count.unmeasured:,} | "
        f"{count.with_half:,} | {count.passed:,} |"
        for count in card.gates
    )
    written = sum(card.rejected.get("answers", {}).values())
    parts = [
        "## Gates",
        f"{card.questions:,} questions were read; for {written:,} of them no two answers could be written.",
        "| gate | passes | checked | rejected | unmeasured | with its half | passed |\n"
        f"|---|---|---|---|---|---|---|\n{rows}",
    ]
    if card.gates_left_out:
        parts.append(f"Not looked at: {', '.join(card.gates_left_out)}.")
    return "\n\n".join([*parts, "Every reject stands in `rejects.jsonl` with its reason."])


def _use(card: "PairsCard") -> str:
    return (
        "## Use\n\n```\nprbench audit .\nprbench run --suite . --model hf:my-org/my-reward-model\n```\n"
        f"or `datasets.load_dataset(FOLDER)`. Built with prbench {card.version}."
    )
