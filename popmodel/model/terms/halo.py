"""Exchange of the layers of cells around a process's part of a grid.

Source: the surface of a block per dimension; messages as in R. Hockney, Parallel Computing 20
(1994) 389.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from popmodel.expressions.elementary import Value


def face_bytes(cells: Sequence[Value], width: Value, bytes_per_cell: Value) -> list[Value]:
    """Return the size of the message to a neighbour along each dimension, bytes.

    Parameters
    ----------
    cells : sequence of value
        Local extent along each dimension.
    width : value
        Layers of cells.
    bytes_per_cell : value
        Bytes of all the fields of a cell.
    """
    return [
        width * bytes_per_cell * prod(cells[:d]) * prod(cells[d + 1 :]) for d in range(len(cells))
    ]


def neighbours(extent: Sequence[int], periodic: Sequence[bool]) -> list[int]:
    """Return the messages that the busiest process sends along each dimension: 0, 1 or 2.

    A process is never its own neighbour; two processes of a periodic dimension meet twice.
    """
    return [
        0 if count == 1 else 2 if wraps else min(2, count - 1)
        for count, wraps in zip(extent, periodic, strict=True)
    ]


def packing_bytes(sizes: Sequence[Value], counts: Sequence[int]) -> Value:
    """Return the bytes that are copied to pack what is sent and to unpack what is received.

    Parameters
    ----------
    sizes, counts
        Bytes and number of the messages along each dimension.
    """
    total: Value = sum(n * size for n, size in zip(counts, sizes, strict=True))
    return 2 * total
