"""Judging pairs: the form, the answer, going back. What is older than what is kept overwrites nothing."""

import sqlite3

from starlette.responses import HTMLResponse, Response

from prbench.annotate import pages, tasks
from prbench.annotate.answer import AnnotatorAnswer, read_answer
from prbench.annotate.people import AnnotatorSession
from prbench.annotate.visit import RequestRefused, Visit, go


def show_pair(visit: Visit) -> Response:
    """A pair to judge, or one that was judged before, with what is kept."""
    with visit.store.reading() as connection:
        session = _begun(connection, visit)
        shown = _find(connection, session, visit)
        progress = tasks.progress(connection, session.annotator.id)
    marks = pages.marks_of(shown.answer)
    return HTMLResponse(pages.pair_page(shown, progress, visit.study.mode, session.form_token, marks))


def save_pair(visit: Visit) -> Response:
    """Keep an answer and go on to the next pair."""
    answer = read_answer(visit.form, scored=visit.study.mode == "pairs")
    version = int(visit.field("version")) if visit.field("version") in map(str, range(10_000)) else -1
    with visit.store.writing() as connection:
        session = _begun(connection, visit)
        shown = _find(connection, session, visit)
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
        marks = {name: values[0] for name, values in visit.form.items()}
        again = shown._replace(version=version)  # the form's own, so that it stays as old as it is
        page = pages.pair_page(again, progress, visit.study.mode, session.form_token, marks, missing=answer)
        return HTMLResponse(page, 422)
    return go("/")


def show_last(visit: Visit) -> Response:
    """Back to what was answered last."""
    with visit.store.reading() as connection:
        session = visit.session(connection)
        code = tasks.last_code(connection, session.annotator.id)
    return go(f"/pair/{code}" if code else "/")


def show_done(visit: Visit) -> Response:
    """How far the person has come, and thanks at the end."""
    with visit.store.reading() as connection:
        session = visit.session(connection)
        progress = tasks.progress(connection, session.annotator.id)
    return HTMLResponse(pages.render("done", progress=progress, form_token=session.form_token))


def _begun(connection: sqlite3.Connection, visit: Visit) -> AnnotatorSession:
    session = visit.session(connection)
    if visit.study.mode == "self" and not session.annotator.started:
        raise RequestRefused(
            409, "First your posts", "Pairs are shown once your posts are written.", ("/posts", "To them")
        )
    return session


def _find(connection: sqlite3.Connection, session: AnnotatorSession, visit: Visit) -> tasks.TaskPage:
    shown = tasks.show(connection, session.annotator.id, visit.request.path_params["code"])
    if shown is None:
        raise RequestRefused(404, "There is no such pair", "It is not one of yours.", ("/", "Continue with your own"))
    return shown
