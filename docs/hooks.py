"""Hooks of the documentation site: what mkdocs needs so that pages written for a repository read well on a site.

Pages are written as code hosts show them: a list or table may follow its paragraph at once, and a link may lead to a
file outside of docs/. The hooks add the blank lines that Python-Markdown wants, bring the files along, and show a
program where the page says `<!-- code: PATH -->`.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
BROUGHT = "repository"
"""Folder of the site with the files outside of docs/ that a page links to."""

_FENCE = re.compile(r"^\s*(```|~~~)")
_LINK = re.compile(r"(?<=\]\()((?:\.\./)+[^)#\s]+)")
_CODE = re.compile(r"^<!-- code: (\S+) -->$", re.MULTILINE)
_BLOCKS = (re.compile(r"^\s*(?:[-*+]|\d+\.)\s"), re.compile(r"^\s*\|"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of docs/how-to under How-to, its index first."""
    folder = Path(config.docs_dir) / "how-to"
    pages = sorted(folder.glob("*.md"), key=lambda page: (page.name not in ("index.md", "README.md"), page.name))
    for section in config.nav or []:
        if "How-to" in section:
            section["How-to"] = [f"how-to/{page.name}" for page in pages] + section["How-to"]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file outside of docs/ that a page links to and that exists; a link to any other breaks the build."""
    for page in list(files.documentation_pages()):
        for link in _LINK.findall(page.content_string):
            path = _outside(page.src_uri, link)
            if path and files.get_file_from_path(f"{BROUGHT}/{path}") is None:
                brought = File.generated(config, f"{BROUGHT}/{path}", abs_src_path=str(ROOT / path))
                brought.inclusion = InclusionLevel.NOT_IN_NAV
                files.append(brought)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Write a page as Python-Markdown wants it."""
    here = posixpath.dirname(page.file.src_uri)

    def lead(found: re.Match[str]) -> str:
        path = _outside(page.file.src_uri, found[1])
        return posixpath.relpath(f"{BROUGHT}/{path}", here or ".") if path else found[1]

    def show(found: re.Match[str]) -> str:
        return f"\n```python\n{(ROOT / found[1]).read_text(encoding='utf-8')}```\n"

    return _CODE.sub(show, _LINK.sub(lead, _spaced(markdown)))


def _outside(page: str, link: str) -> str | None:
    """The repository's file that a link of a page leads to, if that lies outside of docs/ and exists."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    inside = path.startswith(("docs/", "../")) or not (ROOT / path).is_file()
    return None if inside else path


def _spaced(markdown: str) -> str:
    """Put a blank line between a paragraph and the list or table that follows it, outside of code."""
    lines: list[str] = []
    code = False
    for line in markdown.split("\n"):
        before = lines[-1] if lines else ""
        begins = any(block.match(line) and not block.match(before) for block in _BLOCKS)
        if begins and not code and before.strip() and not before.startswith((" ", "#")):
            lines.append("")
        if _FENCE.match(line):
            code = not code
        lines.append(line)
    return "\n".join(lines)
