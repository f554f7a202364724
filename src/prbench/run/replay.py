"""Records from scores that exist already (`stored:`): nothing is shown to a model, so nothing can be asked or leak."""

from collections.abc import Iterator, Sequence

from prbench.errors import ContextError
from prbench.models import Replay
from prbench.results import Records
from prbench.types import Context, Pair, Record


def check_contexts(source: Replay, contexts: Sequence[Context], name: str) -> None:
    """Refuse contexts that the stored scores do not speak of."""
    if source.contexts is None and len(contexts) > 1:
        raise ContextError(
            f"{name} does not say in which context its scores were made, so it can stand for one only",
            hint="give one --context, or add a column 'context' to the file",
        )
    known = source.contexts
    missing = [str(context) for context in contexts if known is not None and str(context) not in known]
    if missing:
        hint = f"it has: {', '.join(sorted(known or ()))}"
        raise ContextError(f"{name} has no scores for context {missing[0]!r}", hint=hint)


def replay_records(
    source: Replay, pairs: Sequence[Pair], contexts: Sequence[Context], done: Records
) -> Iterator[Record]:
    """The records that are not there yet."""
    for context in contexts:
        for pair in pairs:
            for record in source.replay(pair.id, context):
                if done.status(record.slot) in (None, "failed"):
                    yield record
