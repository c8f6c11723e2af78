"""Jobs as lines and as data."""

from __future__ import annotations

import pytest

from popmodel.base.errors import UsageError
from popmodel.machines.bench.jobs import PART_OF, PATHS, from_params, job, parse
from popmodel.machines.register import NODE_PARTS, PARTS, part_of


def test_a_job_is_a_line_and_a_line_is_a_job() -> None:
    one = job("ping_pong", tier="node", bytes=8)
    assert one.line == "ping_pong bytes=8 tier=node"
    assert parse(one.line) == one
    assert parse("ping_pong tier=node   bytes=8") == one
    assert parse("loads").line == "loads"


def test_parameters_of_a_result_make_the_job_that_was_asked_for() -> None:
    asked = job("late_receiver", bytes=1024, delay="0.0005", tier="node")
    assert from_params("late_receiver", {"tier": "node", "delay": "0.0005", "bytes": 1024}) == asked
    assert from_params("late_receiver", {"tier": "node", "delay": "0.0005", "bytes": "1024"}) == (
        asked
    )


@pytest.mark.parametrize("line", ["ping_pong bytes", "ping_pong =8", "ping_pong bytes="])
def test_a_word_that_is_no_parameter_is_refused(line: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(line)
    assert error.value.message == f"job '{line}': '{line.split()[1]}' must be key=value"
    assert error.value.hint == "write NAME key=value ..."


def test_a_line_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match="job without a name"):
        parse("  ")


def test_every_part_has_jobs_and_fills_something() -> None:
    assert set(PART_OF.values()) == set(PARTS) == set(PATHS)
    assert set(PARTS) > NODE_PARTS
    # What a part fills is what the profile's errors say that it measures.
    assert {path: part_of(path) for paths in PATHS.values() for path in paths} == {
        path: part for part, paths in PATHS.items() for path in paths
    }
