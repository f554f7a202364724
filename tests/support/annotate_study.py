"""Studies for the tests of `annotate`: pairs whose hidden parts are easy to spot, and an annotator who fills in forms.

Shared by the tests of the room and of the browser.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path

from pair_factory import make_pair
from prbench.annotate.answer import DIMENSIONS, PLACES, AnnotatorAnswer, Scores
from prbench.annotate.serve import Endpoint, listen
from prbench.annotate.store import Store
from prbench.annotate.study import AnnotationConfig, Opened, open_study
from prbench.annotate.tasks import next_code, save, show
from prbench.data import Suite
from prbench.types import Aspect, Pair, Post

HIDDEN = ("HUSH", "pair-id", "user-id", "post-id")
"""Every hidden part of these pairs has one of these words in it, and nothing that may be shown has."""
NASTY = "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'> & \"quotes\" 🫖"


def pairs(count: int = 6, extra: str = "") -> list[Pair]:
    """Pairs in which A answers are chosen; texts say nothing of that."""
    return [
        make_pair(
            id=f"pair-id-{number}",
            user=f"user-id-{number % 3}",
            question=f"Question {number}: which tea? {extra}",
            profile=tuple(
                Post(id=f"post-id-{number % 3}-{each}", text=f"Note {each} on tea {extra}", category="HUSH category")
                for each in range(4)
            ),
            narrative=f"HUSH narrative {number}",
            rubric_aspects=(Aspect(aspect=f"HUSH aspect {number}", evidence="HUSH evidence", reason="HUSH reason"),),
            category="HUSH category",
            chosen=f"Green tea, number {number}. {extra}",
            rejected=f"Black tea, number {number}. {extra}",
            tags={"split": "HUSH split", "axis": "HUSH axis", "pole": "HUSH pole"},
        )
        for number in range(count)
    ]


def study(
    path: Path, of: Sequence[Pair] | None = None, *, names: Sequence[str] = ("ann", "bob"), **options: object
) -> Opened:
    """Make (or continue) a study in `path/annotations.sqlite`."""
    suite = Suite.of(pairs() if of is None else of, name="tea")
    return open_study(path / "annotations.sqlite", suite, AnnotationConfig(names=tuple(names), **options))


def scores(value: int | Mapping[str, int] = 3) -> Scores:
    """Ratings that are all equal, or given by dimension."""
    given = value if isinstance(value, Mapping) else dict.fromkeys(DIMENSIONS, value)
    return Scores.model_validate(given)


def fill(store: Store, annotator: int, decide: object) -> None:
    """Answer every pair of an annotator: `decide(shown, green_first)` gives an AnnotatorAnswer."""
    with store.writing() as connection:  # one transaction for all: tests need not wait for the disk each time
        while (code := next_code(connection, annotator)) is not None:
            shown = show(connection, annotator, code)
            assert save(connection, shown, shown.version, decide(shown, shown.first.startswith("Green"))) == "saved"


def prefer_green(shown: object, green_first: bool) -> AnnotatorAnswer:
    """Follows every label, and rates all alike."""
    return AnnotatorAnswer(preference="first" if green_first else "second", first=scores(), second=scores())


class Site:
    """A study that is being served."""

    def __init__(self, opened: Opened, place: Endpoint) -> None:
        self.store, self.url = opened.store, place.url
        self.links = [place.link(invitation) for invitation in opened.invitations]

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Look into the file."""
        with self.store.reading() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def answers(self) -> list[tuple[object, ...]]:
        """Every version of every answer: who, which, version, preference."""
        return self.rows("SELECT annotator, position, version, preference FROM answer JOIN task ON task.id = task")


@contextmanager
def served(path: Path, of: Sequence[Pair] | None = None, **options: object) -> Iterator[Site]:
    """Serve a study from a thread of this process."""
    import uvicorn

    from prbench.annotate.app import make_app
    from prbench.web import server_config

    opened, place = study(path, of, **options), listen()
    server = uvicorn.Server(server_config(make_app(opened.store, place.hosts)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place.listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Site(opened, place)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        place.listener.close()


class Client:
    """Somebody with a browser that follows links and sends forms: a thin layer over an HTTP client."""

    def __init__(self, http: object, link: str = "") -> None:
        self.http = http
        self.seen: list[str] = []
        if link:
            self.get(link)
            self.page = self.send(link, consent="yes")

    def get(self, address: str) -> object:
        """Open a page."""
        self.page = self.http.get(address, follow_redirects=True)
        self.seen.append(self.page.text)
        return self.page

    def send(self, address: str, **fields: object) -> object:
        """Send a form and follow where it leads."""
        self.page = self.http.post(address, data=fields, follow_redirects=True)
        self.seen.append(self.page.text)
        return self.page

    def answer(self, page: object = None, **fields: object) -> object:
        """Fill in the form of a page (the current one) and send it."""
        page = page or self.page
        return self.send(page.url.path, **{**marks(), **hidden_fields(page.text), **fields})

    def run(self, most: int = 1000) -> None:
        """Judge until there is nothing left."""
        while "/pair/" in self.page.url.path and most:
            self.answer()
            most -= 1


def marks(preference: str = "first", value: int = 3) -> dict[str, str]:
    """A whole form."""
    rated = {f"{place}_{name}": str(value) for place in PLACES for name in DIMENSIONS}
    return {"preference": preference, **rated}


def hidden_fields(page: str) -> dict[str, str]:
    """The hidden fields of the last form on a page, before the footer."""
    body = page.partition("<footer")[0]
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', body)}
