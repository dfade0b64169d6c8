"""What the client says of itself: every figure comes from the engine entry that studies use. No test asserts a speed."""

import pytest

from tests.conftest import Cli


@pytest.mark.long("growth of the memory shows only over millions of operations")
def test_the_clients_ceilings_are_measured(cli: Cli) -> None:
    ended = cli("selfbench", "--quick", "--json")
    assert ended.exit_code == 0, ended.err
    figures = ended.json
    assert {
        "null_ops_per_s",
        "open_loop_p99_us",
        "stall_p999_error",
        "generator_rows_per_s",
        "rss_growth_bytes",
        "driver_ceiling",
    } <= set(figures)
    assert set(figures["open_loop_p99_us"]) == {"timer", "spinning"}
    assert set(figures["driver_ceiling"]) >= {"null", "sqlite", "fjall"}
    assert figures["null_ops_per_s"] > 0
    # An error of arithmetic, not a speed.
    assert figures["stall_p999_error"] < 0.02
    # Ten million operations; a growth of one byte each would be ten million.
    assert figures["rss_growth_bytes"] < 5_000_000
