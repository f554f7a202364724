"""The handlers of the pages: invitation and consent, own posts in mode `self`, judging pairs, taking everything back.

What is older than what is kept overwrites nothing.
"""

import sqlite3
from typing import NoReturn

from starlette.responses import HTMLResponse, Response

from prbench.annotate import own_posts, pages, people, tasks
from prbench.annotate.answer import AnnotatorAnswer, read_answer
from prbench.annotate.pages import render
from prbench.annotate.people import AnnotatorSession
from prbench.annotate.requests import RequestRefused, StudyRequest, go

COOKIE_DAYS = 90


def home(asked: StudyRequest) -> Response:
    """Redirect to the page where the person left off."""
    with asked.store.reading() as connection:
        session = asked.session(connection)
        code = tasks.next_code(connection, session.annotator.id)
    if asked.study.mode == "self" and not session.annotator.started:
        return go("/posts")
    return go(f"/pair/{code}" if code else "/done")


def show_invitation(asked: StudyRequest) -> Response:
    """Show what the person is asked to do, and to agree to."""
    with asked.store.reading() as connection:
        if people.find_invited(connection, asked.request.path_params["token"]) is None:
            _refuse_invitation()
    return _invitation(asked)


def join(asked: StudyRequest) -> Response:
    """Sign the person in.

    A form does it and not the link itself: previews open links too, and a strict cookie is not sent along when the link
    of another site is followed.
    """
    with asked.store.writing() as connection:
        found = people.find_invited(connection, asked.request.path_params["token"])
        if found is None:
            _refuse_invitation()
        if asked.field("consent") != "yes":
            return _invitation(asked, 422)
        cookie = people.open_session(connection, found.id)
    response = go("/")
    age_s = COOKIE_DAYS * 24 * 3600
    response.set_cookie(asked.cookie, cookie, max_age=age_s, httponly=True, samesite="strict", secure=asked.secure)
    return response


def leave(asked: StudyRequest) -> Response:
    """Sign out on this device."""
    with asked.store.writing() as connection:
        people.close_session(connection, asked.session(connection).id)
    text = "What you answered is kept. Your invitation link brings you back to where you are."
    return asked.sign_off("You are signed out", text)


def ask_to_delete(asked: StudyRequest) -> Response:
    """The page that asks once more."""
    with asked.store.reading() as connection:
        session = asked.session(connection)
    return HTMLResponse(render("delete", form_token=session.form_token))


def delete(asked: StudyRequest) -> Response:
    """Remove all that the person gave."""
    with asked.store.writing() as connection:
        people.forget(connection, asked.session(connection).annotator.id)
    asked.store.settle()
    text = "Your answers, their history, your posts and your name were removed. Your invitation link no longer works."
    return asked.sign_off("Your data are deleted", text)


def _invitation(asked: StudyRequest, status: int = 200) -> Response:
    page = render("join", mode=asked.study.mode, least=own_posts.LEAST, must_agree=status != 200)
    return HTMLResponse(page, status)


def _refuse_invitation() -> NoReturn:
    text = "Please check that it is complete, or ask its sender for a new one."
    raise RequestRefused(403, "This invitation link is not valid", text)


def show_posts(asked: StudyRequest) -> Response:
    """Show the posts that the person has written, with room for more."""
    with asked.store.reading() as connection:
        session = _before_start(connection, asked)
        posts = own_posts.load_posts(connection, session.annotator.id)
    return HTMLResponse(pages.posts_page(posts, posts.texts, session.form_token))


