"""Bundles of results: made, and verified."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sensorbench.api.errors import own_errors
from sensorbench.app.bundle import bundle as make_bundle
from sensorbench.app.bundle import verify as verify_bundle

__all__ = ["Verified", "bundle", "verify"]


@dataclass(frozen=True)
class Verified:
    """What verifying a bundle found.

    Attributes:
        title: of the results.
        kind: of the results, such as `comparison`.
        figures: how many figures were computed again from what was recorded.
        checks: what was checked, in words.
        problems: what is wrong, in words; none of a bundle that is sound.
        unverified: what does not follow from what is in the bundle, by name.
        signer: who signed it; None where no signers were given.

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
        """Whether nothing is wrong."""
        return not self.problems


def bundle(
    folder: str | Path,
    out: str | Path,
    *,
    with_operations: bool = False,
    key: str | Path | None = None,
    replace: bool = False,
) -> Path:
    """Puts results into one file that others can verify.

    Args:
        folder: the results.
        out: the file, whose name ends with `.sbz`.
        with_operations: whether logs of all operations go in.
        key: an SSH key that signs the bundle.
        replace: whether a bundle that lies there is overwritten; nothing else ever is.

    Returns:
        The file.

    Raises:
        UsageError: there are no results, a schema file was changed since it was run, or something else lies where the bundle goes.
        DamagedResultsError: the results are damaged.

    """
    with own_errors():
        make_bundle(Path(folder), Path(out), with_operations=with_operations, key=Path(key) if key else None, replace=replace)
        return Path(out)


def verify(path: str | Path, *, allowed_signers: str | Path | None = None) -> Verified:
    """Verifies a bundle: hashes, figures, accounting, times, questions, caches, schema files.

    Args:
        path: the bundle.
        allowed_signers: a file of allowed signers, as ssh-keygen(1) has it; one of them must have signed the bundle.

    Returns:
        What was found; a bundle that is not sound is no error here.

    Raises:
        UsageError: the file is no bundle, or is not safe to open.

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
