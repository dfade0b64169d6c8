"""Creating and verifying bundles of results."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sensorbench.api.errors import own_errors
from sensorbench.app.bundle import bundle as make_bundle
from sensorbench.app.bundle import verify as verify_bundle

__all__ = ["Verified", "bundle", "verify"]


@dataclass(frozen=True)
class Verified:
    """The outcome of verifying a bundle.

    Attributes:
        title: title of the results.
        kind: kind of the results, such as `comparison`.
        figures: number of figures that were recomputed from recorded data.
        checks: descriptions of the checks.
        problems: descriptions of the problems; empty if the bundle is sound.
        unverified: names of what cannot be recomputed from the bundle, such as `machine and environment`.
        signer: who signed the bundle; None if no allowed signers were given.

    Examples:
        >>> import sensorbench as sb
        >>> verified = sb.verify(sb.bundle("results/iot", "iot.sbz", replace=True))
        >>> verified.is_sound, verified.problems
        (True, ())
        >>> "machine and environment" in verified.unverified
        True

    """

    title: str
    kind: str
    figures: int
    checks: Sequence[str]
    problems: Sequence[str]
    unverified: Sequence[str]
    signer: str | None

    @property
    def is_sound(self) -> bool:
        """Whether no problem was found."""
        return not self.problems


def bundle(
    folder: str | Path,
    out: str | Path,
    *,
    with_operations: bool = False,
    key: str | Path | None = None,
    replace: bool = False,
) -> Path:
    """Packs results into one file that others can verify.

    Args:
        folder: the results folder.
        out: path of the bundle; must end with `.sbz`.
        with_operations: include the logs of all operations.
        key: an SSH key to sign the bundle with.
        replace: overwrite an existing bundle. Other files are never overwritten.

    Returns:
        Path of the bundle.

    Raises:
        UsageError: if there are no results, a schema file was changed since the run, or `out` exists.
        DamagedResultsError: if a file is damaged.

    """
    with own_errors():
        make_bundle(Path(folder), Path(out), with_operations=with_operations, key=Path(key) if key else None, replace=replace)
        return Path(out)


def verify(path: str | Path, *, allowed_signers: str | Path | None = None) -> Verified:
    """Verifies a bundle: hashes, figures, accounting, times, questions, caches, schema files.

    Args:
        path: path of the bundle.
        allowed_signers: an allowed-signers file as described in ssh-keygen(1); one of the signers must have signed the bundle.

    Returns:
        The outcome. Problems do not raise an error; see `is_sound`.

    Raises:
        UsageError: if the file is not a bundle, or is not safe to open.

    """
    with own_errors():
        found = verify_bundle(Path(path), allowed_signers=Path(allowed_signers) if allowed_signers else None)
    return Verified(
        title=found.index.title,
        kind=found.index.results,
        figures=found.figures,
        checks=tuple(found.checks),
        problems=tuple(map(str, found.problems)),
        unverified=tuple(found.unverified),
        signer=found.signer,
    )