def save_posts(asked: StudyRequest) -> Response:
    """Keep the posts; begin, if the person says so and has written enough."""
    texts = own_posts.read_posts(asked.form.get("post", ()), asked.field("pasted"))
    start = asked.field("do") == "start"
    ready = start and len(texts) >= own_posts.LEAST
    with asked.store.writing() as connection:
        session = _before_start(connection, asked)
        posts = own_posts.load_posts(connection, session.annotator.id)
        if asked.field("mark") != posts.mark and texts != posts.texts:
            text = "Your posts were changed since this page was opened, perhaps in another tab. Nothing was saved."
            raise RequestRefused(409, "This page is out of date", text, ("/posts", "See your posts as they are kept"))
        problem = own_posts.complain(texts)
        if not problem:
            own_posts.keep_posts(connection, session.annotator.id, texts, start=ready)
    if problem:
        return HTMLResponse(pages.posts_page(posts, texts, session.form_token, problem), 422)
    if start and not ready:
        problem = f"Saved. To begin, please write at least {own_posts.LEAST} posts; there are {len(texts)} so far."
        return HTMLResponse(pages.posts_page(own_posts.OwnPosts(texts), texts, session.form_token, problem), 422)
    return go("/")


def _before_start(connection: sqlite3.Connection, asked: StudyRequest) -> AnnotatorSession:
    session = asked.session(connection)
    if asked.study.mode != "self":
        raise RequestRefused(404, "There is no such page", "Nothing was changed.", ("/", "Continue"))
    if session.annotator.started:
        text = "You have begun to judge, so your posts stand as they are. To take everything back, delete your data."
        raise RequestRefused(409, "Your posts are closed", text, ("/", "Continue"))
    return session


def show_pair(asked: StudyRequest) -> Response:
    """A pair to judge, or one that was judged before, with what is kept."""
    with asked.store.reading() as connection:
        session = _begun(connection, asked)
        shown = _find(connection, session, asked)
        progress = tasks.progress(connection, session.annotator.id)
    marks = pages.marks_of(shown.answer)
    return HTMLResponse(pages.pair_page(shown, progress, asked.study.mode, session.form_token, marks))


def save_pair(asked: StudyRequest) -> Response:
    """Keep an answer and go on to the next pair."""
    answer = read_answer(asked.form, scored=asked.study.mode == "pairs")
    version = int(asked.field("version")) if asked.field("version") in map(str, range(10_000)) else -1
    with asked.store.writing() as connection:
        session = _begun(connection, asked)
        shown = _find(connection, session, asked)
        progress = tasks.progress(connection, session.annotator.id)
        kept = tasks.save(connection, shown, version, answer) if isinstance(answer, AnnotatorAnswer) else "incomplete"
    if kept == "stale":
        text = (
            f"Pair {shown.number} was answered or changed since this page was opened, perhaps in another tab. "
            "What is kept was left as it is; what you marked on the old page was not saved."
        )
        raise RequestRefused(
            409, "This page is out of date", text, (f"/pair/{shown.code}", "See what is kept, and change it")
        )
    if not isinstance(answer, AnnotatorAnswer):
        marks = {name: values[0] for name, values in asked.form.items()}
        again = shown._replace(version=version)  # the form's own, so that it stays as old as it is
        page = pages.pair_page(again, progress, asked.study.mode, session.form_token, marks, missing=answer)
        return HTMLResponse(page, 422)
    return go("/")


def show_last(asked: StudyRequest) -> Response:
    """Back to what was answered last."""
    with asked.store.reading() as connection:
        session = asked.session(connection)
        code = tasks.last_code(connection, session.annotator.id)
    return go(f"/pair/{code}" if code else "/")


def show_done(asked: StudyRequest) -> Response:
    """Show the person's progress, and thanks at the end."""
    with asked.store.reading() as connection:
        session = asked.session(connection)
        progress = tasks.progress(connection, session.annotator.id)
    return HTMLResponse(pages.render("done", progress=progress, form_token=session.form_token))


def _begun(connection: sqlite3.Connection, asked: StudyRequest) -> AnnotatorSession:
    session = asked.session(connection)
    if asked.study.mode == "self" and not session.annotator.started:
        raise RequestRefused(
            409, "First your posts", "Pairs are shown once your posts are written.", ("/posts", "To them")
        )
    return session


def _find(connection: sqlite3.Connection, session: AnnotatorSession, asked: StudyRequest) -> tasks.TaskPage:
    shown = tasks.show(connection, session.annotator.id, asked.request.path_params["code"])
    if shown is None:
        raise RequestRefused(404, "There is no such pair", "It is not one of yours.", ("/", "Continue with your own"))
    return shown
