"""Studies on a page: the section of each, below a report of runs or on a page of their own."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

from prbench._version import __version__
from prbench.errors import StudyError
from prbench.files import exists, read_model
from prbench.show.page import Section, asset, fill, masthead, shell
from prbench.studies.study import FILE, Study

SECTIONS = {
    "best-of-n": "prbench.studies.best_of_n.section:best_of_n_section",
    "ppo": "prbench.studies.ppo.section:ppo_section",
}
"""Functions by the kind of study, `module:function`; each takes the folder and, by name, the study's number on the
page."""


def study_section(folder: Path, number: int = 0) -> Section:
    """The section of one finished study.

    Args:
        folder: With a `study.json` in it.
        number: Tells several studies on a page apart.
    """
    if not exists(folder / FILE, raises=StudyError):
        raise StudyError(
            f"there is no study at {str(folder)!r}", hint=f"name a folder with a {FILE}; was the study finished?"
        )
    hint = "the layout is in docs/studies.md"
    kind = read_model(folder / FILE, Study, raises=StudyError, hint=hint).kind
    module, _, name = SECTIONS[kind].partition(":")
    make = cast(Callable[..., Section], getattr(import_module(module), name))
    return make(folder, number=number)


def study_sections(folders: Sequence[Path]) -> list[Section]:
    """The sections of several studies."""
    return [study_section(folder, number) for number, folder in enumerate(folders)]


def study_page(folders: Sequence[Path]) -> str:
    """One self-contained page of studies alone.

    Args:
        folders: Finished studies.
    """
    sections = study_sections(folders)
    links = {f"#{section.id}": section.nav for section in sections}
    body = fill(
        "study.html.jinja", "prbench.studies", masthead=masthead("#top", links), sections=sections, version=__version__
    )
    return shell("Downstream studies · prbench", body, [], [asset("page/report.css", "prbench.report")])
