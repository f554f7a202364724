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

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

PACKAGE = "prbench.report"


@cache
def asset(name: str) -> str:
    """The text of a file that ships beside this module, as `style.css` or `page/pairs.css`.

    Example:
        >>> "--accent" in asset("style.css")
        True
    """
    return files(PACKAGE).joinpath(name).read_text(encoding="utf-8")


@cache
def templates() -> Environment:
    """The templates of this room: whatever is put into one is escaped, a name that is missing is an error.

    Example:
        >>> templates().from_string("{{ text }}").render(text="<script>")
        '&lt;script&gt;'
    """
    loader = PackageLoader(PACKAGE, "page")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = breakable
    return environment


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
        title: Of the window.
        body: What `<body>` holds, escaped already.
        scripts: JavaScript sources; the theme's is always there.
        styles: CSS sources besides `style.css`.
        live: Whether scripts may ask the page's own server, as `prbench view` does to see a run move on.

    Example:
        >>> page = shell("Tea & toast", Markup("<p>hello</p>"))
        >>> "<title>Tea &amp; toast</title>" in page, "default-src &#39;none&#39;" in page
        (True, True)
    """
    inline_styles = [asset("style.css"), *styles]
    theme = asset("theme.js")
    return (
        templates()
        .get_template("shell.html.jinja")
        .render(
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
    template = templates().get_template("masthead.html.jinja")
    return Markup(template.render(home=home, links=links, extra=extra or ""))  # noqa: S704  (rendered with escaping on)


def _hashes(sources: Iterable[str]) -> str:
    digests = [base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() for source in sources]
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def _raw(source: str) -> Markup:
    """Our own script or style as it stands; one that would end its element early is a bug."""
    if "</script" in source.lower() or "</style" in source.lower():
        raise ValueError("an inline script or style must not hold its own end tag")
    return Markup(source)  # noqa: S704  (a file of this package, never data)
