"""Coming and going: the invitation, consent, signing out, and taking everything back."""

from typing import NoReturn

from starlette.responses import HTMLResponse, Response

from prbench.annotate import own_posts, people, tasks
from prbench.annotate.pages import render
from prbench.annotate.visit import RequestRefused, Visit, go

COOKIE_DAYS = 90


def home(visit: Visit) -> Response:
    """Where the person left off."""
    with visit.store.reading() as connection:
        session = visit.session(connection)
        code = tasks.next_code(connection, session.annotator.id)
    if visit.study.mode == "self" and not session.annotator.started:
        return go("/posts")
    return go(f"/pair/{code}" if code else "/done")


def show_invitation(visit: Visit) -> Response:
    """What the person is asked to do, and to agree to."""
    with visit.store.reading() as connection:
        if people.find_invited(connection, visit.request.path_params["token"]) is None:
            _refuse_invitation()
    return _invitation(visit)


def join(visit: Visit) -> Response:
    """Sign in.

    A form does it and not the link itself: previews open links too, and a strict cookie is not sent along when the link
    of another site is followed.
    """
    with visit.store.writing() as connection:
        found = people.find_invited(connection, visit.request.path_params["token"])
        if found is None:
            _refuse_invitation()
        if visit.field("consent") != "yes":
            return _invitation(visit, 422)
        cookie = people.open_session(connection, found.id)
    response = go("/")
    age_s = COOKIE_DAYS * 24 * 3600
    response.set_cookie(visit.cookie, cookie, max_age=age_s, httponly=True, samesite="strict", secure=visit.secure)
    return response


def leave(visit: Visit) -> Response:
    """Sign out on this device."""
    with visit.store.writing() as connection:
        people.close_session(connection, visit.session(connection).id)
    text = "What you answered is kept. Your invitation link brings you back to where you are."
    return visit.sign_off("You are signed out", text)


def ask_to_delete(visit: Visit) -> Response:
    """The page that asks once more."""
    with visit.store.reading() as connection:
        session = visit.session(connection)
    return HTMLResponse(render("delete", form_token=session.form_token))


def delete(visit: Visit) -> Response:
    """Remove all that the person gave."""
    with visit.store.writing() as connection:
        people.forget(connection, visit.session(connection).annotator.id)
    visit.store.settle()
    text = "Your answers, their history, your posts and your name were removed. Your invitation link no longer works."
    return visit.sign_off("Your data are deleted", text)


def _invitation(visit: Visit, status: int = 200) -> Response:
    page = render("join", mode=visit.study.mode, least=own_posts.LEAST, must_agree=status != 200)
    return HTMLResponse(page, status)


def _refuse_invitation() -> NoReturn:
    text = "Please check that it is complete, or ask whoever sent it for a new one."
    raise RequestRefused(403, "This invitation link is not valid", text)
