"""Personal details in a user's posts that an answer must not repeat.

Found by form alone: addresses of mail and web, handles, long numbers, and the names of people (or pets) that a post
introduces as such in English. A name that nothing introduces is not found; a place or a product is no detail.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

_CONTACT = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]*\w"  # mail
    r"|(?:https?://|www\.)[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]"
    r"|(?<![\w@.])@\w{3,}"  # a handle
)
_NUMBER = re.compile(r"(?<![\w.])\+?\d(?:[ ().\-/]{0,3}\d){6,}(?!\w)")
"""Seven digits or more, as of telephones and accounts."""
_KIN = (
    "wife|husband|partner|spouse|boyfriend|girlfriend|fiancée?|son|daughter|child|kid|baby|mother|father|mum|mom|dad|"
    "brother|sister|grandmother|grandfather|grandma|grandpa|aunt|uncle|cousin|nephew|niece|friend|neighbou?r|boss|"
    "colleague|doctor|teacher|therapist|landlord|roommate|flatmate|dog|cat|horse"
)
_NO_NAME = re.compile(
    "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|"
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    f"(?i:{_KIN})"
)
_WHO = rf"\b(?:my|our)(?: \w+)? (?:{_KIN})"
_TWO_WORDS = r"([^\W\d_]{3,}(?: [^\W\d_]{3,})?)"
_INTRODUCED = re.compile(
    rf"{_WHO}(?= {_TWO_WORDS}|, {_TWO_WORDS},)"
    rf"|(?:\bmy name(?:'s| is)|\bcall me|\bnamed|(?:\bis|\bwas|,|\bcat|\bdog) called)(?= {_TWO_WORDS})",
    re.IGNORECASE,
)
"""Pattern that looks ahead, since what follows may introduce a name itself: "my dog, called Rex"."""


def details(text: str) -> list[str]:
    """The personal details in a post.

    Example:
        >>> details("My daughter Milena is seven. Write to ann@example.org or call 030 / 123 45 67. I like Paris.")
        ['ann@example.org', '030 / 123 45 67', 'Milena']
    """
    contacts = _CONTACT.findall(text)
    numbers = [number for number in _NUMBER.findall(_CONTACT.sub(" ", text)) if not _is_round(number)]
    introduced = (_name(next(filter(None, groups))) for groups in _INTRODUCED.findall(text))
    return list(dict.fromkeys([*contacts, *numbers, *filter(None, introduced)]))


def _name(found: str) -> str:
    """The leading words that are written like names, if any."""
    return " ".join(takewhile(lambda word: word.istitle() and not _NO_NAME.fullmatch(word), found.split()))


def repeated(found: Sequence[str], answer: str, question: str) -> str | None:
    """The first of these details that the answer has and the question has not.

    Example:
        >>> repeated(["Milena"], "Let Milena stir.", "How do I bake with a child?")
        'Milena'
    """
    return next((detail for detail in found if _stands_in(detail, answer) and not _stands_in(detail, question)), None)


def _is_round(number: str) -> bool:
    """A million is no telephone number."""
    return re.sub(r"\D", "", number).endswith("0000")


def _stands_in(detail: str, text: str) -> bool:
    if _NUMBER.fullmatch(detail):  # the same number may be grouped in another way
        digits = re.sub(r"\D", "", detail)
        return any(digits in re.sub(r"\D", "", number) for number in _NUMBER.findall(text))
    # A user may have thousands of details, and a pattern is compiled for each: most are not there at all.
    return detail in text and re.search(rf"(?<!\w){re.escape(detail)}(?!\w)", text) is not None
