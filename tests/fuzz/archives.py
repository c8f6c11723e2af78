"""Damaged archives of OTF2 end in an error that says so, or are read; nothing else is printed.

Run as ``python tests/fuzz/archives.py ARCHIVE.otf2 FIRST COUNT``.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import popmodel


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Cut a file, or change bits, bytes or a stretch of it."""
    found, place = bytearray(content), chance.randrange(len(content))
    match chance.randrange(4):
        case 0:
            del found[place:]
        case 1:
            found[place] ^= 1 << chance.randrange(8)
        case 2:
            for _ in range(chance.randrange(1, 4)):
                found[chance.randrange(len(found))] = chance.randrange(256)
        case _:
            length = chance.randrange(1, 40)
            found[place : place + length] = bytes(
                chance.choice((0, 255, chance.randrange(256))) for _ in range(length)
            )
    return bytes(found)


def main() -> None:
    anchor, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    parts = [anchor, anchor.with_suffix(".def"), *sorted(anchor.with_suffix("").iterdir())]
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for seed in range(first, first + count):
            chance = random.Random(seed)
            folder = Path(name) / str(seed)
            (folder / anchor.stem).mkdir(parents=True)
            victim = chance.choice(parts)
            for part in parts:
                content = part.read_bytes()
                target = folder / part.relative_to(anchor.parent)
                target.write_bytes(damaged(content, chance) if part is victim else content)
            try:
                popmodel.metrics(popmodel.read(folder / anchor.name))
                ends["read"] += 1
            except popmodel.PopmodelError as error:
                ends["refused"] += 1
                assert str(error), seed
            except BaseException as error:
                raise AssertionError(f"seed {seed}, {victim.name}: {error!r}") from error
            shutil.rmtree(folder)
    print(dict(sorted(ends.items())))


if __name__ == "__main__":
    main()
