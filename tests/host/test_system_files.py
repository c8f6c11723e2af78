"""Lists of CPUs as the system writes them."""

from __future__ import annotations

import pytest

from popmodel.host.hardware import cpu_list, parse_cpu_list


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("5", (5,)),
        ("", ()),
        ("0-1,2-3", (0, 1, 2, 3)),
        ("all", ()),
    ],
)
def test_lists_of_cpus(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


def test_lists_of_cpus_are_written_as_the_system_does() -> None:
    assert cpu_list({8, 1, 0, 2}) == "0-2,8"
    assert cpu_list([]) == ""
