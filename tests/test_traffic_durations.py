"""The tables of MySQL's and MariaDB's logs: what the slow log says of statements comes to those of the general log, whose times become UTC."""

from sensorbench.traffic.entries import Entry
from sensorbench.traffic.mysql_durations import Ended, with_durations
from sensorbench.traffic.record_mysql import Zones


def test_the_nth_of_a_text_in_a_session_is_the_nth() -> None:
    arrived = [
        Entry(at, session, text)
        for at, session, text in ((1, "1", "a"), (2, "2", "a"), (3, "1", "b"), (4, "1", "a"), (5, "3", "a"))
    ]
    ended = [Ended("2", "a", 7, 0), Ended("1", "a", 10, 1), Ended("1", "b", 20, 2), Ended("1", "c", 9, 9), Ended("1", "a", 30, 3)]
    found = [(entry.at_us, entry.session, entry.duration_s, entry.rows) for entry in with_durations(iter(arrived), iter(ended))]
    assert found == [(1, "1", 1e-5, 1), (2, "2", 7e-6, 0), (3, "1", 2e-5, 2), (4, "1", 3e-5, 3), (5, "3", None, None)]
    assert [entry.statement for entry in with_durations(iter(arrived), iter(()))] == ["a", "a", "b", "a", "a"]


def test_times_in_the_zone_of_a_session_become_utc() -> None:
    """As a MariaDB 11.4 writes them: after SET time_zone, the rows of a session are in another one."""
    second, hour = 1_000_000, 3_600_000_000
    began = 1_795_744_600 * second
    zones = Zones(began, began + 7200 * second, ahead_us=hour)
    rows = [
        (1, 1, 1),
        (2, 2, 6),
        (2, 3, 6),
        (1, 4, 1),
        (2, 5, 1),
        (3, 6, -4),
        (2, 3000, 1),
        (1, 5000, 1),
        (3, 5001, -4),
        (3, 6500, -4),
    ]
    found = [zones.utc(session, began + after * second + ahead * hour) for session, after, ahead in rows]
    assert found == [began + after * second for _, after, _ in rows]
