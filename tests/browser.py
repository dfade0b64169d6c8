"""Pages in a real browser."""

import re
import subprocess
from pathlib import Path

from tests.programs import browser

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)


def dom_of(address: str, profile: Path) -> str:
    """A page as a browser has it, without its own sources, in which words stand, too. Nothing goes to the console.

    Args:
        address: its URL.
        profile: a folder for what the browser itself writes.

    """
    program, environment = browser()
    ended = subprocess.run(
        [program, *_OPTIONS, f"--user-data-dir={profile}", "--virtual-time-budget=3000", "--dump-dom", address],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=True,
        env=environment,
    )
    assert "CONSOLE" not in ended.stderr, ended.stderr
    return re.sub(r"<(script|style).*?</\1>", "", ended.stdout, flags=re.DOTALL)
