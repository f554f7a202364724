"""Run the Inspect task with a judge that follows the posts, and print what Inspect found; see test_harnesses.py."""

import json
import re
import sys

from inspect_ai import eval
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, get_model, modelapi

COLOURS = ("red", "blue")


class Follower(ModelAPI):
    """Counts the colours in posts and answers; has no words on chess."""

    async def generate(self, input, tools, tool_choice, config):
        text = input[-1].text
        posts = " ".join(re.findall(r"<<< POST \d+\n(.*?)\nPOST", text, re.DOTALL)).split()
        first, second = (re.search(f"<<< ANSWER {name}\n(.*?)\nANSWER", text, re.DOTALL)[1] for name in "AB")
        one, two = (sum(posts.count(word) for word in COLOURS if word in answer) for answer in (first, second))
        verdict = "A" if one > two else "B" if one < two else "tie"
        words = "I cannot say." if "chess" in text else f"Counted.\nResult: {verdict}"
        return ModelOutput.from_content("follower", words)

    async def count_tokens(self, input, config=None):
        return len(str(input)) // 4


@modelapi("follower")
def follower():
    """The judge, by name."""
    return Follower


suite, context = sys.argv[1:]
(log,) = eval(
    "prbench/personal",
    model=get_model("follower/one", config=GenerateConfig()),
    task_args={"suite": suite, "context": context},
    display="none",
    log_dir="logs",
)
(score,) = log.results.scores if log.results else [None]
print(log.error.message if log.error else "", file=sys.stderr)
print(
    json.dumps(
        {
            "status": log.status,
            "samples": len(log.samples),
            "unscored": score.unscored_samples,
            "accuracy": score.metrics["accuracy"].value,
        }
    )
)
