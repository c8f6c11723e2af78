"""Lines of keys in TOML text."""

from __future__ import annotations

import pytest

from popmodel.model.toml_lines import key_lines, line_of

TEXT = """\
schema = "x"
[params]
N = 4
"quoted" = 5
[[program]]
loop = { count = 2 }
  [[program.body]]
  [program.body.parallel]
  trip = 3
  bytes.MEM = 8
  [[program.body]]
  shift = { dim = 1 }
[[program]]
  [[program.body]]
  serial = { trip = 1 }
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("schema",), 1),
        (("params",), 2),
        (("params", "N"), 3),
        (("params", "quoted"), 4),
        (("program",), 5),
        (("program", 0), 5),
        (("program", 0, "loop", "count"), 6),
        (("program", 0, "body", 0), 7),
        (("program", 0, "body", 0, "parallel"), 8),
        (("program", 0, "body", 0, "parallel", "trip"), 9),
        (("program", 0, "body", 0, "parallel", "bytes", "MEM"), 10),
        (("program", 0, "body", 1, "shift", "dim"), 12),
        (("program", 1, "body", 0, "serial"), 15),
        (("program", 1, "body", 0, "serial", "flops"), 15),
        (("nothing",), None),
    ],
)
def test_line(path: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(key_lines(TEXT), path) == line
