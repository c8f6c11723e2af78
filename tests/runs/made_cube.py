"""A writer of profiles in Cube's format: a tar of an anchor, and of each metric index and data."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np


class Called(NamedTuple):
    """A call path: its region, and what is called there."""

    name: str
    paradigm: str = "compiler"
    role: str = "function"
    inside: Sequence[Called] = ()


def paths(root: Called) -> list[Called]:
    """All call paths in the order of their ids: each before what it calls."""
    return [root, *(path for called in root.inside for path in paths(called))]


def write_cube(
    file: Path,
    root: Called,
    threads: Sequence[int],
    metrics: Mapping[str, Any],
    *,
    packed: bool = False,
    devices: int = 0,
    end: str = "<",
    kind: str = "EXCLUSIVE",
) -> Path:
    """Write exclusive values, shape (call paths, locations): devices behind a process's threads."""
    order = paths(root)
    regions = "".join(
        f'<region id="{number}" mod="" begin="1" end="2"><name>{path.name}</name>'
        f"<paradigm>{path.paradigm}</paradigm><role>{path.role}</role></region>"
        for number, path in enumerate(order)
    )
    numbers = iter(range(len(order)))

    def cnode(path: Called) -> str:
        number = next(numbers)
        below = "".join(cnode(called) for called in path.inside)
        return f'<cnode id="{number}" calleeId="{number}">{below}</cnode>'

    groups, location = "", 0
    for rank, count in enumerate(threads):
        own = ""
        for place in range(count + devices):
            is_thread = "thread" if place < count else "gpu"
            own += (
                f'<location Id="{location}"><name>{is_thread}</name><rank>{place}</rank>'
                f"<type>{is_thread}</type></location>"
            )
            location += 1
        groups += (
            f'<locationgroup Id="{rank}"><name>MPI Rank {rank}</name><rank>{rank}</rank>'
            f"<type>process</type>{own}</locationgroup>"
        )
    defined = "".join(
        f"<metric id={quoteattr(str(number))} type={quoteattr(kind)}><disp_name>{name}</disp_name>"
        f"<uniq_name>{name}</uniq_name><dtype>DOUBLE</dtype><uom>sec</uom></metric>"
        for number, name in enumerate(metrics)
    )
    anchor = (
        f"<?xml version='1.0' encoding='UTF-8'?><cube version='4.8'><metrics>{defined}</metrics>"
        f"<program>{regions}{cnode(root)}</program><system>"
        f'<systemtreenode Id="0" class="machine"><name>m</name>'
        f'<systemtreenode Id="1" class="node"><name>n</name>{groups}</systemtreenode>'
        "</systemtreenode></system></cube>"
    )
    with tarfile.open(file, "w") as archive:

        def add(name: str, content: bytes) -> None:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))

        add("anchor.xml", anchor.encode())
        for number, values in enumerate(metrics.values()):
            table = np.asarray(values, dtype=f"{end}f8").reshape(len(order), location)
            count = len(order)
            head = b"CUBEX.INDEX" + struct.pack(f"{end}ihBi", 1, 0, 0, count)
            add(f"{number}.index", head + struct.pack(f"{end}{count}i", *range(count)))
            data = table.tobytes()
            if packed:
                small = zlib.compress(data)
                inner = struct.pack(f"{end}4q", 1, 0, 0, len(small)) + small
                add(f"{number}.data", b"ZCUBEX.DATA" + inner)
            else:
                add(f"{number}.data", b"CUBEX.DATA" + data)
    return file
