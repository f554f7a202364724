"""Settings of the workers that answer calls: this process, worker processes, or a Ray cluster.

Changes no answer and no key.
"""

import os
from typing import Literal

from prbench.calls.ask import Asker, InProcess
from prbench.config import ModelOptions
from prbench.errors import ConfigError, MissingExtraError, did_you_mean
from prbench.models import Jury, Model, Replay, Sized, is_hosted
from prbench.models.local.precision import COPIED_BYTES
from prbench.types import Frozen

EngineName = Literal["local", "ray"]
AUTO = "auto"
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class Workers(Frozen):
    """Number and place of the copies of a model that answer calls."""

    engine: EngineName = "local"
    count: int | None = 1
    """Number of workers that hold a copy of the model; None for as many as cores and memory allow."""

    @classmethod
    def of(cls, engine: str = "local", workers: int | str | None = None) -> "Workers":
        """Read what a user typed; without a number there is one worker, and on Ray as many as fit.

        Example:
            >>> Workers.of(workers="4").count, Workers.of().count, Workers.of("ray").count
            (4, 1, None)
        """
        if engine not in ("local", "ray"):
            raise ConfigError(f"unknown engine {engine!r}", hint=did_you_mean(engine, ["local", "ray"]))
        if workers is None:
            return cls(engine=engine, count=1 if engine == "local" else None)
        if workers == AUTO:
            return cls(engine=engine, count=None)
        number = int(workers) if str(workers).isdecimal() else 0
        if number < 1:
            raise ConfigError(f"workers is {workers!r}", hint="a number from 1 on, or 'auto'")
        return cls(engine=engine, count=number)


def open_asker(workers: Workers, model: Model, address: str | None, options: ModelOptions) -> Asker:
    """Make what will ask the model; starts nothing yet.

    Args:
        workers: Settings of the user.
        model: The model as it is open here.
        address: By which workers can open it as well; None where it was handed over as an object.
        options: With which it was opened.
    """
    if workers.engine == "local" and workers.count == 1:
        return InProcess(model)
    address = _shareable(model, address)
    from prbench.calls.worker import ModelOrigin

    if workers.engine == "ray":
        return _on_ray(workers, model, address, options)
    count = workers.count or most_workers(cores(), _memory_bytes(), weight_bytes(model, options))
    if count == 1:
        return InProcess(model)
    from prbench.calls.processes import WorkerProcesses

    return WorkerProcesses(ModelOrigin.here(model, address, options, threads=max(1, cores() // count)), count)


def most_workers(cores: int, memory_bytes: int | None, weight_bytes: int | None) -> int:
    """One worker per core, as long as their weights take no more than half of the memory.

    Example:
        >>> most_workers(8, memory_bytes=16 << 30, weight_bytes=2 << 30), most_workers(8, None, None)
        (4, 8)
    """
    if not memory_bytes or not weight_bytes:
        return cores
    return max(1, min(cores, memory_bytes // 2 // weight_bytes))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def weight_bytes(model: Model, options: ModelOptions) -> int | None:
    """Memory of a model's weights, where it can say so without loading them; small ones are kept twice."""
    if not isinstance(model, Sized):
        return None
    size = model.parameter_count() * _BYTES[options.dtype]
    return 2 * size if size <= COPIED_BYTES else size


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _on_ray(workers: Workers, model: Model, address: str, options: ModelOptions) -> Asker:
    try:
        from prbench.calls.ray_data import RayData
    except ImportError as error:
        raise MissingExtraError("--engine ray", "scale") from error
    from prbench.calls.worker import ModelOrigin

    return RayData(ModelOrigin.here(model, address, options, threads=1), workers.count, weight_bytes(model, options))


def _shareable(model: Model, address: str | None) -> str:
    if isinstance(model, Replay):
        raise ConfigError(f"{model.card.address}: nothing is asked, so there is nothing to share out")
    if address is None:
        raise ConfigError(
            f"{model.card.address}: a model given as a Python object cannot be sent to other processes",
            hint="give it by address, for example 'py:my_module:score', or leave out workers and engine",
        )
    asked = [juror.card.address for juror in model.jurors] if isinstance(model, Jury) else [address]
    if hosted := next(filter(is_hosted, asked), None):
        raise ConfigError(
            f"{hosted} answers elsewhere: more processes here would not make it faster",
            hint="--concurrency sets how many requests are under way at once",
        )
    return address
