"""Run the tasks for lm-evaluation-harness with a model that follows the posts; see test_harnesses.py."""

import json
import sys
from importlib.resources import files

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager


class Follower(LM):
    """Finds an answer the likelier, the more often the prompt has the colour that it names."""

    def loglikelihood(self, requests):
        found = []
        for request in requests:
            prompt, answer = request.args
            posts = prompt.rpartition("My question now:")[0].split()
            found.append((float(sum(posts.count(word) for word in ("red", "blue") if word in answer)), False))
        return found

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError

    def generate_until(self, requests):
        raise NotImplementedError


(suite,) = sys.argv[1:]
manager = TaskManager(include_path=str(files("prbench.harnesses") / "lm_eval"), metadata={"suite": suite})
found = simple_evaluate(model=Follower(), tasks=["prbench"], task_manager=manager, bootstrap_iters=0)
print(
    json.dumps(
        {
            name: {"acc": numbers["acc,none"], "n": found["n-samples"][name]["effective"]}
            for name, numbers in found["results"].items()
            if name != "prbench"
        }
    )
)
