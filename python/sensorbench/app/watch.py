"""A page on this machine that follows a benchmark while it runs, or replays one that is over."""

import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from sensorbench.errors import UsageError
from sensorbench.interrupts import held_back
from sensorbench.progress import ProgressReporter
from sensorbench.report.watch import watch_page
from sensorbench.results import has_results
from sensorbench.results.reader import runs_anywhere_below
from sensorbench.runner import FeedEnd, LiveFeed, publish_stored, published_to

LOOPBACK = "127.0.0.1"
# How long a page may take to accept what it is sent.
_SEND_S = 10.0
_POLL_S = 0.2


@contextmanager
def live_page(folder: Path, port: int | None, progress: ProgressReporter) -> Iterator[None]:
    """Serves a page of the runs that begin in this context, until it ends.

    Args:
        folder: where the results go, to which names of runs are relative.
        port: of the loopback interface; 0 for a free one, None to serve nothing.
        progress: reports where the page is.

    Raises:
        UsageError: the port is taken.

    """
    if port is None:
        yield
        return
    feed = LiveFeed(folder)
    with _served(feed, port, "--live-port", is_live=True) as address, published_to(feed):
        progress.say(f"live page: {address}")
        try:
            yield
        finally:
            feed.publish(FeedEnd())


@contextmanager
def replayed(folder: Path, port: int) -> Iterator[str]:
    """Serves the same page of runs that lie on disk, until the context ends. Yields its address.

    Args:
        folder: results of a benchmark of any kind, or one run of it.
        port: of the loopback interface; 0 for a free one.

    Raises:
        UsageError: there are no runs, or the port is taken.
        DamagedResultsError: a file of the results is damaged.

    """
    if not has_results(folder):
        raise UsageError(f"{folder}: there are no results; expected a folder that --out of a benchmark named")
    runs = runs_anywhere_below(folder)
    if not runs:
        raise UsageError(f"{folder}: the results have no run of the load generator that could be replayed")
    feed = LiveFeed(folder)
    for run in runs:
        publish_stored(run, feed)
    feed.publish(FeedEnd())
    with _served(feed, port, "--port", is_live=False) as address:
        yield address


@contextmanager
def _served(feed: LiveFeed, port: int, option: str, *, is_live: bool) -> Iterator[str]:
    """Serves a feed and its page; yields its address. Raises UsageError."""
    handler = type("Handler", (_Handler,), {"feed": feed, "is_live": is_live})
    try:
        server = _Server((LOOPBACK, port), handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{option} {port}: {reason}; expected a free port, or 0 to have one chosen") from None
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), name="live page", daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/"
    finally:
        with held_back():
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    # What a page was sent last arrives before the process ends.
    daemon_threads = False
    block_on_close = True


class _Handler(BaseHTTPRequestHandler):
    """The page and its events. It answers under the names of this machine alone, so that no page from elsewhere can read it by a name of
    its own that leads here.
    """

    feed: ClassVar[LiveFeed]
    is_live: ClassVar[bool]
    timeout = _SEND_S

    def do_GET(self) -> None:
        """Answers a request."""
        port = self.connection.getsockname()[1]
        if self.headers.get("Host") not in {f"{LOOPBACK}:{port}", f"localhost:{port}"}:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == "/":
            self._send_page()
        elif self.path == "/events":
            self._send_events()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged: they are those of one page of ours."""

    def _send_page(self) -> None:
        nonce = secrets.token_urlsafe(16)
        page = watch_page(nonce, is_live=self.is_live).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header(
            "Content-Security-Policy",
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        self._end_headers()
        self.wfile.write(page)

    def _send_events(self) -> None:
        """Sends what there is, and what comes, until the feed is over or the page is gone. A page that comes back continues where it was."""
        last = re.fullmatch(rf"{self.feed.token}-([0-9]{{1,12}})", self.headers.get("Last-Event-ID", ""))
        number = int(last[1]) + 1 if last else 0
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self._end_headers()
        try:
            while messages := self.feed.messages_from(number):
                for message in messages:
                    self.wfile.write(f"id: {self.feed.token}-{number}\ndata: {message}\n\n".encode())
                    number += 1
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            return

    def _end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
