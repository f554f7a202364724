"""One request, as the pages see it: whose it is, what it carries, and how it is refused."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from prbench.annotate import people
from prbench.annotate.answer import Form
from prbench.annotate.pages import render
from prbench.annotate.people import AnnotatorSession
from prbench.annotate.store import Store
from prbench.annotate.study import AnnotationStudy


class RequestRefused(Exception):
    """A request that is answered with a message instead of what it asked for.

    Args:
        status: Status code of the response.
        title: Short text of what is wrong.
        text: What became of the request.
        link: The way out: address and words.
    """

    def __init__(self, status: int, title: str, text: str, link: tuple[str, str] | None = None) -> None:
        super().__init__(title)
        self.status, self.title, self.text, self.link = status, title, text, link

    def response(self) -> Response:
        """The message as a page."""
        return HTMLResponse(render("message", title=self.title, text=self.text, link=self.link), self.status)


@dataclass(frozen=True)
class StudyRequest:
    """One request, with what answers to it need."""

    store: Store
    study: AnnotationStudy
    request: Request
    form: Form
    secure: bool = False
    """Whether people reach the server by HTTPS only."""

    @property
    def cookie(self) -> str:
        """The cookie's name: each study has its own, since ports of one machine share cookies."""
        return f"prbench-annotate-{self.study.id}"

    def field(self, name: str) -> str:
        """A field that stands once in the form, else nothing."""
        values = self.form.get(name, ())
        return values[0] if len(values) == 1 else ""

    def session(self, connection: sqlite3.Connection) -> AnnotatorSession:
        """Return the session of the visitor; a form must carry its token.

        Asked in the transaction that acts on it.
        """
        found = people.find_session(connection, self.request.cookies.get(self.cookie, ""))
        if found is None:
            raise RequestRefused(403, "You are not signed in", "Please open the invitation link that you were given.")
        if self.request.method == "POST" and not people.same(self.field("form_token"), found.form_token):
            text = "This form was made for another session. Nothing was saved."
            raise RequestRefused(403, "This form is not yours", text, ("/", "Continue with your own"))
        return found

    def sign_off(self, title: str, text: str) -> Response:
        """A last page, which takes the cookie away."""
        response = HTMLResponse(render("message", title=title, text=text, link=None))
        response.delete_cookie(self.cookie, httponly=True, samesite="strict")
        return response


Handler = Callable[[StudyRequest], Response]


def go(address: str) -> RedirectResponse:
    """Send the browser on after a form, so that reloading the page sends nothing again."""
    return RedirectResponse(address, 303)
