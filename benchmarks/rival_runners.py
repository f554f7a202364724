"""Other programs that score the same prompts, each run by the Python of its own environment; see benchmarks/rivals.py.

Run: PYTHON benchmarks/rival_runners.py NAME WORK OUT [--threads N]

WORK is a JSON file of models and workloads, OUT receives seconds and scores of each workload. Imports nothing of
prbench: none of these environments has it. Each runner opens its model, scores two prompts outside the clock, and
then the workloads one after another, as its own documentation says to; what it keeps of a prompt is forgotten between
workloads, which have users in common. Scores are raw, before any sigmoid.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Work = dict[str, Any]
Score = Callable[[dict[str, Any]], list[float]]
REWARDBENCH_BATCH = 8
"""What `rewardbench` takes where no batch size is given."""


def official(work: Work) -> Score:
    """The benchmark's published protocol: whole prompts, one at a time, through transformers."""
    import torch
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(work["model"], dtype=torch.float32).eval()

    def score(workload: dict[str, Any]) -> list[float]:
        with torch.inference_mode():
            return [float(model(input_ids=torch.tensor([ids])).logits[0, 0]) for ids in workload["ids"]]

    return score


def rewardbench(work: Work) -> Score:
    """The pipeline of the package `rewardbench`, by its own loop: chosen and rejected texts in batches of eight."""
    import torch
    from rewardbench.models.pipeline import RewardBenchPipeline
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, BatchEncoding

    # The pipeline moves its input to "cuda", whatever there is; this is the only thing that keeps it off a processor.
    usual = BatchEncoding.to
    BatchEncoding.to = lambda self, device: usual(self, "cpu" if device == "cuda" else device)
    model = AutoModelForSequenceClassification.from_pretrained(work["model"], torch_dtype=torch.float32)
    pipeline = RewardBenchPipeline("text-classification", model, AutoTokenizer.from_pretrained(work["model"]))
    options = {"batch_size": REWARDBENCH_BATCH, "truncation": True, "padding": True, "max_length": 2048}

    def score(workload: dict[str, Any]) -> list[float]:
        texts = workload["texts"]
        found = [0.0] * len(texts)
        for start in range(0, len(texts), 2 * REWARDBENCH_BATCH):
            for side in (0, 1):
                places = range(start + side, min(start + 2 * REWARDBENCH_BATCH, len(texts)), 2)
                logits = pipeline([texts[place] for place in places], **options)
                for place, value in zip(places, logits[:, 0].float().tolist(), strict=True):
                    found[place] = value
        return found

    return score


def vllm(work: Work) -> Score:
    """The engine of vLLM for pooling models with prefix caching, all prompts handed over at once."""
    from vllm import LLM, PoolingParams
    from vllm.inputs import TokensPrompt

    model = LLM(
        model=work["model"], runner="pooling", dtype="float32", enforce_eager=True, enable_prefix_caching=True,
        max_model_len=4096, max_num_seqs=16,
    )  # fmt: skip
    plain = PoolingParams(task="classify", use_activation=False)

    def score(workload: dict[str, Any]) -> list[float]:
        model.reset_prefix_cache()
        prompts = [TokensPrompt(prompt_token_ids=ids) for ids in workload["ids"]]
        return [float(one.outputs.probs[0]) for one in model.classify(prompts, pooling_params=plain, use_tqdm=False)]

    return score


def llama_f32(work: Work) -> Score:
    """llama.cpp on the same weights in float32, keys and values too."""
    return _llama(work, work["gguf_f32"], exact=True)


def llama_q4(work: Work) -> Score:
    """llama.cpp on the file as shipped: weights in 4 bits, activations rounded to 8."""
    return _llama(work, work["gguf"], exact=False)


def _llama(work: Work, file: str, *, exact: bool) -> Score:
    """Prompt by prompt, each from where it parts from the one before: what llama.cpp's server does in a slot."""
    import llama_cpp

    kinds = {"type_k": llama_cpp.GGML_TYPE_F32, "type_v": llama_cpp.GGML_TYPE_F32} if exact else {}
    threads = work["threads"]
    model = llama_cpp.Llama(file, n_ctx=4096, n_threads=threads, n_threads_batch=threads, verbose=False, **kinds)
    before: list[int] = []

    def score(workload: dict[str, Any]) -> list[float]:
        found = []
        before.clear()
        for ids in workload["ids"]:
            shared = min(_shared(before, ids), len(ids) - 1)
            model.n_tokens = shared
            model.eval(ids[shared:])
            before[:] = ids
            logits = llama_cpp.llama_get_logits_ith(model.ctx, -1)
            found.append(float(logits[work["plus"]] - logits[work["minus"]]))
        return found

    return score


def _shared(left: Sequence[int], right: Sequence[int]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(left), len(right)))


def sentence_encode(work: Work) -> Score:
    """sentence-transformers' `encode`; the scores are the numbers of the vectors, one after another."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(work["encoder"], device="cpu")

    def score(workload: dict[str, Any]) -> list[float]:
        vectors = model.encode(workload["texts"], normalize_embeddings=True, show_progress_bar=False)
        return [float(value) for value in vectors.ravel()]

    return score


def sentence_predict(work: Work) -> Score:
    """sentence-transformers' `CrossEncoder.predict`."""
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(work["cross_encoder"], device="cpu")

    def score(workload: dict[str, Any]) -> list[float]:
        texts = [tuple(pair) for pair in workload["pairs"]]
        found = model.predict(texts, activation_fn=torch.nn.Identity(), show_progress_bar=False)
        return [float(value) for value in found]

    return score


RUNNERS = {
    run.__name__: run for run in (official, rewardbench, vllm, llama_f32, llama_q4, sentence_encode, sentence_predict)
}


def main() -> None:
    """Score the workloads and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=RUNNERS)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    work = json.loads(given.work.read_text())
    os.environ["OMP_NUM_THREADS"] = str(work["threads"])
    clock = time.process_time if work["processor_time"] else time.perf_counter
    start = clock()
    score = RUNNERS[given.name](work)
    score(work["first"])
    found: dict[str, Any] = {"": {"opened_s": clock() - start}}
    for name, workload in work["workloads"].items():
        start = clock()
        scores = score(workload)
        found[name] = {"seconds": clock() - start, "scores": scores}
        given.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
