"""The screen of a trace, on documents that no small trace gives."""

from typing import Any

import pytest

from popmodel.reports import run_tables
from popmodel.reports.notes import warning_text
from popmodel.reports.renderers.data import rows
from popmodel.reports.renderers.terminal import block_lines
from popmodel.reports.renderers.text import Style


def document(**changes: Any) -> dict[str, Any]:
    """A document with warnings, counters, regions, several applications and uneven teams."""
    return {
        "trace": "/data/of/a/project/with/long/names/run_of_a_big_program_1024.prv.gz",
        "application": 2,
        "applications": 3,
        "processes": 3,
        "threads": [1, 4, 4],
        "nodes": None,
        "timed": True,
        "runtime": 12.3456,
        "duration": 12.5,
        "caveats": [],
        "analysed": {
            "begin": 0.5,
            "end": 12.25,
            "left_out": {"before": 0.5, "after": 0.25},
            "why": "MPI_Init to MPI_Finalize",
        },
        "records": {"states": 1234567, "events": 7654321},
        "message_sizes": None,
        "calls": {},
        "regions": {"solve": 100},
        "user_regions": {},
        "counters": ["PAPI_TOT_INS", "PAPI_TOT_CYC"],
        "warnings": [
            {"text": "records out of order", "count": 3, "line": 12},
            {"text": "no .pcf file", "count": 1, "line": None},
        ],
        **changes,
    }


def lines(found: dict[str, Any], width: int = 80, *, whole: bool = True) -> list[str]:
    document = {"trace": "big.prv", "info": found}
    return block_lines(run_tables.blocks(document), Style(width, whole=whole))


def test_everything_has_its_place() -> None:
    assert lines(document(), 44) == [
        "contents of big.prv                  12.35 s",
        "",
        "application  2 of 3",
        "processes    3",
        "threads      1 in 1 process, 4 in 2",
        "             processes",
        "nodes        not recorded",
        "runtime      12.35 s",
        "analysed     0.5 s to 12.25 s (MPI_Init to",
        "             MPI_Finalize)",
        "counters     PAPI_TOT_INS, PAPI_TOT_CYC",
        "records      1,234,567 states, 7,654,321",
        "             events",
        "",
        "warnings",
        " ! records out of order (3 times, first on",
        "   line 12)",
        " ! no .pcf file",
        "",
        "parallel regions  number",
        " solve               100",
    ]


def test_sizes_of_messages() -> None:
    sizes = {"min": 8, "mean": 1536.0, "max": 65536, "total": 2**20}
    found = document(message_sizes=sizes)
    assert "messages     8 B to 64 KiB, mean 1.5 KiB; 1 MiB in total" in lines(found)
    made = rows({"trace": "big.prv", "info": found}, run_tables.VIEWS)
    assert {name: made[0][f"message_sizes_{name}"] for name in sizes} == sizes
    assert [row["count"] for row in made if row["table"] == "info.warnings"] == [3, 1]


def test_of_many_warnings_a_screen_shows_some() -> None:
    many = [{"text": f"warning {at}", "count": 1, "line": None} for at in range(40)]
    calls = {f"MPI_{at}": 1 for at in range(40)}
    found = document(warnings=many, calls=calls, caveats=["a caveat " * 30] * 9)
    shown = lines(found, whole=False)
    assert len(shown) <= 23  # with the line below
    assert any("37 warnings more" in line for line in shown)
    assert sum("warning " in line for line in lines(found)) == 40


def test_a_run_without_a_runtime_has_a_dash() -> None:
    assert "runtime      -" in lines(document(runtime=None))


@pytest.mark.parametrize(
    ("warning", "text"),
    [
        ({"text": "x", "count": 1, "line": None}, "x"),
        ({"text": "x", "count": 1, "line": 7}, "x (line 7)"),
        ({"text": "x", "count": 2000, "line": None}, "x (2,000 times)"),
        ({"text": "a,first", "count": 2, "line": 7}, "a,first (2 times, first on line 7)"),
    ],
)
def test_warnings_in_words(warning: dict[str, Any], text: str) -> None:
    assert warning_text(warning) == text
