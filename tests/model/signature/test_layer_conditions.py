"""Traffic of the bundled programs beyond a cache, against a cache of lines that is simulated."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import TypeAlias

import pytest

from popmodel.model import signatures
from popmodel.model.kinds.loops import LoopItem, Parallel

LINE = 8  # elements
WORD = 8  # bytes of an element

Access: TypeAlias = tuple[int, bool]  # an element, and whether it is written


def traffic(accesses: list[Access], size: int) -> float:
    """Bytes per repetition that cross the end of a cache of some bytes, once it is warm."""
    held: OrderedDict[int, bool] = OrderedDict()  # least recently used first; whether it is changed
    moved = 0
    for _ in range(3):
        moved = 0
        for element, written in accesses:
            line = element // LINE
            changed = held.pop(line, None)
            moved += changed is None
            held[line] = bool(changed) or written
            if len(held) * LINE * WORD > size:
                moved += held.popitem(last=False)[1]
    return moved * LINE * WORD


def stencil(n: tuple[int, int, int]) -> Iterator[Access]:
    """Two sweeps there and back: from one array to the other."""
    rows, columns = n[1] + 2, n[2] + 2 * LINE  # whole lines, so that few have cells of two rows
    array = (n[0] + 2) * rows * columns
    for now, after in ((0, array), (array, 0)):
        for i in range(1, n[0] + 1):
            for j in range(1, n[1] + 1):
                for k in range(LINE, LINE + n[2]):
                    cell = (i * rows + j) * columns + k
                    for plane, row, step in (
                        (-1, 0, 0),
                        (1, 0, 0),
                        (0, -1, 0),
                        (0, 1, 0),
                        (0, 0, -1),
                        (0, 0, 1),
                        (0, 0, 0),
                    ):
                        yield now + cell + (plane * rows + row) * columns + step, False
                    yield after + cell, True


def multiply(n: int) -> Iterator[Access]:
    for i in range(n):
        for k in range(n):
            yield i * n + k, False
            for j in range(n):
                yield n * n + k * n + j, False
                yield 2 * n * n + i * n + j, True


def stated(name: str, values: dict[str, float], size: int, level: str) -> float:
    """Bytes of an iteration as the signature says, of a cache that replaces by age."""
    signature = signatures.load(name)
    step = signature.program[0]
    assert isinstance(step, LoopItem)
    (loop,) = (item for item in step.body if isinstance(item, Parallel))
    fits = {"if_fits": lambda held, hit, miss, *_: hit if held <= size else miss}
    return float(loop.costs.bytes[level].evaluate(values, fits))


@pytest.mark.long(after=2)
@pytest.mark.parametrize("level", ["L2", "L3", "MEM"])
@pytest.mark.parametrize(
    ("size", "per_cell"),
    [(2**18, 0), (2**15, 3), (2**13, 5)],
    ids=["both arrays stay", "planes stay", "rows stay"],
)
def test_stencil(level: str, size: int, per_cell: int) -> None:
    n = (12, 10, 64)
    cells = n[0] * n[1] * n[2]
    values = {"n0": n[0], "n1": n[1], "n2": n[2], "T": 1, "w": WORD}
    values |= {"rows": WORD * (n[2] + 2), "planes": WORD * (n[1] + 2) * (n[2] + 2)}
    values |= {"block": 2 * values["planes"] * (n[0] + 2)}
    said = stated("stencil3d", values, size, level)
    assert said == per_cell * WORD
    # cells of the halo are read as well, by a plane or a row at either end
    seen = traffic(list(stencil(n)), size) / (2 * cells)
    assert said <= seen <= 1.25 * said


def test_stencil_whose_rows_do_not_stay() -> None:
    n = (4, 4, 256)
    values = {"n0": 4, "n1": 4, "n2": 256, "T": 1, "w": WORD}
    values |= {"rows": 2064, "planes": 12384, "block": 148608}
    assert stated("stencil3d", values, 2**12, "L2") == 7 * WORD
    seen = traffic(list(stencil(n)), 2**12) / (2 * 4 * 4 * 256)
    assert seen == pytest.approx(7 * WORD, rel=0.1)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("level", "size"),
    [(level, size) for level in ("L2", "L3", "MEM") for size in (40_960, 2**14, 2**12)]
    + [("L2", 2**9), ("L3", 2**9), ("MEM", 2**18)],
)
def test_cannon(level: str, size: int) -> None:
    n = 48
    said = stated("cannon", {"nb": n, "w": WORD, "T": 1}, size, level)
    assert traffic(list(multiply(n)), size) / n**3 == pytest.approx(said, rel=0.25, abs=0.3)
