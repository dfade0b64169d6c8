"""Code that is printed: highlighted on a terminal, plain elsewhere."""

from textwrap import dedent

from rich.console import Console


def print_code(screen: Console, code: str, language: str) -> None:
    """Prints code: with colours on a terminal that has some, without elsewhere, so that what is piped is the code itself."""
    text = dedent(code).strip()
    if not screen.is_terminal or screen.no_color:
        screen.print(text, highlight=False)
        return
    from rich.syntax import Syntax

    screen.print(Syntax(text, language, theme="ansi_dark", background_color="default", word_wrap=True))
