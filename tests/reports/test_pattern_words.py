"""Patterns in words."""

import pytest

from popmodel.reports.message_tables import grid_text, pattern_text


def way(*move: int, size: float = 1024) -> dict[str, object]:
    return {"move": list(move), "messages": 4, "bytes": size}


GRID = {"dims": [4, 4], "periodic": [False, False]}


@pytest.mark.parametrize(
    ("kind", "facts", "words"),
    [
        (
            "halo",
            {**GRID, "directions": [way(0, 1), way(1, 0)]},
            "halo on 4 x 4: 1 KiB each way",
        ),
        (
            "halo",
            {
                "dims": [4, 4],
                "periodic": [True, False],
                "directions": [way(0, 1), way(1, 0, size=8), way(1, 1, size=2)],
            },
            "halo on 4 x 4 periodic along 0: 8 B along 0, 1 KiB along 1, 2 B to edges and corners",
        ),
        (
            "halo",
            {"dims": [8], "periodic": [True], "directions": [way(1), way(-1)], "times": [3]},
            "halo on 8 in a ring: 1 KiB each way, each 3 times",
        ),
        (
            "shift",
            {**GRID, "directions": [way(-1, 0)], "dim": 0, "by": -1},
            "shift by -1 along 0 of 4 x 4: 1 KiB",
        ),
        (
            "shift",
            {"dims": [4], "periodic": [False], "directions": [way(1)], "dim": 0, "by": 1},
            "shift by +1 of 4 in a line: 1 KiB",
        ),
        (
            "pipeline",
            {
                **GRID,
                "directions": [way(0, 1), way(1, 0)],
                "crosses": [0, 1],
                "direction": ["forward", "backward"],
                "blocks": 10.0,
            },
            "pipeline on 4 x 4, forward along 0, backward along 1, 10 blocks: 1 KiB",
        ),
        (
            "butterfly",
            {"flips": [1, 2], "times": [1, 1], "bytes": [8, 1024]},
            "butterfly with rank XOR 1, 2: 8 B to 1 KiB",
        ),
        (
            "transpose",
            {"rows": 4, "columns": 2, "block": 1, "bytes": [64]},
            "transpose of 4 x 2 ranks: 64 B",
        ),
        (
            "transpose",
            {"rows": 2, "columns": 2, "block": 2, "bytes": [64]},
            "transpose of 2 x 2 blocks of 2: 64 B",
        ),
        ("ring", {"offsets": [0], "bytes": [64]}, "messages to itself: 64 B"),
        (
            "ring",
            {"offsets": [2, -2], "bytes": [64, 64]},
            "ring with offsets +2, -2 modulo P: 64 B",
        ),
        ("pairwise", {"bytes": [96]}, "all pairs: 96 B"),
        ("root", {"root": 3, "way": "to all", "bytes": [8]}, "to all from rank 3: 8 B"),
        ("root", {"root": 0, "way": "from all", "bytes": [8]}, "from all to rank 0: 8 B"),
        (
            "collective",
            {
                "op": "bcast",
                "bytes_min": 8,
                "bytes_max": 16,
                "comm": "rank // 4",
                "members": [4],
                "blocking": True,
            },
            "bcast of groups of 4, colour rank // 4: 8 B to 16 B",
        ),
        (
            "collective",
            {
                "op": "allreduce",
                "bytes_min": 8,
                "bytes_max": 8,
                "comm": None,
                "members": [2, 3],
                "blocking": False,
            },
            "allreduce nonblocking of groups of 2 or 3: 8 B",
        ),
        (
            "list",
            {"by_offset": [{"offset": n, "messages": 9 - n} for n in range(1, 7)]},
            "no pattern: offsets +1, +2, +3, +4, ... modulo P",
        ),
    ],
)
def test_patterns(kind: str, facts: dict[str, object], words: str) -> None:
    assert pattern_text({"kind": kind, "facts": facts}) == words


def test_grids() -> None:
    one = {"dims": [16], "periodic": [True], "share": 0.857}
    other = {"dims": [4, 4], "periodic": [True, True], "share": 0.0955}
    assert grid_text({"grids": [one, other], "grid_note": None}) == (
        "16 in a ring, 86 % of the bytes; then 4 x 4 periodic, 9.6 % of the bytes"
    )
    assert grid_text({"grids": [{**one, "share": 1.0}], "grid_note": "as good: 4 x 4"}) == (
        "16 in a ring, 100 % of the bytes (as good: 4 x 4)"
    )
    assert grid_text({"grids": [], "grid_note": "no process sends"}) == "none: no process sends"
