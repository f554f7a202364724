"""The application: which address does what. Each request is one look at the study's file, or one transaction in it.

Without a session nothing of the study is shown; with one, the annotator's own pairs, under codes that say nothing.
"""

import logging
from collections.abc import Collection

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from prbench.annotate import handlers, pages
from prbench.annotate.guard import Guard, UnreadableForm, read_form
from prbench.annotate.requests import Handler, RequestRefused, StudyRequest
from prbench.annotate.store import Store
from prbench.annotate.study import read_study
from prbench.errors import FileError

_log = logging.getLogger("uvicorn.error")


def make_app(store: Store, hosts: Collection[str], *, secure: bool = False) -> Starlette:
    """The application over a study's file.

    Args:
        store: The file.
        hosts: The `name:port` under which the server may be asked for.
        secure: Whether people reach it by HTTPS only, so that the cookie never travels in the clear.
    """
    study = read_study(store)

    def route(path: str, show: Handler, act: Handler | None = None) -> Route:
        async def endpoint(request: Request) -> Response:
            posted = request.method == "POST" and act is not None
            form = await read_form(request) if posted else {}
            handler = act if posted and act is not None else show
            return await run_in_threadpool(handler, StudyRequest(store, study, request, form, secure))

        return Route(path, endpoint, methods=["GET", "POST"] if act else ["GET"])

    routes = [
        route("/", handlers.home),
        route("/join/{token}", handlers.show_invitation, handlers.join),
        route("/leave", handlers.home, handlers.leave),
        route("/delete", handlers.ask_to_delete, handlers.delete),
        route("/posts", handlers.show_posts, handlers.save_posts),
        route("/pair/{code}", handlers.show_pair, handlers.save_pair),
        route("/last", handlers.show_last),
        route("/done", handlers.show_done),
        route("/static/{name}", _static),
    ]
    failures = {
        RequestRefused: _refused,
        UnreadableForm: _unreadable,
        ClientDisconnect: _unreadable,
        HTTPException: _no_page,
        FileError: _not_now,
    }
    return Starlette(routes=routes, exception_handlers=failures, middleware=[Middleware(Guard, hosts=hosts)])


def _static(asked: StudyRequest) -> Response:
    kind, text = pages.assets().get(asked.request.path_params["name"], ("", ""))
    if not kind:
        raise HTTPException(404)
    return Response(text, media_type=kind)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)  # noqa: S101  (by registration)
    return error.response()


def _unreadable(request: Request, error: Exception) -> Response:
    return RequestRefused(413, "This form cannot be read", "It is too long or damaged. Nothing was saved.").response()


def _not_now(request: Request, error: Exception) -> Response:
    """The file is locked for too long, or the disk is full: people are told that nothing was kept, and lose no form."""
    _log.error("the study's file does not answer: %s", error)
    text = "The study's file cannot be used at the moment. Nothing was saved: please go back and send it again."
    return RequestRefused(503, "Please try again", text).response()


def _no_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return RequestRefused(status, "There is no such page", "Nothing was changed.", ("/", "Continue")).response()
