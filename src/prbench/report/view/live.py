"""Pages that follow their runs: built again when files change, and told apart by a version.

A request never waits for a build: what is served is the last page that was made, and a small script in it asks for the
progress and reloads, keeping its place, when there is a newer one.
"""

import hashlib
import html
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from prbench.errors import PrbenchError
from prbench.files import disk_errors
from prbench.results import RunFolder, read_facts
from prbench.show.page import asset, policy

Build = Callable[[Sequence[Path]], Mapping[str, str]]
"""Function from run folders to pages by address."""

_WATCHED = ("config.toml", "records.jsonl", "result.json")
_POLICY = re.compile(r'(<meta http-equiv="Content-Security-Policy" content=")([^"]*)(">)')


class RunProgress(NamedTuple):
    """Progress of one run."""

    name: str
    records: int
    expected: int
    finished: bool


class LivePages:
    """The pages of some runs, kept up to date.

    Args:
        runs: Run folders.
        build: Makes all pages.
        pause_s: At least so long between two builds; a build that takes long is given longer pauses.
    """

    def __init__(self, runs: Sequence[Path], build: Build, *, pause_s: float = 2.0) -> None:
        self._runs = tuple(runs)
        self._build = build
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._counted: dict[Path, tuple[int, int]] = {}
        self._stamp = ""
        self.version = ""
        self.pages: Mapping[str, str] = {}
        self.problem = ""
        """Reason why the last build failed, while older pages are still shown."""
        self._took_s = 0.0
        self.refresh()

    def refresh(self) -> bool:
        """Build the pages if a run has changed; says whether it did."""
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return False
        started = time.monotonic()
        version = hashlib.sha256(stamp.encode()).hexdigest()[:12]
        pages = self._build(self._runs)
        self.pages = {address: go_live(page, version, list(pages)) for address, page in pages.items()}
        self.version, self._stamp, self.problem = version, stamp, ""
        self._took_s = time.monotonic() - started
        return True

    def follow(self) -> None:
        """Refresh until stopped; whatever goes wrong leaves the older pages in place, and they say so."""
        while not self._stop.wait(max(self._pause_s, 2 * self._took_s)):
            try:
                self.refresh()
            except PrbenchError as error:
                self.problem = error.message
            except Exception as error:  # files come and go while a run is made: a thread that ended would not say so
                self.problem = f"the pages could not be renewed: {type(error).__name__}: {error}"

    def stop(self) -> None:
        """End the loop of `follow`."""
        self._stop.set()

    def progress(self) -> list[RunProgress]:
        """Return the progress of each run, cheap enough to be asked every second."""
        return [self._progress(path) for path in self._runs]

    def _progress(self, path: Path) -> RunProgress:
        try:
            facts = read_facts(RunFolder(path))
        except PrbenchError:  # its folder was taken away: the page stays, and `problem` says why it is not renewed
            return RunProgress(path.name, 0, 0, False)
        records, result = path / "records.jsonl", path / "result.json"
        finished = result.is_file() and (not records.is_file() or _time(result) >= _time(records))
        expected = facts.dataset.counts.pairs * len(facts.contexts) * facts.expected
        return RunProgress(path.name, self._count(records), expected, finished)

    def _count(self, path: Path) -> int:
        """Lines of a file that only grows: those counted before are not read again."""
        if not path.is_file():
            return 0
        size, lines = self._counted.get(path, (0, 0))
        if path.stat().st_size < size:  # begun anew
            size, lines = 0, 0
        with disk_errors(path, "read"), path.open("rb") as handle:
            handle.seek(size)
            new = handle.read()
        self._counted[path] = (size + len(new), lines + new.count(b"\n"))
        return lines + new.count(b"\n")

    def _stamp_now(self) -> str:
        files = [path / name for path in self._runs for name in _WATCHED]
        return "\n".join(f"{file}\t{_time(file)}\t{_size(file)}" for file in files)


def go_live(page: str, version: str, addresses: Sequence[str] = ()) -> str:
    """Add to a page the script that follows the server, and let it through the page's policy.

    Args:
        page: A page made by `shell`.
        version: Version of what it shows.
        addresses: Of all pages, to go from one to another.

    Example:
        >>> from markupsafe import Markup
        >>> from prbench.show.page import shell
        >>> page = go_live(shell("t", Markup("<p>x</p>")), "v1", ["/"])
        >>> "connect-src 'self'" in page_policy(page), 'data-version="v1"' in page
        (True, True)
    """
    script, style = (asset(f"view/live.{kind}", "prbench.report") for kind in ("js", "css"))
    links = "".join(
        f'<a href="{html.escape(address)}">{html.escape(_name(address, addresses))}</a> ' for address in addresses
    )
    navigation = f'<nav aria-label="Pages">{links}</nav>' if len(addresses) > 1 else ""
    bar = (
        f'<aside class="live screen-only" id="live" data-version="{html.escape(version)}" aria-label="This run, live">'
        f'{navigation}<p id="live-state" role="status"></p>'
        f'<button type="button" id="live-reload" hidden>Show new results</button></aside>'
    )
    page = _POLICY.sub(lambda match: match[1] + _opened(match[2], script, style) + match[3], page, count=1)
    head, mark, tail = page.rpartition("</body>")
    return f"{head}<style>{style}</style>\n{bar}\n<script>{script}</script>\n{mark}{tail}"


def page_policy(page: str) -> str:
    """The policy that a page carries, to be sent as a header too; it may stand in no frame."""
    found = _POLICY.search(page)
    return (html.unescape(found[2]) if found else policy([], [])) + "; frame-ancestors 'none'"


def _opened(text: str, script: str, style: str) -> str:
    """A policy (as in an attribute) that lets one more script and style in, and requests to the page's own server."""
    rules = dict(rule.partition(" ")[::2] for rule in html.unescape(text).split("; "))
    for kind, added in (("script-src", policy([script], [])), ("style-src", policy([], [style]))):
        source = dict(rule.partition(" ")[::2] for rule in added.split("; "))[kind]
        rules[kind] = source if rules.get(kind, "'none'") == "'none'" else f"{rules[kind]} {source}"
    rules["connect-src"] = "'self'"
    return html.escape("; ".join(f"{name} {value}" for name, value in rules.items()))


def _name(address: str, addresses: Sequence[str]) -> str:
    """Return the text of a link to a page; the first page is the report, or with several reports the leaderboard."""
    if address == "/":
        return "leaderboard" if any(other.startswith("/report/") for other in addresses) else "report"
    return address.removeprefix("/report").strip("/")


def _time(path: Path) -> int:
    return path.stat().st_mtime_ns if path.is_file() else 0


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
