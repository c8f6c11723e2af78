"""Lines of keys in TOML text."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from popmodel.model.signature.reading import key_lines, line_of

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


VALUES = """\
a = [ "x", # one
  'y]', # two ]
  { b = [1,
    2], "c" . "d e" = \"\"\"
  k = 3
\"\"\" },
]
z = 1979-05-27T07:32:00Z
[t . "q\\u00e9"]
x = {}
y = [[], [ [ 3 ] ]]
k = '''
[no header]'''
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a", 0), 1),
        (("a", 1), 2),
        (("a", 2), 3),
        (("a", 2, "b", 1), 4),
        (("a", 2, "c", "d e"), 4),
        (("z",), 8),
        (("t", "q\u00e9"), 9),
        (("t", "q\u00e9", "x"), 10),
        (("t", "q\u00e9", "y", 1, 0, 0), 11),
        (("t", "q\u00e9", "k"), 12),
    ],
)
def test_line_inside_a_value(path: tuple[str | int, ...], line: int) -> None:
    assert key_lines(VALUES)[path] == line


def test_deep_nesting_ends() -> None:
    text = f"a = {'[' * 100}1{']' * 100}"
    assert max(map(len, key_lines(text))) == 101


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    entries: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    below = [one for key, entry in entries for one in _paths(entry, (*path, key))]
    return [path, *below]


@pytest.mark.parametrize("text", [TEXT, VALUES, *(
    path.read_text() for path in sorted(Path(__file__).parents[3].glob("popmodel/**/*.toml"))
)])  # fmt: skip
def test_every_path_of_the_standard_reader_has_its_line(text: str) -> None:
    assert {(), *key_lines(text)} == set(_paths(tomllib.loads(text)))
