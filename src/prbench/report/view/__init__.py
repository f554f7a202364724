"""VIEW: the same pages, served on this machine only, while a run goes on.

Binds to 127.0.0.1, answers GET, refuses a Host that is not its own (a web page elsewhere cannot read it through a
rebound name), sends the page's own Content-Security-Policy as a header, and writes nothing.
"""

from prbench.report.view.live import LivePages, RunProgress, go_live
from prbench.report.view.pages import build_pages, expand
from prbench.report.view.server import Server, serve

__all__ = ["LivePages", "RunProgress", "Server", "build_pages", "expand", "go_live", "serve"]
