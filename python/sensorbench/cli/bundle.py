"""`sensorbench bundle` and `sensorbench verify`: results in one file, and whether such a file is sound."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app.bundle import bundle as make
from sensorbench.app.bundle import verify as check
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.errors import FailedError
from sensorbench.progress import console, error_console, print_labelled
from sensorbench.report import formatting
from sensorbench.results.bundle import BUNDLE_SUFFIX
from sensorbench.wording import counted

_SHOWN = 12

ReplaceBundle = Annotated[bool, typer.Option("--replace", help="Overwrite an existing bundle (only one that sensorbench made).")]


def bundle(
    folder: Annotated[Path, typer.Argument(help="Folder of the results.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help=f"Path of the bundle, NAME{BUNDLE_SUFFIX}; the name of the folder if not given.", show_default=False
        ),
    ] = None,
    with_operations: Annotated[
        bool,
        typer.Option(
            "--with-operations",
            help="Include the logs of all operations of a comparison, instead of block sums and a sample.",
        ),
    ] = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="SSH key to sign the bundle with, by ssh-keygen.", show_default=False)
    ] = None,
    replace: ReplaceBundle = False,
    json: Json = False,
) -> None:
    """Pack results into one file that others can verify: figures, histograms, hashes of answers, schema files, versions, seeds, machine."""
    path = out or Path(folder.resolve().name + BUNDLE_SUFFIX)
    index = make(folder, path, with_operations=with_operations, key=sign, replace=replace)
    size = path.stat().st_size
    if json:
        print_json({"bundle": str(path), "bytes": size, "is_signed": sign is not None, **index.model_dump(mode="json")})
        return
    operations = "with the logs of all operations" if index.with_operations else "without logs of operations"
    console().print(
        f"bundle: {path} ({formatting.size(size)}, {counted(len(index.files), 'file')}, {operations})", highlight=False
    )
    if index.unverifiable:
        text = f"figures that follow from logs of operations alone: {len(index.unverifiable)}; --with-operations makes them verifiable, too"
        print_labelled(error_console(), "note", text)


def verify(
    bundle: Annotated[Path, typer.Argument(help=f"The bundle, a file NAME{BUNDLE_SUFFIX}.")],
    allowed_signers: Annotated[
        Path | None,
        typer.Option(
            "--allowed-signers",
            help="Allowed-signers file as described in ssh-keygen(1); one of the signers must have signed the bundle.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Verify a bundle: hashes, figures, accounting, times, questions, caches, schema files. Exit code 1 names what is wrong."""
    found = check(bundle, allowed_signers=allowed_signers)
    if json:
        print_json(
            {
                "bundle": str(bundle),
                "title": found.index.title,
                "is_sound": found.is_sound,
                "figures": found.figures,
                "checks": found.checks,
                "signer": found.signer,
                "problems": found.problems,
                "unverified": found.unverified,
            }
        )
    else:
        screen = console()
        screen.print(f"{found.index.title}: {found.figures:,} figures computed again", highlight=False)
        table = new_table("checked")
        for words in found.checks:
            table.add_row(words)
        screen.print(table)
        screen.print(f"not verified: {'; '.join(_few(found.unverified))}", highlight=False)
    if not found.is_sound:
        for problem in found.problems[:_SHOWN]:
            print_labelled(error_console(), "wrong", str(problem), "red")
        more = f" (the first {_SHOWN} are above)" if len(found.problems) > _SHOWN else ""
        raise FailedError(f"{bundle}: {counted(len(found.problems), 'problem')}{more}; the bundle is rejected")


def _few(words: list[str]) -> list[str]:
    return words if len(words) <= _SHOWN else [*words[:_SHOWN], f"{len(words) - _SHOWN} more"]
