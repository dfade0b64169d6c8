"""The page that follows a benchmark while it runs, or replays one. It requests nothing but the events of the server that it came from."""

from sensorbench.report.build import page_environment


def watch_page(nonce: str, *, is_live: bool) -> str:
    """The page as HTML.

    Args:
        nonce: what its scripts and styles carry, so that a browser runs no others.
        is_live: whether the benchmark is running; otherwise it is replayed.

    """
    return page_environment().get_template("watch.html.j2").render(nonce=nonce, is_live=is_live)
