"""What levels of consistency promise, and which promises a history breaks."""

import pytest

from sensorbench.analysis.guarantees import check
from sensorbench.analysis.promises import (
    broken,
    promises_of_asynchronous_replicas,
    promises_of_one_thread,
    promises_of_quorums,
    promises_of_read_committed,
)
from tests.test_guarantees import r, table, w


@pytest.mark.parametrize(
    ("replication", "write", "read", "fresh", "monotonic"),
    [
        (3, "one", "one", False, False),
        (3, "quorum", "one", False, False),
        (3, "quorum", "quorum", True, True),
        (3, "local_quorum", "quorum", True, True),
        (3, "all", "one", True, False),
        (3, "one", "all", True, True),
        (3, "any", "all", False, True),
        (2, "one", "one", False, False),
        (1, "one", "one", True, True),
        (5, "three", "two", False, False),
        (5, "three", "three", True, True),
    ],
)
def test_quorums_that_meet_promise_fresh_reads(replication: int, write: str, read: str, fresh: bool, monotonic: bool) -> None:
    promises = promises_of_quorums(replication, write, read)
    assert promises["stale_reads"].is_made is promises["lost_writes"].is_made is fresh
    assert promises["non_monotonic_reads"].is_made is monotonic
    assert promises["never_written"].is_made


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'most': expected one of any, one"):
        promises_of_quorums(3, "most", "one")


def test_promises_are_compared_with_what_was_seen() -> None:
    seen = check(table([w(1, 0, 1), w(2, 2, 3), r(1, 4, 5)])).findings
    for kept in (promises_of_read_committed(), promises_of_one_thread(), promises_of_quorums(3, "quorum", "quorum")):
        assert broken(kept, seen) == ("lost_writes", "stale_reads")
    for weaker in (
        promises_of_asynchronous_replicas(),
        promises_of_one_thread(durable=False),
        promises_of_quorums(3, "one", "one"),
    ):
        assert broken(weaker, seen) == ()
    for promises in (promises_of_read_committed(), promises_of_asynchronous_replicas()):
        assert set(promises) == set(seen) - {"possibly_stale_reads"}
        assert all(promise.why.endswith(".") and promise.source for promise in promises.values())
