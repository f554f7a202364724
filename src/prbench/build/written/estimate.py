"""Looking before spending: what a build would still ask, and what that costs."""

from collections.abc import Sequence

from prbench.calls import Budget, refuse_over_budget
from prbench.config import Price
from prbench.models import Generator, Windowed
from prbench.types import Frozen, Prompt

_BYTES_PER_TOKEN = 4.0


class BuildEstimate(Frozen):
    """First tries only: what must be asked again is not known before."""

    requests: int
    """Number of requests in all."""
    in_journal: int
    """Answered already by an earlier start of the same build."""
    tokens_in: int
    """Tokens of the requests still to send; by the model's own count where it has one, else from the number of bytes.
    """
    tokens_out: int
    """Tokens of the replies, at a typical length."""
    cost_usd: float | None = None
    """Cost of the requests; None where the model has no price."""

    def line(self) -> str:
        """Return the estimate in one line.

        Example:
            >>> BuildEstimate(requests=10, in_journal=4, tokens_in=6000, tokens_out=900, cost_usd=0.5).line()
            '6 requests to send (10, 4 answered already), about 6,000 tokens in and 900 out, about $0.50'
        """
        cost = "price not known (--price IN,OUT)" if self.cost_usd is None else f"about ${self.cost_usd:.2f}"
        return (
            f"{self.requests - self.in_journal:,} requests to send ({self.requests:,}, {self.in_journal:,} answered "
            f"already), about {self.tokens_in:,} tokens in and {self.tokens_out:,} out, {cost}"
        )


def estimate(generator: Generator, requests: int, missing: Sequence[Prompt], reply_tokens: int) -> BuildEstimate:
    """Return what the missing requests would take, with replies of so many tokens."""
    tokens_in = sum(_tokens(generator, prompt) for prompt in missing)
    tokens_out = reply_tokens * len(missing)
    price: Price | None = generator.card.price
    return BuildEstimate(
        requests=requests,
        in_journal=requests - len(missing),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost_usd=None if price is None else price.cost_usd(tokens_in, tokens_out),
    )


def refuse_estimate(found: BuildEstimate, budget: Budget) -> None:
    """Stop before the first request where the estimate is over the limit, or cannot be made."""
    if found.requests > found.in_journal:
        hint = "raise --max-cost, or take fewer questions with --limit"
        refuse_over_budget("the build is", found.cost_usd, budget, hint)


def _tokens(generator: Generator, prompt: Prompt) -> int:
    if isinstance(generator, Windowed):
        return generator.length(prompt)
    return round(sum(len(message.content.encode()) for message in prompt.messages) / _BYTES_PER_TOKEN)
