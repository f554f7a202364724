"""Price of a hosted model, from the public list `genai-prices` where that package is installed.

A price is looked up by the host that is asked, so a server of one's own has none. It is the list's base price in force
today; the version of the list is kept with it. A `--price` of the user always wins.
"""

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from prbench.config import Price
from prbench.web import is_loopback


def listed_price(model: str, base_url: str) -> Price | None:
    """The price of a model on a host; None where the list is not installed or does not know it."""
    if is_loopback(urlsplit(base_url).hostname or ""):
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    now = datetime.now(UTC)
    try:
        found = calc_price(
            Usage(input_tokens=1, output_tokens=1), model, provider_api_url=base_url, genai_request_timestamp=now
        )
    except (LookupError, ValueError):
        return None
    prices = found.model_price
    each = {
        "per_million_in": _base(prices.input_mtok),
        "per_million_out": _base(prices.output_mtok),
        "per_million_cached": _base(prices.cache_read_mtok),
        "per_million_stored": _base(prices.cache_write_mtok),
    }
    if each["per_million_in"] is None or each["per_million_out"] is None:
        return None
    source = f"genai-prices {version('genai-prices')}, in force on {now.date().isoformat()}"
    return Price.model_validate({**each, "source": source})


def _base(price: Any) -> float | None:
    """The price for prompts of ordinary length, where long ones cost more."""
    return None if price is None else float(getattr(price, "base", price))
