"""Mode self: the page on which people write or paste posts, until they begin to judge."""

import sqlite3

from starlette.responses import HTMLResponse, Response

from prbench.annotate import own_posts, pages
from prbench.annotate.people import AnnotatorSession
from prbench.annotate.visit import RequestRefused, Visit, go


def show_posts(visit: Visit) -> Response:
    """What the person has written, with room for more."""
    with visit.store.reading() as connection:
        session = _before_start(connection, visit)
        posts = own_posts.load_posts(connection, session.annotator.id)
    return HTMLResponse(pages.posts_page(posts, posts.texts, session.form_token))


def save_posts(visit: Visit) -> Response:
    """Keep the posts; begin, if the person says so and has written enough."""
    texts = own_posts.read_posts(visit.form.get("post", ()), visit.field("pasted"))
    start = visit.field("do") == "start"
    ready = start and len(texts) >= own_posts.LEAST
    with visit.store.writing() as connection:
        session = _before_start(connection, visit)
        posts = own_posts.load_posts(connection, session.annotator.id)
        if visit.field("mark") != posts.mark and texts != posts.texts:
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


def _before_start(connection: sqlite3.Connection, visit: Visit) -> AnnotatorSession:
    session = visit.session(connection)
    if visit.study.mode != "self":
        raise RequestRefused(404, "There is no such page", "Nothing was changed.", ("/", "Continue"))
    if session.annotator.started:
        text = "You have begun to judge, so your posts stand as they are. To take everything back, delete your data."
        raise RequestRefused(409, "Your posts are closed", text, ("/", "Continue"))
    return session
