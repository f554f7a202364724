"""Records from scores that exist already (`stored:`): nothing is shown to a model, so nothing can be asked or leak."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from prbench.errors import ContextError
from prbench.run.engine import verdict_fields
from prbench.run.work import Slot
from prbench.types import Context, Order, Outcome, Pair, Record


@runtime_checkable
class Replay(Protocol):
    """Gives outcomes by pair id."""

    contexts: frozenset[str] | None
    orders: tuple[Order, ...]

    def replay(self, pair: str, context: Context, order: Order, repeat: int) -> tuple[Outcome, Outcome] | Outcome:
        """The outcomes for one slot."""
        ...


def check_contexts(source: Replay, contexts: Sequence[Context], name: str) -> None:
    """Refuse contexts that the stored scores do not speak of."""
    if source.contexts is None and len(contexts) > 1:
        raise ContextError(
            f"{name} does not say in which context its scores were made, so it can stand for one only",
            hint="give one --context, or add a column 'context' to the file",
        )
    missing = [
        str(context) for context in contexts if source.contexts is not None and str(context) not in source.contexts
    ]
    if missing:
        raise ContextError(
            f"{name} has no scores for context {missing[0]!r}",
            hint=f"it has: {', '.join(sorted(source.contexts or ()))}",
        )


def replay_records(
    source: Replay, pairs: Sequence[Pair], contexts: Sequence[Context], repeats: int, done: Mapping[Slot, Record]
) -> Iterator[Record]:
    """One record for each slot that is not filled yet."""
    for context in contexts:
        for pair in pairs:
            for order in source.orders:
                for repeat in range(repeats):
                    slot = (pair.id, str(context), order, repeat)
                    if slot not in done or done[slot].status == "failed":
                        found = source.replay(pair.id, context, order, repeat)
                        fields = verdict_fields((found,) if isinstance(found, Outcome) else found, order)
                        yield Record(pair=pair.id, context=str(context), order=order, repeat=repeat, **fields)
