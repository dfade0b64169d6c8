"""What a slow log says of statements comes to those of a general log."""

from sensorbench.traffic.entries import Entry
from sensorbench.traffic.mysql_durations import Ended, with_durations


def test_the_nth_of_a_text_in_a_session_is_the_nth() -> None:
    arrived = [Entry(at, session, text) for at, session, text in ((1, "1", "a"), (2, "2", "a"), (3, "1", "b"), (4, "1", "a"), (5, "3", "a"))]
    ended = [Ended("2", "a", 7, 0), Ended("1", "a", 10, 1), Ended("1", "b", 20, 2), Ended("1", "c", 9, 9), Ended("1", "a", 30, 3)]
    found = [(entry.at_us, entry.session, entry.duration_s, entry.rows) for entry in with_durations(iter(arrived), iter(ended))]
    assert found == [(1, "1", 1e-5, 1), (2, "2", 7e-6, 0), (3, "1", 2e-5, 2), (4, "1", 3e-5, 3), (5, "3", None, None)]
    assert [entry.statement for entry in with_durations(iter(arrived), iter(()))] == ["a", "a", "b", "a", "a"]
