"""The frame of every page: one file, its own styles and scripts inline, and a policy that lets nothing else in.

The Content-Security-Policy names the hash of each inline style and script, so text that slipped through the escaping
could still not run, and no request can leave the page. Style attributes are refused as well: use classes.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from prbench.types import Context

PACKAGE = "prbench.show"


@cache
def asset(name: str, package: str = PACKAGE) -> str:
    """Return the text of a file that ships with a package, as `page/style.css`.

    Args:
        name: Path of the file within the package.
        package: The room that the file belongs to; by default this one.

    Example:
        >>> "--accent" in asset("page/style.css")
        True
    """
    return files(package).joinpath(name).read_text(encoding="utf-8")


@cache
def templates(package: str = PACKAGE) -> Environment:
    """Return the templates of a room, with the shared ones of this room behind them.

    Whatever is put into a template is escaped, and a name that is missing is an error.

    Args:
        package: The room whose folder `page` holds the templates; by default this one.

    Example:
        >>> templates().from_string("{{ text }}").render(text="<script>")
        '&lt;script&gt;'
    """
    loader = ChoiceLoader([PackageLoader(name, "page") for name in dict.fromkeys((package, PACKAGE))])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = breakable
    return environment


def fill(template: str, /, package: str = PACKAGE, **values: object) -> Markup:
    """Fill in a template; values that are not markup already are escaped.

    Args:
        template: Name of the template's file.
        package: The room that it belongs to; the shared templates of this room are always found.
        values: By their names in the template.
    """
    return Markup(templates(package).get_template(template).render(**values))  # noqa: S704  (rendered with escaping on)


def breakable(text: str) -> Markup:
    """An address that may be broken after its punctuation, where a column is narrow.

    Example:
        >>> breakable("hf:org/<rm>")
        Markup('hf:<wbr>org/<wbr>&lt;rm&gt;')
    """
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[:/._@·-])", text) if part)


def shell(
    title: str, body: Markup, scripts: Sequence[str] = (), styles: Sequence[str] = (), *, live: bool = False
) -> str:
    """Frame a page: the shared look first, then the page's own styles; scripts run after the body.

    Args:
        title: Title of the window.
        body: What `<body>` holds, escaped already.
        scripts: JavaScript sources; the theme's is always there.
        styles: CSS sources besides `page/style.css`.
        live: Whether scripts may ask the page's own server, as `prbench view` does to see a run move on.

    Example:
        >>> page = shell("Tea & toast", Markup("<p>hello</p>"))
        >>> "<title>Tea &amp; toast</title>" in page, "default-src &#39;none&#39;" in page
        (True, True)
    """
    inline_styles = [asset("page/style.css"), *styles]
    theme = asset("page/theme.js")
    return str(
        fill(
            "shell.html.jinja",
            title=title,
            policy=policy([theme, *scripts], inline_styles, live=live),
            styles=[_raw(style) for style in inline_styles],
            theme=_raw(theme),
            body=body,
            scripts=[_raw(script) for script in scripts],
        )
    )


def policy(scripts: Iterable[str], styles: Iterable[str], *, live: bool = False) -> str:
    """The Content-Security-Policy that lets exactly these inline scripts and styles in.

    Example:
        >>> policy([], [])
        "default-src 'none'; script-src 'none'; style-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
    """
    rules = [
        "default-src 'none'",
        f"script-src {_hashes(scripts)}",
        f"style-src {_hashes(styles)}",
        "img-src data:",
        *(["connect-src 'self'"] if live else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def masthead(home: str, links: Mapping[str, str], extra: Markup | None = None) -> Markup:
    """The bar on top: the name, links (address → text), a switch of the theme.

    Example:
        >>> "<nav" in masthead("#top", {"#ranking": "Ranking"})
        True
    """
    return fill("masthead.html.jinja", home=home, links=links, extra=extra or "")


def _hashes(sources: Iterable[str]) -> str:
    digests = [base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() for source in sources]
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def _raw(source: str) -> Markup:
    """Our own script or style as it stands; one that would end its element early is a bug."""
    if "</script" in source.lower() or "</style" in source.lower():
        raise ValueError("an inline script or style must not hold its own end tag")
    return Markup(source)  # noqa: S704  (a file of this package, never data)


class Section(NamedTuple):
    """One part of a report. A study that wants to be seen hands one of these to `report_page`."""

    id: str
    """Identifier, which is also the section's anchor."""
    title: str
    lead: str
    """Advice on what to look for, in a sentence or two."""
    body: Markup
    nav: str = ""
    """Name of the section in the bar on top; empty keeps it out."""


def context_words(name: str) -> str:
    """Return what a model is shown in a context, in words.

    Example:
        >>> print(context_words("retrieved@5"))
        the 5 own posts nearest to the question
    """
    return Context.parse(name).words


def context_label(name: str) -> str:
    """A context's name, marked where it shows the standard itself.

    Example:
        >>> context_label("oracle")
        'oracle (leaks)'
    """
    return f"{name} (leaks)" if Context.parse(name).leaks else name
