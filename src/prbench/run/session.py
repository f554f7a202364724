"""One evaluation from configuration to result: resolve, look before spending, execute, conclude.

With a folder every record is kept and the same call continues where it stopped; without one everything stays in memory.
"""

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from prbench.config import RunConfig, digest
from prbench.contexts import ContextBuilder, stances
from prbench.data import Suite, load_pairs
from prbench.errors import ConfigError, ContextError
from prbench.models import BASELINES, Generator, Model, Rater, load_model
from prbench.run.calls import CallCache
from prbench.run.credits import PairRow
from prbench.run.engine import Engine, Listener
from prbench.run.replay import Replay, replay_records
from prbench.run.result import BaselineScore, RunFacts, compute_result
from prbench.run.store import RecordWriter, RunFolder
from prbench.run.work import Slot, Work, orders_of, plan_work
from prbench.types import Context, Order, Pair, Record

Json = dict[str, Any]


class Evaluation(NamedTuple):
    """What an evaluation leaves behind."""

    result: Json
    """`{"result": …, "baselines": …}`, as in `result.json`."""
    records: tuple[Record, ...]
    folder: Path | None


class Session:
    """A run that is resolved and ready: suite, model and contexts are known to fit together.

    Args:
        config: What to run.
        model: A model in place of the configuration's address.
        suite: Pairs in place of the configuration's suite.
    """

    def __init__(self, config: RunConfig, *, model: Model | None = None, suite: Suite | None = None) -> None:
        self.config = config
        self.everything = suite if suite is not None else _load(config)
        self.pairs = _selected(self.everything, config)
        self.model = model if model is not None else load_model(config.model, config.options)
        self.contexts, self.unsupported = _split_contexts(config, self.model)
        self.orders = self._orders()
        self._plans: dict[str, tuple[str, ...]] = {}

    @property
    def identity(self) -> Json:
        """Everything that can change an answer."""
        card = self.model.card.model_dump(mode="json", include={"address", "revision", "parameters"})
        return {**self.config.identity(), "card": card, "fingerprint": self.pairs.record.fingerprint}

    def default_folder(self) -> Path:
        """`runs/<suite>-<model>-<8 hex of the resolved configuration>`."""
        names = (self.config.suite, self.model.card.address)
        suite, model = (re.sub(r"[^A-Za-z0-9.]+", "_", Path(name).name).strip("_.")[:40] or "run" for name in names)
        return Path("runs") / f"{suite}-{model}-{digest(self.identity)[:8]}"

    def work(self, done: Mapping[Slot, Record] | None = None) -> Work:
        """What is still to be asked."""
        builder = ContextBuilder(
            self.everything, self.model, seed=self.config.seed, plans=self._plans
        )
        return plan_work(
            self.pairs,
            self.model,
            self.contexts,
            builder,
            both_orders=self.config.orders == "both",
            repeats=self.config.repeats,
            done=done,
            allow_unfit=self.config.allow_unfit,
        )
