"""Personalized reward models that are trained here: methods over vectors of a frozen encoder, and how they score.

The methods share one interface (`Method`): a state is made of what is known of a user, items are rewarded by it. Papers
and equations stand in each method's module. Importing this room loads no torch; its modules do.
"""

from pathlib import Path

__all__ = ["REFERENCE", "SHIPPED", "shipped_folder"]

REFERENCE = "reference"
SHIPPED = Path(__file__).parents[2] / "data" / "embedded" / "models"


def shipped_folder(address: str) -> Path | None:
    """Return the package's folder of the model at this address; None where none ships, or a folder goes before.

    Example:
        >>> shipped_folder("personal:reference").name, shipped_folder("personal:runs/mine")
        ('reference', None)
    """
    scheme, _, name = address.partition(":")
    if scheme != "personal" or name != REFERENCE or Path(name).is_dir():
        return None
    return SHIPPED / name
