"""Loop that all trainings share: epochs, early stopping on validation, checkpoints.

After each epoch everything that the next one depends on is kept in `checkpoint.pt`, so that an interrupted training
continues with the same command and ends with the same weights. The best epoch's weights become the model.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from prbench.errors import ModelError
from prbench.train import checkpoint


class Epoch(NamedTuple):
    """Figures of an epoch."""

    number: int
    loss: float
    validation_accuracy: float
    validation_loss: float
    best: bool

    def kept(self) -> dict[str, float]:
        """Return what a model's record says of the epoch whose weights it has.

        Example:
            >>> Epoch(3, 0.5, 0.7, 0.6, True).kept()
            {'accuracy': 0.7, 'loss': 0.6, 'epoch': 3}
        """
        return {"accuracy": self.validation_accuracy, "loss": self.validation_loss, "epoch": self.number}


Listener = Callable[[Epoch], None]


class HeldOutScore(NamedTuple):
    """A method on held-out pairs: whole profiles, labelled pairs only where there is no profile; ties count ½."""

    accuracy: float
    loss: float


class LoopConfig(Protocol):
    """Options of a training that a loop needs."""

    @property
    def method(self) -> str:
        """Name of the method, for messages."""
        ...

    @property
    def epochs(self) -> int:
        """Largest number of epochs."""
        ...

    @property
    def patience(self) -> int:
        """Epochs without a better validation after which training stops."""
        ...

    @property
    def learning_rate(self) -> float:
        """Learning rate of AdamW."""
        ...

    @property
    def weight_decay(self) -> float:
        """Weight decay of AdamW."""
        ...

    @property
    def seed(self) -> int:
        """Seed of the order of examples, of what is shown, of dropout."""
        ...


ModuleT = TypeVar("ModuleT", bound=nn.Module)


class Loop(ABC, Generic[ModuleT]):
    """Base of a training.

    Subclasses say what a step's loss is, how validation is measured and what makes it another one.

    Args:
        options: Settings of the training.
        method: Module that is trained.
        folder: Where checkpoint and model are kept.
    """

    def __init__(self, options: LoopConfig, method: ModuleT, folder: Path) -> None:
        self.method = method
        self._loop = options
        self._folder = folder
        self._optimizer = torch.optim.AdamW(
            method.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
        )
        self._random = torch.Generator().manual_seed(options.seed)
        self._best: dict[str, Tensor] = {}
        self.best = Epoch(0, float("nan"), -1.0, float("inf"), best=True)
        self._dropout_state: Tensor = torch.get_rng_state()
        self.epoch = 0
        self.steps = 0

    @property
    @abstractmethod
    def _identity(self) -> str:
        """A hash over everything that the weights depend on."""

    @abstractmethod
    def _losses(self) -> Iterator[Tensor]:
        """The loss of each step of an epoch; random numbers come from `_random`."""

    @abstractmethod
    def _measure(self) -> HeldOutScore:
        """Accuracy and loss on validation."""

    def run(self, listener: Listener | None = None) -> ModuleT:
        """Train until nothing gets better; continues where a checkpoint of the same training left off."""
        with checkpoint.alone(self._folder):
            self._resume()
            with torch.random.fork_rng(devices=[]):
                self._run(listener)
        self.method.load_state_dict(self._best)
        self.method.eval()
        return self.method

    def _run(self, listener: Listener | None) -> None:
        if self.epoch == 0:
            torch.manual_seed(self._loop.seed)
        else:
            torch.set_rng_state(self._dropout_state)
        while self.epoch < self._loop.epochs and self.epoch - self.best.number < self._loop.patience:
            epoch = self._one_epoch()
            self._dropout_state = torch.get_rng_state()
            self._keep()
            if listener is not None:
                listener(epoch)

    def _one_epoch(self) -> Epoch:
        self.method.train()
        total, count = 0.0, 0
        for loss in self._losses():
            value = self._finite(float(loss.item()), "loss")
            self._optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.method.parameters(), 1.0)
            self._optimizer.step()
            total, count, self.steps = total + value, count + 1, self.steps + 1
        found = self._measure()
        self._finite(found.loss, "validation loss")
        self.epoch += 1
        better = (found.accuracy, -found.loss) > (self.best.validation_accuracy, -self.best.validation_loss)
        epoch = Epoch(self.epoch, total / count, found.accuracy, found.loss, better)
        if better:
            self.best = epoch
            self._best = {name: tensor.clone() for name, tensor in self.method.state_dict().items()}
        return epoch

    def _finite(self, value: float, what: str) -> float:
        if not math.isfinite(value):
            raise ModelError(
                f"the {what} of {self._loop.method} became {value} in epoch {self.epoch + 1}",
                hint="a lower --learning-rate helps, in a folder of its own; nothing of this epoch was kept",
            )
        return value

    def _keep(self) -> None:
        content = {
            "method": self.method.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "random": self._random.get_state(),
            "dropout": self._dropout_state,
            "best_weights": self._best,
            "best": tuple(self.best),
            "epoch": self.epoch,
            "steps": self.steps,
        }
        checkpoint.keep(self._folder, self._identity, content)

    def _resume(self) -> None:
        kept = checkpoint.read(self._folder, self._identity)
        if kept is None:
            return
        self.method.load_state_dict(kept["method"])
        self._optimizer.load_state_dict(kept["optimizer"])
        self._random.set_state(kept["random"])
        self._dropout_state = kept["dropout"]
        self._best = dict(kept["best_weights"])
        self.best = Epoch(*kept["best"])
        self.epoch, self.steps = kept["epoch"], kept["steps"]
